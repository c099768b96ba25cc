package cron_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/cron"
)

// FuzzLine: any line is refused with a short error, or fires after any time,
// in a minute that the clock shows or has just left out.
func FuzzLine(f *testing.F) {
	zones := []*time.Location{
		time.UTC, zone(f, "Europe/Berlin"), zone(f, "Australia/Lord_Howe"), zone(f, "America/Havana"), zone(f, "Africa/Casablanca"),
	}
	for i, line := range []string{
		"", "* * * * *", "30 2 * * *", "*/30 * * * *", "0 0 29 2 *", "0 0 29 2 */7", "1,2-3/4 5/6 7 jan-DEC sun-7", "@daily", "@every 1s", "@reboot",
		"TZ=UTC * * * * *", "0 0 2 * * *", "? ? ? ? ?", "60 * * * *", "*-5 * * * *", ",,, * * * *", "0 0 30 2 *", "\x00", "\xff\xfe 1 1 1 1",
		"18446744073709551616 * * * *", strings.Repeat("1,", 1<<15), "0 0 * * 7/7", "0\u00a02\u2003* * *",
	} {
		f.Add(line, byte(i), int64(1_790_000_000+i*7_000_000))
	}
	f.Fuzz(func(t *testing.T, line string, which byte, seconds int64) {
		l, err := cron.Parse(line)
		if err != nil {
			require.Nil(t, l)
			require.Less(t, len(err.Error()), 1500)
			return
		}
		z := zones[int(which)%len(zones)]
		after := time.Unix(seconds%(200*365*86400), 0).UTC() // of the years 1770 to 2169
		at, err := l.Next(after, z)
		require.NoError(t, err)
		require.True(t, at.After(after))
		again, err := l.Next(at.Add(-1), z)
		require.NoError(t, err)
		require.Equal(t, at, again, "it fires at that moment, whatever is asked before it")
		if at.Year() > 1980 && !strings.HasPrefix(strings.TrimSpace(line), "@") {
			agree(t, z, at.Truncate(time.Minute), at.Add(time.Minute), line)
		}
	})
}
