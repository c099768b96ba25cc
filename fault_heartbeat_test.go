package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// W4. Only the renewals of one worker are lost. Its handler is told when the
// lease is over, another worker runs the job, and what the first one still says
// of it changes nothing. Healthy tells of it meanwhile, and it goes on when it can.
func TestAWorkerWhoseRenewalsAreLostLosesItsJobToAnother(t *testing.T) {
	t.Parallel()
	const visibility = 2 * time.Second
	f := behindProxy(t, redistest.Start(t), 0)
	f.Proxy.On("extend", 0, redistest.Drop)
	f.put(t, "q", 1)
	mute := f.Worker("q", pawl.WorkerConfig{Concurrency: 2, VisibilityTimeout: visibility})
	told, again := make(chan time.Time, 1), make(chan time.Time, 1)
	finished := make(chan struct{})
	pawl.Handle(mute, func(ctx context.Context, job *pawl.Job[note]) error {
		if job.Crashes == 0 && job.Args.N == 0 {
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), pawl.ErrLeaseLost)
			require.Error(t, mute.Healthy())
			told <- time.Now()
			<-finished
		}
		return nil
	})
	stopMute := f.Start(mute)
	f.Log.Wait(t, "started", 1)
	sound, err := pawl.NewWorker(f.past, pawl.WorkerConfig{Queues: pawl.Queues("q"), VisibilityTimeout: visibility})
	require.NoError(t, err)
	pawl.Handle(sound, func(_ context.Context, job *pawl.Job[note]) error {
		again <- time.Now()
		require.Equal(t, 1, job.Attempt)
		return nil
	})
	start := time.Now()
	stopSound := f.Start(sound)
	took := (<-again).Sub(start)
	measured(t, "W4", "the job ran again", took)
	require.Less(t, took, 3*(visibility+2*time.Second))
	measured(t, "W4", "the handler was told", (<-told).Sub(start))
	redistest.Eventually(t, "the other has finished it", func(context.Context) bool { return f.Total(t, "q").Done == 1 })
	require.NoError(t, stopSound())
	close(finished)
	f.Log.Wait(t, "lost", 1)
	require.Equal(t, pawl.Counters{Enqueued: 1, Started: 2, Crashed: 1, Done: 1}, f.run(t, "q"))

	f.Proxy.Clear()
	redistest.Eventually(t, "it is well again", func(context.Context) bool { return mute.Healthy() == nil })
	_, err = f.past.Queue("q").Enqueue(t.Context(), note{1})
	require.NoError(t, err)
	f.Log.Wait(t, "done", 1)
	require.NoError(t, stopMute())
	require.Len(t, f.Log.Of("lost"), 1)
}

// W4. With nobody else there, the job goes back and comes again, no attempt
// spent, and is done once renewals are heard.
func TestAWorkerAloneWhoseRenewalsAreLostKeepsItsJob(t *testing.T) {
	t.Parallel()
	const visibility = time.Second
	f := behindProxy(t, redistest.Start(t), 0)
	f.Proxy.On("extend", 0, redistest.Drop)
	f.put(t, "q", 1)
	w := f.Worker("q", pawl.WorkerConfig{VisibilityTimeout: visibility})
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
		require.Equal(t, 1, job.Attempt)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(3 * visibility):
			return nil
		}
	})
	stop := f.Start(w)
	f.Log.Wait(t, "released", 1)
	f.Log.Wait(t, "started", 2)
	f.Proxy.Clear()
	healed := time.Now()
	f.Log.Wait(t, "done", 1)
	measured(t, "W4", "a job of three visibility timeouts was done", time.Since(healed))
	require.NoError(t, stop())
	total := f.Total(t, "q")
	require.Zero(t, total.Failed+total.Retried+total.Dead)
	require.EqualValues(t, 1, total.Done)
}

// W10. With renewals a handler may run for any number of visibility timeouts:
// it runs once, however many workers wait for its lease to run out.
func TestHandlersThatOutliveTheirLeasesRunOnceBesideOthers(t *testing.T) {
	t.Parallel()
	const visibility = 2 * time.Second
	f := behindProxy(t, redistest.Start(t), 0)
	const jobs = 5
	f.put(t, "q", jobs)
	var stops []func() error
	for range 3 {
		w := f.Worker("q", pawl.WorkerConfig{VisibilityTimeout: visibility, Concurrency: 3})
		pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
			select {
			case <-time.After(5 * visibility / 2):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		stops = append(stops, f.Start(w))
	}
	f.Log.Wait(t, "done", jobs)
	for _, stop := range stops {
		require.NoError(t, stop())
	}
	require.Equal(t, pawl.Counters{Enqueued: jobs, Started: jobs, Done: jobs}, f.run(t, "q"))
}
