package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

func minutes(t *testing.T, q *pawl.Queue, from, to time.Time) []pawl.Minute {
	t.Helper()
	got, err := q.Minutes(t.Context(), from, to)
	require.NoError(t, err)
	for i, m := range got {
		require.Equal(t, m.At.Truncate(time.Minute), m.At)
		require.Equal(t, time.UTC, m.At.Location())
		require.Equal(t, got[0].At.Add(time.Duration(i)*time.Minute), m.At, "one after another")
	}
	return got
}

func TestEveryCounterIsInItsMinute(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		began := time.Now()
		e.Pass(30 * time.Second)
		w := e.Worker("q", pawl.WorkerConfig{Backoff: pawl.Backoff{Base: 10 * time.Minute, Jitter: pawl.JitterNone}})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			switch {
			case job.Args.N == 1 && job.Attempt == 1:
				return errors.New("again")
			case job.Args.N == 2:
				return pawl.Permanent(errors.New("no"))
			case job.Args.N == 3:
				return pawl.Discard(nil)
			}
			return nil
		})
		e.Start(w)
		want := map[int]pawl.Counters{}
		minute := func() int { return int(time.Since(began) / time.Minute) }
		put(t, q, 0)
		put(t, q, 1)
		e.Log.Wait(t, "retry", 1)
		e.Log.Wait(t, "done", 1)
		want[minute()] = pawl.Counters{Enqueued: 2, Started: 2, Done: 1, Failed: 1, Retried: 1}
		e.Log.Wait(t, "done", 2)
		want[minute()] = pawl.Counters{Started: 1, Done: 1}
		e.Pass(3 * time.Hour)
		dead := put(t, q, 2)
		put(t, q, 3)
		unique := pawl.Unique{Key: pawl.Key("k")}
		held := put(t, q, 4, unique, pawl.Delay(time.Hour))
		put(t, q, 4, unique)
		put(t, q, 5, pawl.Delay(time.Hour))
		e.Log.Wait(t, "dead", 1)
		e.Log.Wait(t, "discarded", 1)
		want[minute()] = pawl.Counters{Enqueued: 4, Duplicate: 1, Started: 2, Failed: 1, Dead: 1, Discarded: 1}
		e.Pass(2 * time.Minute)
		put(t, q, 0, once(7))
		e.Log.Wait(t, "done", 3)
		put(t, q, 0, once(7))
		e.Log.Wait(t, "skipped", 1)
		want[minute()] = pawl.Counters{Enqueued: 2, Started: 2, Done: 2, Skipped: 1}
		e.Pass(2 * time.Minute)
		require.NoError(t, q.Cancel(t.Context(), held))
		require.EqualValues(t, 1, purge(t, q, pawl.StateDelayed, pawl.Filter{}))
		n, err := q.Dead().Delete(t.Context(), dead)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		want[minute()] = pawl.Counters{Cancelled: 1, Purged: 2}
		e.Pass(time.Hour)

		var sum pawl.Counters
		for i, m := range minutes(t, q, began, time.Time{}) {
			require.Equal(t, began.Add(time.Duration(i)*time.Minute).UTC(), m.At)
			require.Equal(t, want[i], m.Counters, "minute %d", i)
			sum = plus(sum, m.Counters)
		}
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, s.Total, sum)
	})
}

// plus adds what the test above counts.
func plus(a, b pawl.Counters) pawl.Counters {
	a.Enqueued += b.Enqueued
	a.Duplicate += b.Duplicate
	a.Started += b.Started
	a.Done += b.Done
	a.Skipped += b.Skipped
	a.Failed += b.Failed
	a.Retried += b.Retried
	a.Dead += b.Dead
	a.Discarded += b.Discarded
	a.Cancelled += b.Cancelled
	a.Purged += b.Purged
	return a
}

func TestMinutesBetween(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		never := minutes(t, q, time.Time{}, time.Time{})
		require.Len(t, never, 24*60)
		for _, m := range never {
			require.Zero(t, m.Counters)
		}
		require.Equal(t, time.Now().UTC(), never[len(never)-1].At, "the minute that goes on")

		for range 30 * 60 { // more than a day, one a minute
			put(t, q, 1)
			e.Pass(time.Minute)
		}
		all := minutes(t, q, time.Time{}, time.Time{})
		require.Len(t, all, 24*60)
		for i, m := range all {
			want := int64(1)
			if i == len(all)-1 {
				want = 0 // it has just begun
			}
			require.Equal(t, pawl.Counters{Enqueued: want}, m.Counters, "%d", i)
		}
		now := time.Now()
		for _, tc := range []struct {
			from, to time.Duration // ago
			want     int
		}{
			{10 * time.Minute, 0, 10}, {10 * time.Minute, -time.Hour, 11}, {10*time.Minute - 1, 0, 9}, {10*time.Minute + 1, 0, 10},
			{10 * time.Minute, 5 * time.Minute, 5}, {10 * time.Minute, 5*time.Minute - 1, 6}, {5 * time.Minute, 10 * time.Minute, 0},
			{100 * time.Hour, 50 * time.Hour, 0}, {-time.Hour, -2 * time.Hour, 0}, {time.Minute, time.Minute, 0},
		} {
			got := minutes(t, q, now.Add(-tc.from), now.Add(-tc.to))
			require.Len(t, got, tc.want, "%v to %v", tc.from, tc.to)
		}
		require.Len(t, minutes(t, q, time.Unix(0, 0), time.Time{}), 24*60)
		require.Empty(t, minutes(t, q, time.Time{}, time.Unix(0, 0)))
		e.Pass(50 * time.Hour)
		for _, m := range minutes(t, q, time.Time{}, time.Time{}) {
			require.Zero(t, m.Counters, "it was idle for a day")
		}
	})
}

// A clock that is set back counts on in the minute that was begun.
func TestMinutesOfAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		now := time.Date(2030, 1, 1, 12, 0, 30, 0, time.UTC)
		for _, shift := range []time.Duration{0, time.Minute, -10 * time.Minute, time.Minute, 12 * time.Minute, -48 * time.Hour, time.Minute, time.Minute} {
			now = now.Add(shift)
			e.Mini.SetTime(now)
			put(t, q, 1)
			put(t, q, 1)
			for _, m := range minutes(t, q, time.Time{}, time.Time{}) {
				require.GreaterOrEqual(t, m.Enqueued, int64(0))
				require.LessOrEqual(t, m.Enqueued, int64(16))
				require.Zero(t, m.Started)
			}
		}
		last := minutes(t, q, now.Add(-time.Minute-30*time.Second), time.Time{})
		require.Len(t, last, 2)
		require.EqualValues(t, 2, last[0].Enqueued)
		require.EqualValues(t, 2, last[1].Enqueued)
	})
}
