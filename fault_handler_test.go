package pawl_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// W6. Panics and handlers that end their goroutine cost an attempt each, one
// that ignores its context costs its slot; all else goes on.
func TestWhateverAHandlerDoesItsWorkerGoesOn(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	const jobs = 40
	f.put(t, "q", jobs)
	w := f.Worker("q", pawl.WorkerConfig{Concurrency: 3, StuckAfter: 100 * time.Millisecond,
		Backoff: pawl.Backoff{Base: time.Millisecond, Jitter: pawl.JitterNone}})
	deaf := make(chan struct{})
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
		if job.Args.N == 0 { // for ever, as far as its worker can tell
			<-deaf
			return ctx.Err()
		}
		if job.Attempt > 1 {
			return nil
		}
		switch job.Args.N % 4 {
		case 0:
			panic("boom")
		case 1:
			runtime.Goexit()
		case 2:
			var none []int
			_ = none[job.Args.N]
		}
		return nil
	}, pawl.Timeout(2*time.Second))
	stop := f.Start(w)
	f.Log.Wait(t, "done", jobs-1)
	stuck := f.Log.Wait(t, "stuck", 1)[0]
	require.ErrorIs(t, stuck.Err, pawl.ErrTimeout)
	require.NoError(t, w.Healthy())
	close(deaf)
	f.Log.Wait(t, "done", jobs)
	require.NoError(t, stop())
	for _, e := range f.Log.Of("retry") {
		var p *pawl.PanicError
		require.Equal(t, e.Job.ID != stuck.Job.ID, errors.As(e.Err, &p), "%v", e.Err)
	}
	total := f.Total(t, "q")
	require.EqualValues(t, 30, total.Retried, "29 that panicked or ended their goroutine, and the one that was stuck")
	require.Zero(t, total.Crashed+total.Released+total.Dead)
}

// W6. A handler that returns when its worker has stopped: nobody listens, and
// its job, which runs again, is not touched.
func TestAHandlerThatReturnsAfterTheShutdownChangesNothing(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	jobs := f.put(t, "q", 2)
	const visibility = time.Second
	w := f.Worker("q", pawl.WorkerConfig{DrainTimeout: time.Millisecond, VisibilityTimeout: visibility})
	deaf := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	left := make(chan struct{}, 2)
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		defer func() { left <- struct{}{} }()
		<-deaf[job.Args.N]
		return nil
	})
	stop := f.Start(w)
	f.Log.Wait(t, "started", 2)
	var drained *pawl.DrainError
	require.ErrorAs(t, stop(), &drained)
	ended := time.Now()
	require.ElementsMatch(t, []pawl.ID{jobs[0].ID, jobs[1].ID}, drained.Stuck)
	require.Error(t, w.Healthy())

	before := layout(t, f.env, "q")
	calls := f.Proxy.Calls("settle")
	close(deaf[0]) // before anybody else has its job
	<-left
	next, err := pawl.NewWorker(f.pastWithLog(t), pawl.WorkerConfig{Queues: pawl.Queues("q"), VisibilityTimeout: visibility})
	require.NoError(t, err)
	require.Equal(t, before, layout(t, f.env, "q"))
	pawl.Handle(next, func(context.Context, *pawl.Job[note]) error { return nil })
	stop = f.Start(next)
	f.Log.Wait(t, "done", 2)
	measured(t, "W6", "both jobs of the handlers that were left were done", time.Since(ended))
	require.NoError(t, stop())
	before = layout(t, f.env, "q")
	close(deaf[1]) // when another has finished it
	<-left
	require.Equal(t, before, layout(t, f.env, "q"))
	require.Equal(t, calls, f.Proxy.Calls("settle"))
	require.Equal(t, pawl.Counters{Enqueued: 2, Started: 4, Crashed: 2, Done: 2}, f.run(t, "q"))
}
