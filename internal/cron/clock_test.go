package cron_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/cron"
)

// usual are lines with times in and beside what changes of clocks skip and
// repeat.
var usual = []string{
	"30 2 * * *", "30 1 * * *", "0 3 * * *", "0 12 * * *", "*/15 2 * * *", "0 1-3 * * *", "10 2 * 3,10 sun",
	"*/30 * * * *", "0 * * * *", "45 */1 * * *", "45 0-23 * * *", "15 */2 * * *",
	"0 0 * * *", "30 0 * * *", "59 23 * * *", "0 0 31 * *", "0 0 29 2 *", "0 9 13 * fri", "0 0 */2 * mon", "5 4 1,15 * 7",
}

func TestTwoYearsOfZones(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Europe/Berlin", "America/New_York",
		"Australia/Lord_Howe", // half an hour
		"America/Havana",      // at midnight
		"Africa/Casablanca",   // behind in Ramadan, and seldom half a year
		"Antarctica/Troll",    // two hours
		"Asia/Kolkata", "UTC", // no changes
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agree(t, zone(t, name), date(2026, 1, 1), date(2028, 1, 1), usual...)
		})
	}
}

// Changes that were not to summer and back.
func TestOddChanges(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]time.Time{
		"Pacific/Apia":               date(2011, 12, 30), // a day left out
		"Pacific/Kwajalein":          date(1993, 8, 21),  // another
		"America/Caracas":            date(2016, 5, 1),   // half an hour ahead for good
		"Asia/Pyongyang":             date(2015, 8, 15),  // half an hour back for good
		"Asia/Kathmandu":             date(1986, 1, 1),   // a quarter of an hour, at midnight
		"America/Sao_Paulo":          date(2018, 2, 18),  // back at midnight: 23:00 to 24:00 twice
		"Asia/Gaza":                  date(2023, 4, 29),
		"Europe/Lisbon":              date(1992, 9, 27), // two changes at one moment
		"Antarctica/Casey":           date(2020, 10, 4), // three hours
		"Antarctica/Macquarie":       date(2011, 4, 3),
		"America/Argentina/San_Luis": date(2008, 1, 21),
		"Africa/Cairo":               date(2010, 9, 10), // four changes in a year
		"Europe/London":              date(1968, 10, 27),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agree(t, zone(t, name), at.AddDate(0, 0, -15), at.AddDate(0, 0, 15), append(usual, "30 12 30 12 *", "* * * * *", "7 * 30 * *")...)
		})
	}
}

// What the rules mean, without an oracle.
func TestClockChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		says, line, zone, after string
		want                    []string
	}{
		{"a skipped time fires when the gap ends", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"all of a gap fire once, with what is due at its end", "*/15 2,3 * * *", "Europe/Berlin", "2026-03-29T00:59:59Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-29T01:15:00Z"}},
		{"the end of a gap is not after itself", "30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z",
			[]string{"2026-03-30T00:30:00Z"}},
		{"of a time that comes twice the first fires", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"asked between the two, it has fired", "30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z",
			[]string{"2026-10-26T01:30:00Z"}},
		{"what follows the repeated hour fires after it", "0 3 * * *", "Europe/Berlin", "2026-10-25T00:59:00Z",
			[]string{"2026-10-25T02:00:00Z"}},
		{"every real hour, when one comes twice", "0 * * * *", "America/New_York", "2026-11-01T04:30:00Z",
			[]string{"2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z", "2026-11-01T07:00:00Z"}},
		{"every real half hour, over a change of half an hour", "*/30 * * * *", "Australia/Lord_Howe", "2026-10-03T14:45:00Z",
			[]string{"2026-10-03T15:00:00Z", "2026-10-03T15:30:00Z", "2026-10-03T16:00:00Z"}},
		{"an hour that the clock does not show does not fire, with every hour", "0 * * * *", "Australia/Lord_Howe", "2026-10-03T14:00:00Z",
			[]string{"2026-10-03T14:30:00Z", "2026-10-03T16:00:00Z"}},
		{"midnight may be skipped", "@daily", "America/Havana", "2026-03-07T12:00:00Z",
			[]string{"2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"}},
		{"a day that was left out fires when it has been", "0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z",
			[]string{"2011-12-30T10:00:00Z", "2012-12-29T22:00:00Z"}},
		{"and not beside the next", "0 0 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z",
			[]string{"2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"}},
		{"the gap may end at any second", "10 0 * * *", "Africa/Monrovia", "1972-01-06T12:00:00Z",
			[]string{"1972-01-07T00:44:30Z", "1972-01-08T00:10:00Z"}},
		{"and the zone be seconds from UTC", "*/30 * * * *", "Africa/Monrovia", "1971-06-01T00:00:00Z",
			[]string{"1971-06-01T00:14:30Z", "1971-06-01T00:44:30Z"}},
	} {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			l, err := cron.Parse(c.line)
			require.NoError(t, err)
			at, err := time.Parse(time.RFC3339, c.after)
			require.NoError(t, err)
			for _, want := range c.want {
				at, err = l.Next(at, zone(t, c.zone))
				require.NoError(t, err)
				require.Equal(t, want, at.Format(time.RFC3339Nano))
			}
		})
	}
}

// For zones whose rule goes on for ever, Go says of the last day of a leap year
// that its offset ended at the midnight before.
func TestTheLastDayOfALeapYear(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago"} {
		for _, year := range []int{2028, 2040, 2400} {
			agree(t, zone(t, name), date(year, 12, 30), date(year+1, 1, 3), usual...)
		}
	}
}
