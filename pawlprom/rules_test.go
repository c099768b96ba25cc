package pawlprom_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestPromtoolPassesTheAlerts(t *testing.T) {
	t.Parallel()
	promtool := demand(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput()
		require.NoError(t, err, "promtool %s: %s", strings.Join(args, " "), out)
		require.Contains(t, string(out), "SUCCESS")
	}
}

// rule is an alert of alerts.yml.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func loadYAML(t testing.TB, file string, v any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	require.NoError(t, d.Decode(v))
}

func rules(t testing.TB) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	loadYAML(t, "alerts.yml", &file)
	require.Len(t, file.Groups, 1)
	require.NotEmpty(t, file.Groups[0].Rules)
	return file.Groups[0].Rules
}

// Each alert is tested three times: silent just below its limit, firing, silent again.
func TestEachAlertHasItsTests(t *testing.T) {
	t.Parallel()
	var file struct {
		RuleFiles []string `yaml:"rule_files"`
		Every     string   `yaml:"evaluation_interval"`
		Tests     []struct {
			Name     string `yaml:"name"`
			Interval string `yaml:"interval"`
			Series   []any  `yaml:"input_series"`
			Alerts   []struct {
				Name string `yaml:"alertname"`
				At   string `yaml:"eval_time"`
				Want []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	loadYAML(t, "alerts_test.yml", &file)
	seen := map[string][]bool{}
	for _, test := range file.Tests {
		for _, a := range test.Alerts {
			seen[a.Name] = append(seen[a.Name], len(a.Want) > 0)
		}
	}
	for _, r := range rules(t) {
		require.Equal(t, []bool{false, true, false}, seen[r.Alert], r.Alert)
	}
}

func TestEachAlertIsASentenceWithASectionInTheHandbook(t *testing.T) {
	t.Parallel()
	page := handbook(t)
	drill, err := os.ReadFile("drill_test.go")
	require.NoError(t, err)
	const prefix = "https://github.com/pawlq/pawl/blob/main/docs/monitoring.md#"
	for _, r := range rules(t) {
		require.Contains(t, []string{"page", "ticket"}, r.Labels["severity"], r.Alert)
		require.Regexp(t, `^[A-Z].*[^.]\.$`, r.Annotations["summary"], r.Alert)
		require.NotEmpty(t, r.Annotations["description"], r.Alert)
		anchor, ok := strings.CutPrefix(r.Annotations["runbook_url"], prefix)
		require.True(t, ok, r.Alert)
		section := page.section(anchor)
		require.Contains(t, section, "`"+r.Alert+"`", "#%s", anchor)
		for _, part := range []string{"**You see**", "**Look at**", "**Do**"} {
			require.Contains(t, section, part, "#%s", anchor)
		}
		require.Contains(t, string(drill), r.Alert, "TestEachAlertFiresAndClears")
	}
}

// What alerts and the dashboard ask for exists.
func TestOnlyMetricsThatExistAreAskedFor(t *testing.T) {
	t.Parallel()
	known := append(metricNames(t), "pawl_queue_oldest_ready_limit_seconds")
	asked := ""
	for _, r := range rules(t) {
		asked += r.Expr + "\n"
	}
	for _, queries := range panelsOf(t, loadDashboard(t)) {
		asked += strings.Join(queries, "\n") + "\n"
	}
	for _, name := range regexp.MustCompile(`pawl_\w+`).FindAllString(asked, -1) {
		require.True(t, slices.Contains(known, name) || slices.Contains(known, strings.TrimSuffix(name, "_bucket")), name)
	}
}
