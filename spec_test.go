package pawl

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestASpecIsItsText(t *testing.T) {
	t.Parallel()
	for text, s := range map[string]Spec{
		"every 15m0s":                           Every(15 * time.Minute),
		"every 1s":                              Every(time.Second),
		"every 1.001s":                          Every(1001 * time.Millisecond),
		"every 876600h0m0s":                     Every(maxWait),
		"cron 0 2 * * * in UTC":                 Cron("0 2 * * *"),
		"cron */15 2-4 1,15 jan MON in UTC":     Cron(" */15\t2-4 1,15  jan MON\n"),
		"cron @daily in UTC":                    Cron("@daily"),
		"cron 30 2 * * * in Europe/Berlin":      CronIn("Europe/Berlin", "30 2 * * *"),
		"cron @hourly in Australia/Lord_Howe":   CronIn("Australia/Lord_Howe", "@hourly"),
		"cron 0 0 1 1 ? in Africa/Porto-Novo":   CronIn("Africa/Porto-Novo", "0 0 1 1 ?"),
		"cron 0 0 1 1 * in America/No_Such":     CronIn("America/No_Such", "0 0 1 1 *"), // another machine may know it
		"cron 0 0 1 1 * in America/Fort_Nelson": CronIn("America/Fort_Nelson", "0 0 1 1 *"),
	} {
		require.Equal(t, text, s.String())
		back, err := parseSpec(text)
		require.NoError(t, err)
		require.Equal(t, s, back)
		require.True(t, s == back, "specs are comparable")
	}
	require.NotEqual(t, Cron("0 2 * * *"), CronIn("Europe/Berlin", "0 2 * * *"))
	require.Equal(t, Cron("0 2 * * *"), CronIn("UTC", "0  2 * * *"))
	require.Equal(t, "no spec", Spec{}.String())
}

func TestTextsThatAreNoSpec(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                                      "not known",
		"no spec":                               "not known",
		"every":                                 "not known",
		"every ":                                "no duration",
		"every 15":                              "no duration",
		"every 0s":                              "at least 1s",
		"every -1h":                             "at least 1s",
		"every 1.0001s":                         "whole milliseconds",
		"every 876601h":                         "100 years",
		"every 9999999h":                        "no duration",
		"cron 0 2 * * *":                        "not known",
		"cron  in UTC":                          "empty",
		"cron 0 2 * * * in ":                    "zone is empty",
		"cron 0 2 * * * in Local":               "differs from machine to machine",
		"cron 0 2 * * * in Europe/Berlin ":      "no time zone",
		"cron 60 2 * * * in UTC":                "minute",
		"cron 0 2 * * * in UTC in UTC":          "7 fields",
		"at noon":                               "not known",
		"\x00":                                  "not known",
		"\xff":                                  "not known",
		strings.Repeat("every ", 1<<14):         "no duration",
		"cron " + strings.Repeat(" in ", 1<<14): "bytes",
	} {
		s, err := parseSpec(text)
		require.ErrorIs(t, err, ErrInvalid, "%.80q", text)
		require.ErrorContains(t, err, says, "%.80q", text)
		require.Less(t, len(err.Error()), 1500)
		require.Zero(t, s)
	}
}

func TestWrongSpecs(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct {
		spec Spec
		says []string
	}{
		{Spec{}, []string{"the Spec is zero", "Cron, CronIn or Every"}},
		{Every(0), []string{"Every(0s)", "at least 1s"}},
		{Every(time.Second - 1), []string{"at least 1s"}},
		{Every(math.MinInt64), []string{"at least 1s"}},
		{Every(time.Second + 1), []string{"whole milliseconds"}},
		{Every(maxWait + time.Millisecond), []string{"100 years"}},
		{Every(math.MaxInt64), []string{"100 years"}},
		{Cron(""), []string{`Cron("")`, "empty"}},
		{Cron("61 * * * *"), []string{`Cron("61 * * * *")`, `minute has "61"`, "0 to 59"}},
		{Cron("0 0 2 * * *"), []string{"six fields", "Every(30*time.Second)"}},
		{Cron("@every 1h"), []string{"write Every"}},
		{Cron("TZ=Asia/Tokyo 0 9 * * *"), []string{`write CronIn("Asia/Tokyo", "0 9 * * *")`}},
		{Cron("0 0 30 feb *"), []string{"never fires"}},
		{Cron(strings.Repeat("*", 1<<16)), []string{"65536 bytes"}},
		{Cron("\xff"), []string{"1 field,"}},
		{CronIn("0 2 * * *", "Europe/Berlin"), []string{"the zone comes first", `write CronIn("Europe/Berlin", "0 2 * * *")`}},
		{CronIn("@daily", "UTC"), []string{`write CronIn("UTC", "@daily")`}},
		{CronIn("", "0 2 * * *"), []string{`CronIn("", "0 2 * * *")`, "zone is empty"}},
		{CronIn("Local", "0 2 * * *"), []string{"differs from machine to machine"}},
		{CronIn("Europe/Atlantis", "0 2 * * *"), []string{"not known on this machine", "time/tzdata"}},
		{CronIn(strings.Repeat("x", 1<<16), "0 2 * * *"), []string{"no time zone"}},
		{CronIn("Europe/Berlin", "0 2 * * 8"), []string{`CronIn("Europe/Berlin", "0 2 * * 8")`, "day of week"}},
	} {
		err := c.spec.Validate()
		require.ErrorIs(t, err, ErrInvalid)
		for _, s := range c.says {
			require.ErrorContains(t, err, s)
		}
		require.Less(t, len(err.Error()), 1500)
		at, nextErr := c.spec.next(now, now)
		require.Zero(t, at)
		require.EqualError(t, nextErr, err.Error())
		at, nextErr = c.spec.Next(now)
		require.Zero(t, at)
		require.EqualError(t, nextErr, err.Error())
	}
}

func TestTheTimesThatASpecIsAskedFor(t *testing.T) {
	t.Parallel()
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	require.NoError(t, err)
	after := time.Date(2026, 3, 28, 10, 7, 3, 123456789, tokyo) // 01:07:03 UTC
	for _, c := range []struct {
		spec Spec
		want []string
	}{
		{Every(90 * time.Second), []string{"2026-03-28T01:08:33.123456789Z", "2026-03-28T01:10:03.123456789Z"}},
		{Cron("7 1,2 * * *"), []string{"2026-03-28T02:07:00Z", "2026-03-29T01:07:00Z"}},
		{CronIn("Europe/Berlin", "30 2 * * *"), []string{"2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"}},
	} {
		require.NoError(t, c.spec.Validate())
		at := after
		for _, want := range c.want {
			next, err := c.spec.Next(at)
			require.NoError(t, err)
			require.Equal(t, want, next.Format(time.RFC3339Nano), c.spec)
			at = next
		}
	}
	for _, s := range []Spec{Every(time.Hour), CronIn("Europe/Berlin", "@yearly")} {
		at, err := s.Next(time.Date(9999, 12, 31, 23, 30, 0, 0, time.UTC))
		require.Zero(t, at)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, "before the year 10000")
	}
}

func TestNextOfASpec(t *testing.T) {
	t.Parallel()
	anchor := time.Date(2026, 3, 28, 10, 7, 3, 0, time.UTC)
	after := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Every(15 * time.Minute), "2026-03-28T12:07:03Z"},
		{Every(maxWait), "2126-03-29T10:07:03Z"},
		{Cron("30 2 * * *"), "2026-03-29T02:30:00Z"},
		{CronIn("Europe/Berlin", "30 2 * * *"), "2026-03-29T01:00:00Z"},
		{CronIn("Asia/Kolkata", "@weekly"), "2026-03-28T18:30:00Z"},
	} {
		require.NoError(t, c.spec.check())
		for range 2 { // the second time its plan is remembered
			at, err := c.spec.next(after, anchor)
			require.NoError(t, err)
			require.Equal(t, c.want, at.Format(time.RFC3339Nano))
		}
	}
	for _, s := range []Spec{Every(time.Second), Cron("* * * * *")} {
		last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
		_, err := s.next(last, last)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, "before the year 10000")
		_, err = s.next(last.AddDate(1, 0, 0), anchor)
		require.ErrorIs(t, err, ErrInvalid)
	}
}

func TestPlansAreBounded(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for part := range 4 {
		all.Go(func() {
			for i := range maxPlans {
				s := Cron(fmt.Sprintf("%d %d * * %d", i%60, i/60, part))
				if _, err := s.next(time.Unix(0, 0), time.Time{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	plans.RLock()
	defer plans.RUnlock()
	require.NotEmpty(t, plans.of)
	require.LessOrEqual(t, len(plans.of), maxPlans)
}

func BenchmarkSpecNext(b *testing.B) {
	anchor := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, s := range []Spec{Every(15 * time.Minute), Cron("30 2 * * *"), CronIn("Europe/Berlin", "30 2 * * *"), CronIn("Europe/Berlin", "*/30 * * * *")} {
		b.Run(s.String(), func(b *testing.B) {
			b.ReportAllocs()
			at := anchor
			for b.Loop() {
				next, err := s.next(at, anchor)
				if err != nil {
					b.Fatal(err)
				}
				if at = next; at.Year() > 2100 {
					at = anchor
				}
			}
		})
	}
}
