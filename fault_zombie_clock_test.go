package pawl_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// W2. The context of a frozen handler has ended when it comes back, though its
// worker hears nothing from Redis.
func TestAZombieIsToldByItsOwnClock(t *testing.T) {
	t.Parallel()
	const visibility = 500 * time.Millisecond
	f := behindProxy(t, redistest.Start(t), 0)
	f.put(t, "q", 1)
	p := victim{Addr: f.Proxy.Addr(), Queue: "q", Visibility: visibility, Do: "ignore"}.run(t)
	require.True(t, p.await("started"))
	require.NoError(t, p.Process.Signal(syscall.SIGSTOP))
	<-time.After(2 * visibility)
	f.Proxy.Blackhole(true)
	woken := time.Now()
	require.NoError(t, p.Process.Signal(syscall.SIGCONT))
	require.True(t, p.await("cause "+pawl.ErrLeaseLost.Error()))
	measured(t, "W2", "a thawed handler's context had ended", time.Since(woken))
}

// W2. A lease counts from before its call: an answer that came late leaves the
// handler only the rest of it.
func TestALeaseCountsFromBeforeItsCall(t *testing.T) {
	t.Parallel()
	const visibility, late = 6 * time.Second, 4 * time.Second
	f := behindProxy(t, redistest.Start(t), time.Minute)
	f.put(t, "q", 1)
	f.Proxy.On("lease", 1, redistest.Delay(late))
	f.Proxy.On("extend", 0, redistest.RunDropReply) // renewed, but the worker does not hear of it
	w := f.Worker("q", pawl.WorkerConfig{VisibilityTimeout: visibility})
	had := make(chan time.Duration, 1)
	pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
		start := time.Now()
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), pawl.ErrLeaseLost)
		had <- time.Since(start)
		return nil
	})
	sent := time.Now()
	stop := f.Start(w)
	took := <-had
	require.GreaterOrEqual(t, time.Since(sent), visibility, "not before its time")
	require.Less(t, took, visibility-late/2, "it had the rest of its lease alone")
	f.Proxy.Clear()
	f.Log.Wait(t, "done", 1)
	require.NoError(t, stop())
	require.Equal(t, pawl.Counters{Enqueued: 1, Started: 1, Done: 1}, f.run(t, "q"), "it was the holder all the time")
}
