package cron_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pawlq/pawl/internal/cron"
)

func TestTheFirstAndTheLastYear(t *testing.T) {
	t.Parallel()
	next := func(line, name string, after time.Time) (time.Time, error) {
		l, err := cron.Parse(line)
		require.NoError(t, err)
		return l.Next(after, zone(t, name))
	}
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "Pacific/Kiritimati"} {
		for _, line := range []string{"* * * * *", "30 2 * * *", "0 0 29 2 *", "*/30 * 1 1 *"} {
			at, err := next(line, name, time.Time{})
			require.NoError(t, err)
			require.True(t, at.After(time.Time{}))
			require.Less(t, at.Year(), 6)

			at, err = next(line, name, date(9996, 2, 28))
			require.NoError(t, err)
			require.LessOrEqual(t, at.Year(), 9997)
		}
		at, err := next("0 12 30 12 *", name, date(9999, 12, 29))
		require.NoError(t, err)
		require.Equal(t, 9999, at.In(zone(t, name)).Year())
		_, err = next("0 0 29 2 *", name, date(9996, 3, 2))
		require.ErrorContains(t, err, "before the year 10000")
		_, err = next("0 */1 29 2 *", name, date(9996, 3, 2))
		require.ErrorContains(t, err, "before the year 10000")
	}
	last := time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)
	_, err := next("* * * * *", "UTC", last)
	require.ErrorContains(t, err, "before the year 10000")
	at, err := next("59 23 31 12 *", "UTC", last.Add(-time.Minute))
	require.NoError(t, err)
	require.Equal(t, last.Truncate(time.Minute), at)
	_, err = next("59 23 31 12 *", "America/New_York", date(9999, 6, 1))
	require.ErrorContains(t, err, "before the year 10000", "it is 04:59 of 10000 in UTC")

	for _, after := range outside {
		_, err := next("* * * * *", "UTC", after)
		require.ErrorContains(t, err, "1 to 9999")
		_, err = cron.Grid(after, date(2026, 1, 1), time.Second)
		require.ErrorContains(t, err, "1 to 9999")
		_, err = cron.Grid(date(2026, 1, 1), after, time.Second)
		require.ErrorContains(t, err, "1 to 9999")
	}
}

var outside = []time.Time{
	date(0, 12, 31), date(-1, 1, 1), date(10000, 1, 1), date(math.MaxInt32, 1, 1), date(math.MinInt32, 1, 1),
	time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0), time.UnixMilli(math.MaxInt64), time.UnixMilli(math.MinInt64),
	time.Time{}.Add(-1),
}

// A line that fires once in many years.
func TestRareDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line  string
		after time.Time
		want  []time.Time
	}{
		{"0 0 29 2 *", date(2092, 3, 1), []time.Time{date(2096, 2, 29), date(2104, 2, 29)}},
		{"0 * 29 2 *", date(2096, 3, 1), []time.Time{date(2104, 2, 29)}},
		{"0 0 29 2 */7", date(2085, 1, 1), []time.Time{date(2088, 2, 29), date(2128, 2, 29)}}, // on Sundays
	} {
		l, err := cron.Parse(c.line)
		require.NoError(t, err)
		at := c.after
		for _, want := range c.want {
			at, err = l.Next(at, time.UTC)
			require.NoError(t, err)
			require.Equal(t, want, at, c.line)
		}
	}
}

func TestGrid(t *testing.T) {
	t.Parallel()
	anchor := time.Date(2026, 1, 1, 0, 0, 7, 250e6, time.UTC)
	for _, c := range []struct{ after, want time.Duration }{
		{0, 15 * time.Minute},
		{-1, 0},
		{1, 15 * time.Minute},
		{15*time.Minute - 1, 15 * time.Minute},
		{15 * time.Minute, 30 * time.Minute},
		{-15 * time.Minute, 0},
		{-15*time.Minute - 1, -15 * time.Minute}, // a clock that was put back
		{1000*time.Hour + 1, 1000*time.Hour + 15*time.Minute},
	} {
		at, err := cron.Grid(anchor.Add(c.after), anchor, 15*time.Minute)
		require.NoError(t, err)
		require.Equal(t, anchor.Add(c.want), at, "%v after the anchor", c.after)
	}
	for _, step := range []time.Duration{0, -time.Second, 1, time.Millisecond + 1, math.MinInt64, math.MaxInt64} {
		_, err := cron.Grid(anchor, anchor, step)
		require.ErrorContains(t, err, "whole milliseconds")
	}
	_, err := cron.Grid(date(9999, 12, 31), anchor, 1000*time.Hour*24)
	require.ErrorContains(t, err, "before the year 10000")
}

// The grid in whole numbers of any size.
func TestGridIsExact(t *testing.T) {
	t.Parallel()
	billion := big.NewInt(1e9)
	nanos := func(t time.Time) *big.Int {
		n := new(big.Int).Mul(big.NewInt(t.Unix()), billion)
		return n.Add(n, big.NewInt(int64(t.Nanosecond())))
	}
	first, last := date(1, 1, 1).Unix(), date(10000, 1, 1).Unix()-1
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.OneOf(rapid.Int64Range(first, last), rapid.SampledFrom([]int64{first, last, 0, 1, -1}))
		rest := rapid.OneOf(rapid.Int64Range(0, 1e9-1), rapid.SampledFrom([]int64{0, 1, 1e6, 999e6, 1e9 - 1}))
		after := time.Unix(seconds.Draw(t, "after"), rest.Draw(t, "after rest"))
		anchor := time.Unix(seconds.Draw(t, "anchor"), rest.Draw(t, "anchor rest"))
		step := time.Duration(rapid.OneOf(rapid.Int64Range(1, 10), rapid.Int64Range(1, 36525*24*3600*1000)).Draw(t, "step")) * time.Millisecond

		size := big.NewInt(int64(step))
		k := new(big.Int).Div(new(big.Int).Sub(nanos(after), nanos(anchor)), size) // rounds down, as size > 0
		want := k.Add(k, big.NewInt(1)).Mul(k, size)
		want.Add(want, nanos(anchor))

		at, err := cron.Grid(after, anchor, step)
		if want.Cmp(nanos(date(10000, 1, 1))) >= 0 {
			require.ErrorContains(t, err, "before the year 10000")
			return
		}
		require.NoError(t, err)
		require.Zero(t, want.Cmp(nanos(at)), "%v, want %v ns", at, want)
	})
}
