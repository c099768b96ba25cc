package pawl_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// Case 5. A delay of many visibility timeouts: the job runs once, when it is due,
// however many workers wait. TestDelaysAreExactAndNeverEarly has 10 s under 2 s,
// to the millisecond.
func TestADelayBeyondTheVisibilityTimeoutRunsOnce(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	const visibility, delay = 500 * time.Millisecond, 2500 * time.Millisecond
	for range 3 {
		w := f.Worker("q", pawl.WorkerConfig{VisibilityTimeout: visibility})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		f.Start(w)
	}
	before := time.Now()
	for n := range 10 {
		_, err := f.Client.Queue("q").Enqueue(t.Context(), note{n}, pawl.Delay(delay), pawl.Priority(n%2))
		require.NoError(t, err)
	}
	f.Log.Wait(t, "started", 1)
	require.GreaterOrEqual(t, time.Since(before), delay, "early")
	f.Log.Wait(t, "done", 10)
	measured(t, "case 5", "ten jobs with a delay of 2.5 s were done", time.Since(before))
	require.Equal(t, pawl.Counters{Enqueued: 10, Started: 10, Done: 10}, f.run(t, "q"))
}

// Case 23. A fraction of a second counts: a job due at .900 does not run at .000,
// and a timeout of 500 ms is no whole second.
func TestFractionsOfASecondCount(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	w := f.Worker("q", pawl.WorkerConfig{})
	var early atomic.Bool
	var due [3]time.Time
	for i := range due { // .900 of the next three seconds
		due[i] = time.Now().Truncate(time.Second).Add(time.Duration(i+1)*time.Second + 900*time.Millisecond)
		_, err := f.Client.Queue("q").Enqueue(t.Context(), note{i}, pawl.At(due[i]), pawl.Timeout(500*time.Millisecond))
		require.NoError(t, err)
	}
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
		now := time.Now()
		if now.Before(due[job.Args.N]) {
			early.Store(true)
		}
		if !job.DueAt.Equal(due[job.Args.N]) {
			early.Store(true)
		}
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		require.InDelta(t, 500, deadline.Sub(now).Milliseconds(), 100)
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), pawl.ErrTimeout)
		require.GreaterOrEqual(t, time.Now(), deadline)
		return nil
	})
	stop := f.Start(w)
	f.Log.Wait(t, "done", len(due))
	measured(t, "case 23", "the last of three jobs of 500 ms was done, since it was due", time.Since(due[2]))
	require.NoError(t, stop())
	require.False(t, early.Load())
}
