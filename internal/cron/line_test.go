package cron_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/cron"
)

func TestLines(t *testing.T) {
	t.Parallel()
	const from = "2026-01-01T00:00:00Z" // a Thursday
	for line, want := range map[string]string{
		"5 * * * *":            "2026-01-01T00:05:00Z",
		"5/20 * * * *":         "2026-01-01T00:05:00Z",
		"7-9/2,59 0 * * *":     "2026-01-01T00:07:00Z",
		"  0\t2  * * *\n":      "2026-01-01T02:00:00Z",
		"0 07 * * *":           "2026-01-01T07:00:00Z",
		"? ? ? ? ?":            "2026-01-01T00:01:00Z",
		"0 0 * Feb *":          "2026-02-01T00:00:00Z",
		"0 0 1 feb-APR,12 *":   "2026-02-01T00:00:00Z",
		"0 0 * * MON":          "2026-01-05T00:00:00Z",
		"0 0 * * sat-7":        "2026-01-03T00:00:00Z",
		"0 0 * * 0":            "2026-01-04T00:00:00Z",
		"0 0 * * 7":            "2026-01-04T00:00:00Z",
		"0 0 * * 7/2":          "2026-01-04T00:00:00Z",
		"0 0 * * 7-7":          "2026-01-04T00:00:00Z",
		"0 0 * * 5-7/2":        "2026-01-02T00:00:00Z",
		"0 0 2-31 * 6-07/7":    "2026-01-02T00:00:00Z",
		"0 0 31 * *":           "2026-01-31T00:00:00Z",
		"0 0 30 2 1":           "2026-02-02T00:00:00Z", // the Mondays of February
		"0 0 29 2 *":           "2028-02-29T00:00:00Z",
		"0 0 29 2 */7":         "2032-02-29T00:00:00Z", // on a Sunday
		"0 0 13 * fri":         "2026-01-02T00:00:00Z", // either
		"0 0 13 * */5":         "2026-02-13T00:00:00Z", // both, as a star narrows: Sunday or Friday
		"0 0 */31 2 wed":       "2034-02-01T00:00:00Z", // the first, if a Wednesday
		"@hourly":              "2026-01-01T01:00:00Z",
		"@daily":               "2026-01-02T00:00:00Z",
		"@midnight":            "2026-01-02T00:00:00Z",
		" @weekly ":            "2026-01-04T00:00:00Z",
		"@monthly":             "2026-02-01T00:00:00Z",
		"@yearly":              "2027-01-01T00:00:00Z",
		"@annually":            "2027-01-01T00:00:00Z",
		"0 12 1 1 sun,mon,tue": "2026-01-01T12:00:00Z",
	} {
		l, err := cron.Parse(line)
		require.NoError(t, err, line)
		at, err := time.Parse(time.RFC3339, from)
		require.NoError(t, err)
		next, err := l.Next(at, time.UTC)
		require.NoError(t, err, line)
		require.Equal(t, want, next.Format(time.RFC3339Nano), line)
	}
}

func TestWrongLines(t *testing.T) {
	t.Parallel()
	for line, says := range map[string][]string{
		"":                                       {"empty", `"0 2 * * *"`},
		" \t ":                                   {"empty"},
		"02:00":                                  {"has 1 field, not 5"},
		"0 2 * *":                                {"4 fields", "minute hour day-of-month"},
		"0 0 2 * * *":                            {"six fields", "without seconds", "Every("},
		"0 0 2 * * * 2026":                       {"7 fields"},
		"60 * * * *":                             {"minute has \"60\"", "out of range", "0 to 59"},
		"-1 * * * *":                             {"minute has \"-1\""},
		"+1 * * * *":                             {"minute has \"+1\""},
		"1.5 * * * *":                            {"minute has \"1.5\""},
		"x * * * *":                              {"minute has \"x\"", "no value"},
		"*/0 * * * *":                            {"minute", "the step in \"*/0\" is not 1 to 60"},
		"*/90 * * * *":                           {"minute", "1 to 60"},
		"*/-5 * * * *":                           {"minute"},
		"*-5 * * * *":                            {"minute has \"*-5\""},
		"** * * * *":                             {"minute"},
		"1,,2 * * * *":                           {"minute has \"1,,2\""},
		", * * * *":                              {"minute has \",\""},
		"1-2-3 * * * *":                          {"minute"},
		"1/2/3 * * * *":                          {"minute"},
		"5-1 * * * *":                            {"minute", "ends before it begins"},
		"0 24 * * *":                             {"hour has \"24\"", "0 to 23"},
		"0 mon * * *":                            {"hour has \"mon\"", "no value"},
		"0 22-2 * * *":                           {"hour", "ends before it begins"},
		"0 H * * *":                              {"hour"},
		"0 0 0 * *":                              {"day of month has \"0\"", "1 to 31"},
		"0 0 32 * *":                             {"day of month has \"32\""},
		"0 0 L * *":                              {"day of month has \"L\"", "no value"},
		"0 0 15W * *":                            {"day of month"},
		"0 0 * 0 *":                              {"month has \"0\"", "1 to 12"},
		"0 0 * 13 *":                             {"month has \"13\"", "jan to dec"},
		"0 0 * january *":                        {"month has \"january\""},
		"0 0 * * 8":                              {"day of week has \"8\"", "out of range", "0 to 7"},
		"0 0 * * 8-7":                            {"day of week has \"8-7\"", "out of range"},
		"0 0 * * fri-sun":                        {"day of week has \"fri-sun\"", "Sunday is 7"},
		"0 0 * * 7-1":                            {"day of week has \"7-1\""},
		"0 0 * * mon#2":                          {"day of week has \"mon#2\""},
		"0 0 * * 5L":                             {"day of week"},
		"0 0 30 2 *":                             {"never fires", "day of month \"30\"", "month \"2\""},
		"0 0 31 feb,4,6,9 *":                     {"never fires"},
		"0 0 30 2 */2":                           {"never fires"},
		"@every 5m":                              {"@every 5m", "write Every"},
		"@every":                                 {"write Every"},
		"@reboot":                                {"@reboot", "enqueue"},
		"@Daily":                                 {"@Daily", "@daily"},
		"@":                                      {"@hourly"},
		"@daily 5":                               {"@daily", "alone"},
		"TZ=Europe/Berlin 0 2 * * *":             {`CronIn("Europe/Berlin", "0 2 * * *")`},
		`CRON_TZ="America/New_York" @daily`:      {`CronIn("America/New_York", "@daily")`},
		"TZ=":                                    {"CronIn("},
		"TZ=TZ=TZ=":                              {"CronIn("},
		"TZ=0":                                   {"CronIn("},
		"0 TZ=UTC * * *":                         {"hour"},
		"0 2 * * \x00":                           {"day of week"},
		"0 2 * * \xff":                           {"day of week has \"\\xff\""},
		"0 2 * * ٣":                              {"day of week"},
		"18446744073709551616 * * * *":           {"minute"},
		"0-18446744073709551615 * * * *":         {"minute"},
		"*/18446744073709551616 * * * *":         {"minute", "step"},
		"9223372036854775807/59 * * * *":         {"minute"},
		strings.Repeat("0", 1<<16):               {"65536 bytes"},
		strings.Repeat("0,", 1<<15) + " * * * *": {"bytes"},
		strings.Repeat("* ", 1<<15):              {"bytes"},
		strings.Repeat("9", 1000) + " * * * *":   {"minute"},
		strings.Repeat("1-", 400) + "2 * * * *":  {"minute"},
		strings.Repeat("x ", 400):                {"400 fields"},
		"@" + strings.Repeat("\x00", 1000):       {"not known"},
		"TZ=" + strings.Repeat("\xff", 1000):     {"CronIn("},
	} {
		l, err := cron.Parse(line)
		require.Error(t, err, "%.80q", line)
		require.Nil(t, l)
		for _, s := range says {
			require.ErrorContains(t, err, s, "%.80q", line)
		}
		require.Less(t, len(err.Error()), 900, "%.80q", line)
	}
}

// Every value that a field takes, written in each way, is what it says.
func TestEveryValue(t *testing.T) {
	t.Parallel()
	at := date(2026, 1, 1)
	_, err := cron.Parse(strings.Join([]string{numbers(0, 59), numbers(0, 23), numbers(1, 31), numbers(1, 12), numbers(0, 7)}, " "))
	require.NoError(t, err, "the longest line of numbers")
	agree(t, time.UTC, at, at.AddDate(0, 0, 3), numbers(0, 59)+" 1 * * *", "3 "+numbers(0, 23)+" * * *", "*/60 */24 * * *", "1-59/2 5/6 * * *")
	agree(t, time.UTC, at, at.AddDate(1, 0, 0), "0 0 "+numbers(1, 31)+" * *", "0 0 1 "+numbers(1, 12)+" *", "0 0 */31 */12 *",
		"0 0 * * "+numbers(0, 7), "0 0 * * 1-7/3", "0 0 * * 2-7/5", "0 0 * * 0-7/7", "0 0 * * 1/2", "0 0 * * */7",
		"0 0 1 JAN,Feb,mar,APR,may,jun,jul,aug,sep,oct,nov,DEC *", "0 0 * * SUN-tue,Thu")
}

// numbers writes a list out.
func numbers(least, most int) string {
	var list []string
	for n := least; n <= most; n++ {
		list = append(list, strconv.Itoa(n))
	}
	return strings.Join(list, ",")
}

func TestZones(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"":                         "empty",
		"Local":                    "differs from machine to machine",
		"local":                    "differs",
		"localtime":                "differs",
		"posix/localtime":          "differs",
		"posixrules":               "differs",
		"Europe/Nowhere":           "not known on this machine",
		"Europe":                   "not known",
		"../../etc/passwd":         "is no time zone",
		"/etc/localtime":           "",
		"/":                        "",
		"Europe/Berlin ":           "is no time zone",
		"Europe/Berlin\x00":        "is no time zone",
		"CET-1CEST,M3.5.0,M10.5.0": "is no time zone",
		"\xff":                     "is no time zone",
		strings.Repeat("A", 1<<16): "is no time zone",
		strings.Repeat("A", 60):    "not known",
	} {
		_, err := cron.Zone(name)
		require.ErrorContains(t, err, says, "%.80q", name)
		require.Less(t, len(err.Error()), 600, "%.80q", name)
	}
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+12", "America/Port-au-Prince"} {
		require.NoError(t, cron.CheckZone(name))
		require.Equal(t, name, zone(t, name).String())
	}
}
