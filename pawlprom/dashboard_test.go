package pawlprom_test

//lint:file-ignore SA1019 the classic model is the one that every Grafana in use imports

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	grafana "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/stretchr/testify/require"
)

// knowPanels has Grafana's schema know the types that the dashboard uses.
var knowPanels = sync.OnceFunc(func() {
	r := cog.NewRuntime()
	r.RegisterPanelcfgVariant(stat.VariantConfig())
	r.RegisterPanelcfgVariant(table.VariantConfig())
	r.RegisterPanelcfgVariant(timeseries.VariantConfig())
	r.RegisterDataqueryVariant(grafana.VariantConfig())
})

// loadDashboard is dashboard.json by Grafana's own schema, which lets nothing through that
// it does not know.
func loadDashboard(t testing.TB) dashboard.Dashboard {
	t.Helper()
	knowPanels()
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	// Of the strict reading only the errors are of use: it gives a list of them, empty or
	// not, for each panel, and then leaves the panel out.
	var strict, d dashboard.Dashboard
	if err := strict.UnmarshalJSONStrict(text); err != nil {
		require.Empty(t, err.Error())
	}
	require.NoError(t, json.Unmarshal(text, &d))
	require.NoError(t, d.Validate())
	return d
}

// panelsOf is the panels with their queries, by their titles.
func panelsOf(t testing.TB, d dashboard.Dashboard) map[string][]string {
	t.Helper()
	panels := map[string][]string{}
	for _, p := range d.Panels {
		if p.Panel == nil {
			continue
		}
		for _, target := range p.Panel.Targets {
			q, ok := target.(*grafana.Dataquery)
			if !ok {
				value, isValue := target.(grafana.Dataquery)
				require.True(t, isValue, "%T", target)
				q = &value
			}
			panels[*p.Panel.Title] = append(panels[*p.Panel.Title], q.Expr)
		}
	}
	require.NotEmpty(t, panels)
	return panels
}

func TestTheDashboardIsOfGrafanasSchema(t *testing.T) {
	t.Parallel()
	d := loadDashboard(t)
	ids, titles := map[uint32]bool{}, map[string]bool{}
	filled := map[[2]uint32]string{}
	for _, p := range d.Panels {
		if p.RowPanel != nil {
			require.False(t, ids[p.RowPanel.Id], "id %d twice", p.RowPanel.Id)
			ids[p.RowPanel.Id] = true
			continue
		}
		panel := p.Panel
		require.False(t, ids[*panel.Id] || titles[*panel.Title], *panel.Title)
		ids[*panel.Id], titles[*panel.Title] = true, true
		require.NotEmpty(t, *panel.Description, *panel.Title)
		require.NotEmpty(t, panel.Targets, *panel.Title)
		require.Equal(t, "${datasource}", *panel.Datasource.Uid, *panel.Title)
		at := panel.GridPos
		require.LessOrEqual(t, at.X+at.W, uint32(24), *panel.Title)
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				require.Empty(t, filled[[2]uint32{x, y}], "%s lies over another panel", *panel.Title)
				filled[[2]uint32{x, y}] = *panel.Title
			}
		}
	}
	variables := map[string]bool{}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
	}
	require.Equal(t, map[string]bool{"datasource": true, "queue": true, "kind": true}, variables)
	for _, name := range metricNames(t) {
		shown := false
		for _, queries := range panelsOf(t, d) {
			shown = shown || strings.Contains(strings.Join(queries, "\n"), name)
		}
		require.True(t, shown, "the dashboard does not show %s", name)
	}
}

// requirePanels asks a Prometheus that has seen everything what each panel would: none is
// empty.
func requirePanels(t *testing.T, p *prom, since time.Time) {
	t.Helper()
	for title, queries := range panelsOf(t, loadDashboard(t)) {
		for _, query := range queries {
			rendered := strings.NewReplacer("$queue", ".*", "$kind", ".*", "$__rate_interval", "4s").Replace(query)
			require.NotContains(t, rendered, "$", title)
			require.NotZero(t, p.series(t, rendered, since), "%s: %s", title, rendered)
		}
	}
}
