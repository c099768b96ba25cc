package main

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func sample() *report {
	rate := func(system string, n int, median float64) result {
		return result{
			Workload: "drain-100", Title: "drain, slots: 100", Unit: perSecond, More: true, System: system,
			N: n, Rounds: []float64{median - 1, median, median + 1}, Median: median,
		}
	}
	late := func(system string, median float64) result {
		return result{
			Workload: "idle", Title: "idle <worker>", Metric: "p99", Unit: millis, System: system, N: 200, Rounds: []float64{median}, Median: median,
		}
	}
	failed := late("slow", 0)
	failed.Failed = "2 distinct jobs ran, not 3"
	return &report{
		Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Took: 61, Rounds: 3, Machine: "a CPU",
		Versions: map[string]string{"Redis": "7.0.15", "Go": "1.26"},
		Systems:  []reportedSystem{{"pawl", "defaults"}, {"raw", "bare"}, {"slow", "as it is"}},
		LeftOut:  []string{"river: no PostgreSQL"},
		Results: []result{
			rate("pawl", 100_000, 50_000), rate("raw", 100_000, 125_000), rate("slow", 2_000, 1_234.5), late("pawl", 0.5), failed,
		},
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	require.NoError(t, sample().writeTable(&text))
	require.Equal(t, strings.TrimLeft(`
| workload           | unit   |       N |   pawl |             raw |                    slow |
| ------------------ | ------ | ------: | -----: | --------------: | ----------------------: |
| drain, slots: 100  | jobs/s | 100,000 | 50,000 | 125,000 (2.50×) | 1,235 (0.025×, N=2,000) |
| idle <worker>: p99 | ms     |     200 |  0.500 |               – |                  failed |

Median of 3 rounds; in brackets how many times pawl's value. 2026-01-02 03:04:05 UTC, 61 s.
Machine: a CPU.
Versions: Go 1.26, Redis 7.0.15.
Redis: --save "" --appendonly no.
pawl: defaults.
raw: bare.
slow: as it is.
Left out: river: no PostgreSQL.
Failed: idle, slow: 2 distinct jobs ran, not 3
`, "\n"), text.String())
}

func TestATableWithoutPawlHasNoRatios(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Systems, r.Results = r.Systems[1:2], r.Results[1:2]
	var text strings.Builder
	require.NoError(t, r.writeTable(&text))
	require.Contains(t, text.String(), "| 125,000 |")
	require.NotContains(t, text.String(), "×")
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0", 7: "7", 1000: "1,000", 1234567.8: "1,234,568", 123.4: "123", 12.34: "12.3", 1.234: "1.23", 0.1234: "0.123",
		0.00012: "0.00012", -1500: "-1,500", -0.5: "-0.500",
	} {
		require.Equal(t, want, number(v))
	}
}

func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "r.json")
	r := sample()
	require.NoError(t, r.writeJSON(path))
	back, err := readJSON(path)
	require.NoError(t, err)
	require.Equal(t, r, back)

	svg := filepath.Join(t.TempDir(), "r.svg")
	var table strings.Builder
	err = bench(t.Context(), []string{"-from", path, "-svg", svg}, &table, io.Discard)
	require.EqualError(t, err, "1 values could not be measured")
	require.Contains(t, table.String(), "125,000 (2.50×)")
	require.FileExists(t, svg)
}

func TestSVG(t *testing.T) {
	t.Parallel()
	text := sample().svg()
	decoder := xml.NewDecoder(strings.NewReader(text))
	bars := map[string]int{}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "rect" {
			for _, a := range start.Attr {
				if a.Name.Local == "fill" {
					bars[a.Value]++
				}
			}
		}
	}
	require.Equal(t, map[string]int{"#fff": 1, colors[0]: 2, colors[1]: 1, colors[2]: 1}, bars, "no bar for what failed")
	require.Contains(t, text, "125,000 (2.50×)")
	require.Contains(t, text, "idle &lt;worker&gt;")
	require.Contains(t, text, `width="528" height="14" fill="`+colors[1], "the longest bar fills the room")
	require.Contains(t, text, `width="211" height="14" fill="`+colors[0], "the others are in proportion")
}
