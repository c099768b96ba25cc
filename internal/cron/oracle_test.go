package cron_test

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the tests are about zones, whatever the machine has

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/cron"
)

// The oracle judges each real minute by what the clock shows then. It knows no
// bounds of zones, no sets of bits and no library, and is slow.

// minute is a real minute.
type minute struct {
	at      time.Time
	wall    reading
	again   bool      // the clock has shown it before
	skipped []reading // what it left out just before, and had not shown
}

// reading is what a clock shows.
type reading struct{ minute, hour, day, month, weekday int }

func readingOf(wall time.Time) reading {
	return reading{wall.Minute(), wall.Hour(), wall.Day(), int(wall.Month()), int(wall.Weekday())}
}

// minutes walks the real minutes of a time, for a clock that is whole minutes
// from UTC.
func minutes(from, to time.Time, zone *time.Location) iter.Seq[minute] {
	shows := func(t time.Time) time.Time { // as a time in UTC
		_, ahead := t.In(zone).Zone()
		return t.UTC().Add(time.Duration(ahead) * time.Second)
	}
	// What was shown before is known from three days before on.
	start := from.Truncate(time.Minute).Add(-72 * time.Hour)
	base := shows(start).Add(-72 * time.Hour)
	shown := make([]bool, int(to.Sub(start)/time.Minute)+6*24*60)
	seen := func(wall time.Time) *bool { return &shown[int(wall.Sub(base)/time.Minute)] }
	return func(yield func(minute) bool) {
		before := shows(start.Add(-time.Minute))
		for at := start; at.Before(to); at = at.Add(time.Minute) {
			wall := shows(at)
			m := minute{at: at, wall: readingOf(wall), again: *seen(wall)}
			for left := before.Add(time.Minute); left.Before(wall); left = left.Add(time.Minute) {
				if !*seen(left) {
					m.skipped = append(m.skipped, readingOf(left))
				}
			}
			*seen(wall) = true
			before = wall
			if !at.Before(from) && !yield(m) {
				return
			}
		}
	}
}

// oracle is a line as it reads to a person.
type oracle struct {
	minute, hour, day, month, weekday [60]bool
	everyHour, eitherDay              bool
}

func newOracle(line string) *oracle {
	f := strings.Fields(line)
	starred := func(text string) bool { return strings.HasPrefix(text, "*") || strings.HasPrefix(text, "?") }
	months := []string{"", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	o := &oracle{
		minute: members(f[0], 0, 59, nil), hour: members(f[1], 0, 23, nil), day: members(f[2], 1, 31, nil),
		month:     members(f[3], 1, 12, months),
		weekday:   members(f[4], 0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}),
		eitherDay: !starred(f[2]) && !starred(f[4]),
	}
	for item := range strings.SplitSeq(f[1], ",") {
		o.everyHour = o.everyHour || item == "*" || item == "?" || item == "*/1" || item == "?/1"
	}
	o.weekday[0] = o.weekday[0] || o.weekday[7]
	return o
}

// members lists a field the long way.
func members(text string, least, most int, names []string) (set [60]bool) {
	number := func(s string) int {
		if i := slices.Index(names, strings.ToLower(s)); i >= 0 && s != "" {
			return i
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			panic(err)
		}
		return n
	}
	for item := range strings.SplitSeq(text, ",") {
		span, stepText, stepped := strings.Cut(item, "/")
		step := 1
		if stepped {
			step = number(stepText)
		}
		low, high := least, most
		if span != "*" && span != "?" {
			a, b, isRange := strings.Cut(span, "-")
			low, high = number(a), number(a)
			switch {
			case isRange:
				high = number(b)
			case stepped:
				high = max(low, most)
			}
		}
		for n := low; n <= high; n += step {
			set[n] = true
		}
	}
	return set
}

func (o *oracle) names(wall reading) bool {
	if !o.minute[wall.minute] || !o.hour[wall.hour] || !o.month[wall.month] {
		return false
	}
	day, weekday := o.day[wall.day], o.weekday[wall.weekday]
	if o.eitherDay {
		return day || weekday
	}
	return day && weekday
}

// fires is the rule: with every hour, whenever the clock shows a time of the
// line; else at the first showing of one, or when one has been left out.
func (o *oracle) fires(m *minute) bool {
	if o.everyHour {
		return o.names(m.wall)
	}
	return !m.again && o.names(m.wall) || slices.ContainsFunc(m.skipped, o.names)
}

// agree compares lines with the oracle over a time.
func agree(t require.TestingT, zone *time.Location, from, to time.Time, lines ...string) {
	oracles := make([]*oracle, len(lines))
	want := make([][]time.Time, len(lines))
	for i, line := range lines {
		oracles[i] = newOracle(line)
	}
	for m := range minutes(from, to, zone) {
		for i, o := range oracles {
			if !o.minute[m.wall.minute] && m.skipped == nil {
				continue // most do
			}
			if o.fires(&m) {
				want[i] = append(want[i], m.at)
			}
		}
	}
	for i, line := range lines {
		got := firings(t, line, zone, from, to)
		same := slices.EqualFunc(want[i], got, time.Time.Equal)
		require.True(t, same, "%s in %s from %v: %s", line, zone, from, firstDifference(want[i], got, zone))
	}
}

func firstDifference(want, got []time.Time, zone *time.Location) string {
	for i := 0; ; i++ {
		switch {
		case i >= len(want) && i >= len(got):
			return "none"
		case i >= len(want):
			return fmt.Sprintf("%v too much", got[i].In(zone))
		case i >= len(got):
			return fmt.Sprintf("%v is missing", want[i].In(zone))
		case !want[i].Equal(got[i]):
			return fmt.Sprintf("%v, want %v", got[i].In(zone), want[i].In(zone))
		}
	}
}

// firings walks a line by Next, from a time on, and up to another.
func firings(t require.TestingT, line string, zone *time.Location, from, to time.Time) (list []time.Time) {
	l, err := cron.Parse(line)
	require.NoError(t, err, line)
	for at := from.Add(-1); ; {
		next, err := l.Next(at, zone)
		if err != nil || !next.After(at) || next.Location() != time.UTC {
			require.Fail(t, "no next time", "%s in %s after %v: %v, %v", line, zone, at, next, err)
			t.FailNow()
		}
		if !next.Before(to) {
			return list
		}
		list = append(list, next)
		at = next
	}
}

func zone(t require.TestingT, name string) *time.Location {
	if t, ok := t.(testing.TB); ok {
		t.Helper()
	}
	z, err := cron.Zone(name)
	require.NoError(t, err)
	return z
}

func date(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}
