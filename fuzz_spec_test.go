package pawl

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzSpec: a text is a Spec or an ErrInvalid, and a Spec is its text again.
func FuzzSpec(f *testing.F) {
	for _, text := range []string{
		"", "no spec", "every 15m0s", "every 1.5s", "every 1h", "every 876600h0m0s", "every -1s", "cron 0 2 * * * in UTC", "cron @daily in UTC",
		"cron  0  2 * * *  in Europe/Berlin", "cron 0 2 * * * in Local", "cron 0 2 * * * in in UTC", "cron in UTC", "cron \xff in \x00",
	} {
		f.Add(text, "UTC", "0 2 * * *", int64(time.Minute))
		f.Add("", "Europe/Berlin", text, int64(len(text))*int64(time.Second))
		f.Add("", text, "@hourly", int64(1))
	}
	anchor := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	after := anchor.AddDate(0, 0, 100)
	f.Fuzz(func(t *testing.T, text, zone, line string, every int64) {
		read, err := parseSpec(text)
		if err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			require.Less(t, len(err.Error()), 2000)
			require.Zero(t, read)
		}
		for _, s := range []Spec{read, Cron(line), CronIn(zone, line), Every(time.Duration(every))} {
			if err := s.check(); err != nil {
				require.ErrorIs(t, err, ErrInvalid)
				require.Less(t, len(err.Error()), 2000)
				_, err := s.next(after, anchor)
				require.ErrorIs(t, err, ErrInvalid)
				continue
			}
			back, err := parseSpec(s.String())
			require.NoError(t, err)
			require.Equal(t, s, back)
			at, err := s.next(after, anchor)
			require.NoError(t, err)
			require.True(t, at.After(after))
			same, err := back.next(after, anchor)
			require.NoError(t, err)
			require.Equal(t, at, same)
		}
	})
}
