package pawl

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fullDefinition is one with something in each place.
func fullDefinition() definition {
	return definition{spec: "every 1m0s", missed: MissedAll, overlap: OverlapSkip, delay: 1500, record: rec(priority(3))}
}

func TestADefinitionIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, d := range []definition{{}, fullDefinition(), {spec: strings.Repeat("x", 300), record: "r"}} {
		got, err := parseDefinition(d.text())
		require.NoError(t, err)
		require.Equal(t, d, got)
	}
	// docs/storage.md has these bytes.
	require.Equal(t, "\x01\x0aevery 1m0s\x02\x01\xdc\x0b"+rec(priority(3)), fullDefinition().text())
}

func TestADefinitionThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	_, err := parseDefinition("\x02 of a newer build")
	require.ErrorIs(t, err, errNewer)
	full := fullDefinition().text()
	for _, text := range []string{"", "\x00", "\x01", full[:5], full[:len("\x01\x0aevery 1m0s")], "\x01\x00\x03\x00\x00", "\x01\x00\x00\x02\x00",
		"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		_, err := parseDefinition(text)
		require.Error(t, err, "%q", text)
		require.NotErrorIs(t, err, errNewer)
	}
}

func TestAStateIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	s := scheduleState{rev: "AB12", anchor: 1, next: 1750000000123, last: 3, job: "4-5", fired: 6, missed: 7, skipped: 8, paused: true}
	require.Equal(t, "AB12 1 1750000000123 3 4-5 6 7 8 1", s.text())
	got, ok := parseScheduleState(s.text())
	require.True(t, ok)
	require.Equal(t, s, got)
	for _, text := range []string{"", "a", "a 1 2 3 - 4 5 6", "a 1 2 3 - 4 5 6 2", "a 1 2 3 - 4 5 6 7 8", "a -1 2 3 - 4 5 6 0", "a +1 2 3 - 4 5 6 0",
		" 1 2 3 - 4 5 6 0", "a 1 2 3  4 5 6 0", "a b 2 3 - 4 5 6 0", "a 1 9999999999999999 3 - 4 5 6 0", "ü 1 2 3 - 4 5 6 0", "a 1 2 3 - 4 5 6 0\n"} {
		_, ok := parseScheduleState(text)
		require.False(t, ok, "%q", text)
	}
}

func FuzzDefinition(f *testing.F) {
	f.Add(fullDefinition().text())
	f.Add(definition{spec: "cron 0 2 * * * in Europe/Berlin"}.text())
	f.Add("\x01\xff\xff\xff\xff\x0f")
	f.Add("\x02")
	f.Add("AB12 1 1750000000123 3 4-5 6 7 8 1")
	q := &queueState{name: "q"}
	f.Fuzz(func(t *testing.T, text string) {
		if s, ok := parseScheduleState(text); ok {
			again, ok := parseScheduleState(s.text())
			require.True(t, ok)
			require.Equal(t, s, again)
		}
		d, err := parseDefinition(text)
		if err != nil {
			return
		}
		again, err := parseDefinition(d.text())
		require.NoError(t, err)
		require.Equal(t, d, again)
		_, _ = parseSpec(d.spec)
		if it, err := d.job(q, "s", 5); err == nil {
			require.NotEmpty(t, it.record)
			_ = it.how(1)
		}
		_ = seenSchedule{id: "s", definition: text}.info()
	})
}

// What passed is what a walk over each tick finds.
func TestPassedTicks(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC).UnixMilli()
	const day = 24 * 3600 * 1000
	for name, c := range map[string]struct {
		spec  Spec
		first int64
		now   int64
	}{
		"none":               {Every(time.Minute), start + 1, start},
		"one":                {Every(time.Minute), start, start},
		"one off the grid":   {Every(time.Hour), start - 7, start},
		"some":               {Every(time.Second), start - 12_345, start},
		"a day of seconds":   {Every(time.Second), start - day, start},
		"some of a cron":     {Cron("*/7 * * * *"), start - day, start},
		"a month of minutes": {Cron("* * * * *"), start - 30*day, start},
		"a zone":             {CronIn("Europe/Berlin", "30 2 * * *"), start - 400*day, start},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			anchor := start - 5000*1000
			for _, keep := range []int{1, 2, 100} {
				var all []int64
				at := c.first
				for at <= c.now {
					all = append(all, at)
					var err error
					at, err = nextTick(c.spec, at, anchor)
					require.NoError(t, err)
				}
				p, err := passed(c.spec, c.first, c.now, anchor, keep)
				require.NoError(t, err)
				require.EqualValues(t, len(all), p.count)
				require.Equal(t, at, p.next)
				if len(all) == 0 {
					require.Empty(t, p.newest)
				} else {
					require.Equal(t, all[max(0, len(all)-keep):], p.newest)
				}
			}
		})
	}
}

// A line that fires each minute, and was not looked at for years.
func TestALongAbsenceIsJumpedOver(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC).UnixMilli()
	for line, newest := range map[string]time.Duration{"* * * * *": 30 * time.Second, "* * * 6 *": 0, "* * 29 2 *": 0} {
		p, err := passed(Cron(line), now-20*365*24*3600*1000, now, 0, 100)
		require.NoError(t, err)
		require.Len(t, p.newest, 100)
		require.LessOrEqual(t, p.count, int64(3*maxPassed))
		require.Greater(t, p.next, now)
		for i := 1; i < 100; i++ {
			at, err := nextTick(Cron(line), p.newest[i-1], 0)
			require.NoError(t, err)
			require.Equal(t, at, p.newest[i])
		}
		if newest > 0 {
			require.Equal(t, now-newest.Milliseconds(), p.newest[99])
		}
	}
}
