package cron_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestClockChangeTable holds the table of the documentation: what fires in the
// two hours before and after each change of the clock.
func TestClockChangeTable(t *testing.T) {
	t.Parallel()
	fixed := []string{"30 1 * * *", "30 2 * * *"}
	wild := []string{"0 * * * *", "*/30 * * * *"}
	var b strings.Builder
	b.WriteString("| zone | day | the clock |")
	for _, line := range append(fixed, wild...) {
		fmt.Fprintf(&b, " `%s` |", line)
	}
	b.WriteString("\n" + strings.Repeat("| --- ", 3+len(fixed)+len(wild)) + "|\n")
	for _, change := range []struct {
		zone string
		at   string
	}{
		{"Europe/Berlin", "2026-03-29T01:00:00Z"},
		{"Europe/Berlin", "2026-10-25T01:00:00Z"},
		{"America/New_York", "2026-03-08T07:00:00Z"},
		{"America/New_York", "2026-11-01T06:00:00Z"},
		{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"},
		{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
	} {
		z := zone(t, change.zone)
		at, err := time.Parse(time.RFC3339, change.at)
		require.NoError(t, err)
		_, old := at.Add(-1).In(z).Zone()
		fmt.Fprintf(&b, "| %s | %s | %s becomes %s |", change.zone, at.In(z).Format(time.DateOnly),
			at.Add(time.Duration(old)*time.Second).Format("15:04"), at.In(z).Format("15:04"))
		from, to := at.Add(-2*time.Hour), at.Add(2*time.Hour+1)
		for _, line := range fixed {
			for _, f := range firings(t, line, z, from, to) {
				fmt.Fprintf(&b, " %s, at %s UTC", f.In(z).Format("15:04"), f.Format("15:04"))
			}
			b.WriteString(" |")
		}
		for _, line := range wild {
			for _, f := range firings(t, line, z, from, to) {
				b.WriteString(" " + f.In(z).Format("15:04"))
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	want, err := os.ReadFile("testdata/clock-changes.md")
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}
