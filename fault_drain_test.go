package pawl_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// W7.
func TestHandlersThatHeedTheEndAreReleasedAndRunAgain(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	jobs := f.put(t, "q", 5)
	w := f.Worker("q", pawl.WorkerConfig{Concurrency: 2, DrainTimeout: 10 * time.Millisecond})
	pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	stop := f.Start(w)
	f.Log.Wait(t, "started", 2)
	var drained *pawl.DrainError
	require.ErrorAs(t, stop(), &drained)
	require.ElementsMatch(t, []pawl.ID{jobs[0].ID, jobs[1].ID}, drained.Released)
	require.Empty(t, drained.Stuck)

	next := f.Worker("q", pawl.WorkerConfig{Concurrency: 1})
	pawl.Handle(next, func(context.Context, *pawl.Job[note]) error { return nil })
	stop = f.Start(next)
	f.Log.Wait(t, "done", 5)
	require.NoError(t, stop())
	for _, e := range f.Log.Of("done") {
		require.Equal(t, 1, e.Job.Attempt)
		require.Zero(t, e.Job.Crashes)
	}
	require.EqualValues(t, 2, f.Total(t, "q").Released)
}

// W6, W7.
func TestADrainEndsInTimeWhateverHappens(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(f *faulty){
		"with Redis there":   func(*faulty) {},
		"with Redis killed":  func(f *faulty) { f.Server.Kill() },
		"with Redis frozen":  func(f *faulty) { f.Server.Pause() },
		"with replies lost":  func(f *faulty) { f.Proxy.On("release", 0, redistest.RunDropReply) },
		"with settles stuck": func(f *faulty) { f.Proxy.On("settle", 0, redistest.RunDropReplyAndHold) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := behindProxy(t, redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always"), time.Second)
			t.Cleanup(func() { f.Server.Restart() })
			jobs := f.put(t, "q", 2)
			w := f.Worker("q", pawl.WorkerConfig{DrainTimeout: 100 * time.Millisecond, VisibilityTimeout: 10 * time.Second})
			forever := make(chan struct{})
			t.Cleanup(func() { close(forever) })
			pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
				if job.Args.N == 0 {
					<-forever
				}
				<-ctx.Done()
				return nil
			})
			stop := f.Start(w)
			f.Log.Wait(t, "started", 2)
			fault(f)
			start := time.Now()
			var drained *pawl.DrainError
			require.ErrorAs(t, stop(), &drained)
			require.Less(t, time.Since(start), 8*time.Second)
			require.Contains(t, drained.Stuck, jobs[0].ID)
			require.Len(t, f.Log.Of("stuck"), 1)
		})
	}
}

// W7.
func TestAJobOnItsWayAtShutdownIsGivenBackAtOnce(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	w := f.Worker("q", pawl.WorkerConfig{})
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
	f.put(t, "q", 1)
	leased := f.Proxy.Seen("lease", 1)
	f.Proxy.On("lease", 1, redistest.Delay(100*time.Millisecond))
	stop := f.Start(w)
	<-leased
	require.NoError(t, stop(), "nothing that had started was cut short")
	require.Empty(t, f.Log.Of("started"))
	require.NotNil(t, f.Log.Wait(t, "released", 1)[0].Job)
	s, err := f.past.Queue("q").Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, s.Ready)
}

// Its key is free once the job has started, which it has not.
func TestAJobThatIsGivenBackUnrunHoldsItsKey(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	w := f.Worker("q", pawl.WorkerConfig{})
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
	claim := func() pawl.Enqueued {
		got, err := f.past.Queue("q").Enqueue(t.Context(), note{1}, pawl.Unique{Key: "one", Until: pawl.UntilStarted})
		require.NoError(t, err)
		return got
	}
	first := claim()
	leased := f.Proxy.Seen("lease", 1)
	f.Proxy.On("lease", 1, redistest.Delay(100*time.Millisecond))
	stop := f.Start(w)
	<-leased
	require.NoError(t, stop())
	require.Empty(t, f.Log.Of("started"))
	second := claim()
	require.True(t, second.Duplicate)
	require.Equal(t, first.ID, second.ID)
}

func TestIdleWorkersStartAJobAtOnceAndAskSeldom(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	const workers = 20
	var stops []func() error
	for range workers {
		w := f.Worker("q", pawl.WorkerConfig{Concurrency: 2})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		stops = append(stops, f.Start(w))
	}
	blocked := func(ctx context.Context) bool {
		info, _ := f.Direct.Info(ctx, "clients").Result()
		return strings.Contains(info, "blocked_clients:20\r\n")
	}
	redistest.Eventually(t, "all of them wait", blocked)
	before := f.Proxy.Calls("lease")
	start := time.Now()
	f.put(t, "q", 1)
	f.Log.Wait(t, "done", 1)
	require.Less(t, time.Since(start), 1900*time.Millisecond, "before a blocking read ends")
	redistest.Eventually(t, "all of them wait again", blocked)
	require.Less(t, f.Proxy.Calls("lease")-before, 20, "one job does not wake the fleet")
	for _, stop := range stops {
		require.NoError(t, stop())
	}
}

// Two queues share a worker; the read that waits for both must never leave one
// out for longer than a moment.
func TestAQuietQueueIsHeardBesideABusyOne(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	w := f.Worker("", pawl.WorkerConfig{Queues: pawl.Queues("busy", "quiet"), Concurrency: 2})
	var busy atomic.Int64
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		if job.Queue == "busy" {
			busy.Add(1)
			<-time.After(20 * time.Millisecond)
		}
		return nil
	})
	stop := f.Start(w)
	f.put(t, "busy", 200)
	f.Log.Wait(t, "started", 20)
	f.put(t, "quiet", 1)
	redistest.Eventually(t, "the quiet queue's job is done", func(context.Context) bool {
		return f.Total(t, "quiet").Done == 1
	})
	require.Less(t, busy.Load(), int64(150), "it did not wait for the busy queue to be empty")
	require.NoError(t, stop())
}
