package pawlprom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

// requireEnv names the variable that turns a missing Prometheus from a skip into a
// failure; CI sets it.
const requireEnv = "PAWL_REQUIRE_PROM"

// demand is the path of a program of Prometheus, without which a test is skipped.
func demand(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	switch {
	case err == nil:
		return path
	case os.Getenv(requireEnv) != "":
		t.Fatalf("no %s on PATH, and %s is set", program, requireEnv)
	default:
		t.Skipf("SKIPPED: no %s on PATH (Debian: apt-get install prometheus)", program)
	}
	return ""
}

// prom is a Prometheus of the test's own.
type prom struct {
	url    string
	client *http.Client
}

// every is how often it scrapes and evaluates.
const every = 400 * time.Millisecond

// startPrometheus has one scrape target, by the rules in a file.
func startPrometheus(t testing.TB, target, rules string) *prom {
	t.Helper()
	program := demand(t, "prometheus")
	dir := t.TempDir()
	config := fmt.Sprintf(`
global: {scrape_interval: %dms, scrape_timeout: %dms, evaluation_interval: %dms}
rule_files: [%q]
scrape_configs: [{job_name: pawl, static_configs: [{targets: [%q]}]}]
`, every.Milliseconds(), every.Milliseconds(), every.Milliseconds(), rules, target)
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	require.NoError(t, listener.Close())
	cmd := exec.CommandContext(context.Background(), program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+addr, "--log.level=error")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	exited, err := redistest.StartTied(cmd)
	require.NoError(t, err)
	p := &prom{url: "http://" + addr, client: &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}}
	t.Cleanup(func() {
		p.client.CloseIdleConnections()
		_ = cmd.Process.Kill()
		<-exited
	})
	redistest.Eventually(t, "Prometheus is ready", func(ctx context.Context) bool {
		status, _ := p.get(ctx, "/-/ready", nil)
		return status == http.StatusOK
	})
	return p
}

// get decodes an answer into v, unless v is nil.
func (p *prom) get(ctx context.Context, path string, v any) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return 0, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if v != nil {
		err = json.NewDecoder(resp.Body).Decode(v)
	}
	return resp.StatusCode, err
}

// firing is the names of the alerts that fire.
func (p *prom) firing(ctx context.Context) (map[string]bool, error) {
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string            `json:"state"`
				Labels map[string]string `json:"labels"`
			} `json:"alerts"`
		} `json:"data"`
	}
	_, err := p.get(ctx, "/api/v1/alerts", &answer)
	names := map[string]bool{}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			names[a.Labels["alertname"]] = true
		}
	}
	return names, err
}

// series is how many series a query has had since a moment.
func (p *prom) series(t testing.TB, query string, since time.Time) int {
	t.Helper()
	var answer struct {
		Error string `json:"error"`
		Data  struct {
			Result []json.RawMessage `json:"result"`
		} `json:"data"`
	}
	args := url.Values{"query": {query}, "step": {"1s"},
		"start": {fmt.Sprint(since.Unix())}, "end": {fmt.Sprint(time.Now().Unix())}}
	status, err := p.get(t.Context(), "/api/v1/query_range?"+args.Encode(), &answer)
	require.NoError(t, err, query)
	require.Equal(t, http.StatusOK, status, "%s: %s", query, answer.Error)
	return len(answer.Data.Result)
}
