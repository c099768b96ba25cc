package cron_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pawlq/pawl/internal/cron"
)

var changing = []string{
	"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Africa/Casablanca", "Africa/Cairo",
	"Antarctica/Troll", "America/St_Johns", "Asia/Tehran", "America/Santiago", "Pacific/Chatham", "Asia/Gaza", "Europe/Dublin",
}

// changes finds the moments of a year at which a clock changes, to the hour.
func changes(zone *time.Location, year int) (list []time.Time) {
	ahead := func(t time.Time) int { _, seconds := t.In(zone).Zone(); return seconds }
	for at := date(year, 1, 1); at.Year() == year; at = at.Add(time.Hour) {
		if ahead(at) != ahead(at.Add(-time.Hour)) {
			list = append(list, at)
		}
	}
	return list
}

// drawField draws a field that often matches, so that a line fires.
func drawField(t *rapid.T, name string, least, most int) string {
	value := rapid.IntRange(least, most)
	span := func() string {
		low := value.Draw(t, name)
		return fmt.Sprintf("%d-%d", low, rapid.IntRange(low, most).Draw(t, name))
	}
	step := rapid.IntRange(1, (most-least)/2+1)
	item := func() string {
		switch rapid.IntRange(0, 6).Draw(t, name+" form") {
		case 0, 1:
			return "*"
		case 2:
			return fmt.Sprintf("*/%d", step.Draw(t, name))
		case 3:
			return span()
		case 4:
			return fmt.Sprintf("%s/%d", span(), step.Draw(t, name))
		case 5:
			return fmt.Sprintf("%d/%d", min(value.Draw(t, name), most-1), step.Draw(t, name))
		}
		return fmt.Sprint(value.Draw(t, name))
	}
	list := make([]string, rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, name+" items"))
	for i := range list {
		list[i] = item()
	}
	return strings.Join(list, ",")
}

func drawLine(t *rapid.T) string {
	hour := rapid.SampledFrom([]string{"", "", "*", "2", "1,2", "0", "0-3", "*/1"}).Draw(t, "hours")
	if hour == "" {
		hour = drawField(t, "hour", 0, 23)
	}
	return strings.Join([]string{
		drawField(t, "minute", 0, 59), hour, drawField(t, "day", 1, 31), drawField(t, "month", 1, 12), drawField(t, "weekday", 0, 7),
	}, " ")
}

func TestRandomLinesOverChanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		z := zone(t, rapid.SampledFrom(changing).Draw(t, "zone"))
		at := date(rapid.IntRange(1980, 2060).Draw(t, "year"), 6, 1)
		if list := changes(z, at.Year()); len(list) > 0 {
			at = rapid.SampledFrom(list).Draw(t, "change")
		}
		from, to := at.Add(-50*time.Hour), at.Add(50*time.Hour)
		line := drawLine(t)
		if _, err := cron.Parse(line); err != nil {
			require.ErrorContains(t, err, "never fires", line)
			return
		}
		agree(t, z, from, to, line)

		// From any moment, and not only from one firing to the next.
		l, err := cron.Parse(line)
		require.NoError(t, err)
		list := firings(t, line, z, from, to)
		for range 5 {
			after := from.Add(time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "after")))
			next, err := l.Next(after.In(z), z)
			require.NoError(t, err)
			if i := slices.IndexFunc(list, func(f time.Time) bool { return f.After(after) }); i >= 0 {
				require.True(t, next.Equal(list[i]), "%s in %v after %v: %v, want %v", line, z, after, next, list[i])
			} else {
				require.False(t, next.Before(to))
			}
		}
	})
}
