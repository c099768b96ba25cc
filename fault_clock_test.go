package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// T1. The worker's clock is an hour before or behind the server's, in both ways:
// leases are kept and lost, delays end and times are met as if it were not.
func TestAWorkersClockOffByAnHourChangesNothing(t *testing.T) {
	t.Parallel()
	for name, offset := range map[string]time.Duration{"behind": time.Hour, "ahead": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.StartWithClock(t)
			s.SetClock(offset)
			e := newEnv(t, s.Client(t), nil)
			q, ctx := e.Queue("q"), t.Context()
			const visibility = 1500 * time.Millisecond
			var ran runs
			w := e.Worker("q", pawl.WorkerConfig{VisibilityTimeout: visibility})
			begun := make(chan time.Time, 4)
			pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
				begun <- time.Now()
				if ran.add(job.Args.N); job.Args.N == 0 {
					select { // it needs renewals
					case <-ctx.Done():
					case <-time.After(2 * visibility):
					}
				}
				return context.Cause(ctx)
			})
			stop := e.Start(w)
			_, err := q.Enqueue(ctx, note{0})
			require.NoError(t, err)
			<-begun
			asked := time.Now()
			_, err = q.Enqueue(ctx, note{1}, pawl.Delay(time.Second))
			require.NoError(t, err)
			require.GreaterOrEqual(t, (<-begun).Sub(asked), 990*time.Millisecond, "a delay is none of two clocks")
			asked = time.Now()
			_, err = q.Enqueue(ctx, note{2}, pawl.At(time.Now().Add(offset+time.Second))) // a time, by the server's clock
			require.NoError(t, err)
			took := (<-begun).Sub(asked)
			require.GreaterOrEqual(t, took, 900*time.Millisecond)
			measured(t, "T1", "a job for the server's time in 1 s ran", took)
			e.Log.Wait(t, "done", 3)
			require.NoError(t, stop())
			ran.each(t, 3, 1)
			require.Empty(t, e.Log.Of("lost"))
		})
	}
}

// T2. The server's clock goes forward by an hour and back, under a worker that
// holds a job and one that waits: what is taken too early is fenced, ids and tokens
// rise, what is delayed goes by the server's clock, and nothing is lost or stuck.
func TestTheServersClockGoesForwardAndBack(t *testing.T) {
	t.Parallel()
	s := redistest.StartWithClock(t)
	e := newEnv(t, s.Client(t), nil)
	q, ctx := e.Queue("q"), t.Context()
	type leased struct {
		n       int
		run     int64
		crashes int
	}
	started, finish := make(chan leased, 64), make(chan struct{})
	worker := func() (stop func() error) {
		w := e.Worker("q", pawl.WorkerConfig{VisibilityTimeout: 9 * time.Second, Concurrency: 4})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			started <- leased{job.Args.N, job.Run, job.Crashes}
			if job.Args.N == 0 {
				<-finish // whatever its context says
			}
			return nil
		})
		return e.Start(w)
	}
	stops := []func() error{worker(), worker()}
	var last string
	enqueue := func(n int, opts ...pawl.Option) {
		t.Helper()
		job, err := q.Enqueue(ctx, note{n}, opts...)
		require.NoError(t, err)
		require.Greater(t, job.ID.String(), last, "ids rise")
		last = job.ID.String()
	}
	enqueue(0)
	first := <-started
	enqueue(1, pawl.Delay(30*time.Minute))

	s.SetClock(time.Hour)
	asked := time.Now()
	enqueue(2) // wakes those that wait
	seen := map[int]leased{}
	for len(seen) < 2 || seen[1].run == 0 {
		got := <-started
		seen[got.n] = got
	}
	measured(t, "T2", "after an hour forward a job for in half an hour ran", time.Since(asked))

	s.SetClock(0)
	asked = time.Now()
	for i := range 20 {
		enqueue(3 + i)
	}
	for i := range 20 {
		for got := range started {
			if seen[got.n] = got; got.n >= 3 {
				break
			}
		}
		if i == 0 {
			measured(t, "T2", "after an hour back the next job ran", time.Since(asked))
		}
	}
	// The hour that the lease of the living was given too much goes with its renewal.
	asked = time.Now()
	redistest.Eventually(t, "the lease lasts no longer than it ought to", func(ctx context.Context) bool {
		leases := e.Redis.ZRangeWithScores(ctx, "pawl:{q}:leases", 0, -1).Val()
		now := e.Redis.Time(ctx).Val()
		return len(leases) == 1 && leases[0].Score <= float64(now.Add(10*time.Second).UnixMilli())
	})
	measured(t, "T2", "after an hour back the lease was renewed to its own length", time.Since(asked))
	enqueue(50, pawl.Delay(time.Second))
	asked = time.Now()
	require.Equal(t, 50, (<-started).n)
	require.GreaterOrEqual(t, time.Since(asked), 900*time.Millisecond, "not before it is due")
	close(finish)
	redistest.Eventually(t, "nothing is left", func(ctx context.Context) bool {
		s, err := q.Stats(ctx)
		return err == nil && s.Ready+s.Delayed+s.Running+s.Dead == 0
	})
	for _, stop := range stops {
		require.NoError(t, stop())
	}
	total, err := q.Stats(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 24, total.Total.Done, "each once, however often it ran")
	require.EqualValues(t, 24, total.Total.Enqueued)
	if again := seen[0]; again.run != 0 {
		require.Greater(t, again.run, first.run, "the token of the newer holder is above")
	}
}

// T3. Dates in the years 1 and 9999, negative delays and the greatest integers are
// refused, or exact: none is taken for another time.
func TestTimesAtTheEndsAreRefusedOrExact(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		end := time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
		for name, opt := range map[string]pawl.Option{
			"the zero time":           pawl.At(time.Time{}),
			"a delay below 0":         pawl.Delay(-1),
			"the least delay":         pawl.Delay(-1 << 63),
			"the greatest delay":      pawl.Delay(1<<63 - 1),
			"the year 10000":          pawl.At(end.Add(time.Millisecond)),
			"the greatest time":       pawl.At(time.Unix(1<<62, 0)),
			"an expiry below 0":       pawl.ExpireIn(-1),
			"the greatest expiry":     pawl.ExpireIn(1<<63 - 1),
			"the greatest timeout":    pawl.VisibilityTimeout(1<<63 - 1),
			"the greatest attempts":   pawl.MaxAttempts(1<<63 - 1),
			"the greatest crashes":    pawl.MaxCrashes(1<<63 - 1),
			"the greatest priority":   pawl.Priority(1<<63 - 1),
			"the greatest uniqueness": pawl.Unique{Key: "k", For: 1<<63 - 1},
		} {
			_, err := q.Enqueue(ctx, note{1}, opt)
			require.ErrorIs(t, err, pawl.ErrInvalid, name)
		}
		job, err := q.Enqueue(ctx, note{2}, pawl.At(end))
		require.NoError(t, err)
		info, err := q.Get(ctx, job.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.StateDelayed, info.State)
		require.True(t, end.Equal(info.DueAt), "%v", info.DueAt)
		for _, past := range []time.Time{time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), time.Unix(0, 0), time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC)} {
			job, err := q.Enqueue(ctx, note{3}, pawl.At(past))
			require.NoError(t, err, "%v", past)
			info, err := q.Get(ctx, job.ID)
			require.NoError(t, err)
			require.Equal(t, pawl.StateReady, info.State, "%v is past, which means now", past)
		}
		s, err := q.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 4, s.Total.Enqueued, "nothing was made of what was refused")
	})
}
