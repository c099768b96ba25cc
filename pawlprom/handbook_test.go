package pawlprom_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
	"github.com/pawlq/pawl/pawlprom"
)

// markdown is a page of the docs.
type markdown string

func handbook(t testing.TB) markdown {
	t.Helper()
	text, err := os.ReadFile("../docs/monitoring.md")
	require.NoError(t, err)
	return markdown(text)
}

// section is the text under the heading that has this anchor, up to the next heading.
func (m markdown) section(anchor string) string {
	for part := range strings.SplitSeq(string(m), "\n#") {
		heading, text, _ := strings.Cut(part, "\n")
		slug := strings.ToLower(strings.TrimLeft(heading, "# "))
		slug = strings.ReplaceAll(regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(slug, ""), " ", "-")
		if slug == anchor {
			return text
		}
	}
	return ""
}

// documented is a line of the page's tables: `name` | type | `label`, `label` | …
var documented = regexp.MustCompile("(?m)^\\| `(pawl_\\w+)` \\| (gauge|counter|histogram) \\|([^|]*)\\|")

func metricNames(t testing.TB) (names []string) {
	t.Helper()
	for _, m := range documented.FindAllStringSubmatch(string(handbook(t)), -1) {
		names = append(names, m[1])
	}
	require.NotEmpty(t, names)
	return names
}

// all is both halves, with an event of each sort behind them.
func all(t *testing.T) *prometheus.Registry {
	t.Helper()
	s := redistest.Start(t)
	reg := prometheus.NewPedanticRegistry()
	m, err := pawlprom.NewMetrics(reg)
	require.NoError(t, err)
	client := newClient(t, s.Client(t), m)
	require.NoError(t, reg.Register(pawlprom.NewCollector(client)))
	q := client.Queue("mail")
	require.NoError(t, q.Canary(t.Context(), time.Hour))
	for _, does := range []string{"", "die"} {
		put(t, q, 1, does)
	}
	put(t, q, 1, "fail", pawl.MaxAttempts(2))
	w := newWorker(t, client, pawl.WorkerConfig{}, "mail")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	redistest.Eventually(t, "all is over", func(context.Context) bool {
		return values(t, reg, "pawl_job_deaths_total")["note mail exhausted"] == 1 && values(t, reg, "pawl_job_runs_total")["note done mail"] == 1
	})
	cancel()
	require.NoError(t, <-ended)
	e := pawl.Event{Job: &pawl.RawJob{Queue: "mail", Kind: "note"}, Handled: true}
	m.Crashed(ctx, e)
	m.LeaseLost(ctx, e)
	return reg
}

// The tables of the page are what a scrape has: names, types and labels.
func TestTheHandbookListsEveryMetric(t *testing.T) {
	t.Parallel()
	reg := all(t)
	requireLint(t, reg)
	families, err := reg.Gather()
	require.NoError(t, err)
	gathered := map[string][2]string{}
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		gathered[f.GetName()] = [2]string{strings.ToLower(f.GetType().String()), strings.Join(labels, " ")}
	}
	listed := map[string][2]string{}
	for _, m := range documented.FindAllStringSubmatch(string(handbook(t)), -1) {
		labels := regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(m[3], -1)
		var names []string
		for _, l := range labels {
			names = append(names, l[1])
		}
		slices.Sort(names)
		listed[m[1]] = [2]string{m[2], strings.Join(names, " ")}
	}
	require.Equal(t, gathered, listed)
}

// So is the list in the package's comment.
func TestThePackageCommentListsEveryMetric(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^//\t(pawl_\w+)`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	require.ElementsMatch(t, metricNames(t), names)
}

// The page has each value of the labels that pawl itself gives.
func TestTheHandbookListsEveryValueOfALabel(t *testing.T) {
	t.Parallel()
	page := string(handbook(t))
	for _, name := range slices.Concat(pawlprom.Events(), []string{"ready", "delayed", "running", "parked", "dead", "done",
		"retried", "snoozed", "discarded", "cancelled", "released", "exhausted", "permanent", "undecodable", "crashed", "corrupt",
		"expired", "unhandled", "other"}) {
		require.Contains(t, page, "`"+name+"`")
	}
}
