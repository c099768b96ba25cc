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

// told starts a worker with five of ten jobs running and sends it SIGTERM.
func told(t *testing.T, v victim) (*faulty, *process) {
	t.Helper()
	f := behindProxy(t, redistest.Start(t), 0)
	f.put(t, "q", 10)
	v.Addr, v.Queue, v.Concurrency = f.Server.Addr(), "q", 5
	p := v.run(t)
	for range 5 {
		require.True(t, p.await("started"))
	}
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.True(t, p.await("told to end"))
	return f, p
}

// heir is another worker, whose events are recorded.
func (f *faulty) heir(t *testing.T, visibility time.Duration) {
	t.Helper()
	w, err := pawl.NewWorker(f.pastWithLog(t), pawl.WorkerConfig{Queues: pawl.Queues("q"), VisibilityTimeout: visibility})
	require.NoError(t, err)
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		require.Equal(t, 1, job.Attempt)
		return nil
	})
	f.Start(w)
}

// wholeRuns fails the test unless what was started is done, and some was not.
func (f *faulty) wholeRuns(t *testing.T) {
	t.Helper()
	total := f.Total(t, "q")
	require.Equal(t, pawl.Counters{Enqueued: 10, Started: total.Done, Done: total.Done}, total)
	require.GreaterOrEqual(t, total.Done, int64(5))
	require.Less(t, total.Done, int64(10))
}

// W7. SIGTERM: no new jobs; those that run may finish for the drain timeout.
func TestSIGTERMLetsHandlersFinish(t *testing.T) {
	t.Parallel()
	f, p := told(t, victim{Do: "work", Took: time.Second, Visibility: 500 * time.Millisecond, Drain: time.Minute})
	start := time.Now()
	require.True(t, p.await("run <nil>"))
	measured(t, "W7", "five handlers of 1 s had finished and the process ended", time.Since(start))
	require.True(t, p.end().Success())
	f.wholeRuns(t)
}

// W7. Those that take longer have their contexts ended and go back, to be taken
// at once, nothing spent.
func TestSIGTERMGivesBackWhatDoesNotFinish(t *testing.T) {
	t.Parallel()
	f, p := told(t, victim{Do: "heed", Visibility: time.Minute, Drain: 300 * time.Millisecond})
	start := time.Now()
	require.True(t, p.await("run pawl: drain: released 5, stuck 0"))
	require.True(t, p.end().Success())
	f.heir(t, time.Minute)
	f.Log.Wait(t, "done", 10)
	measured(t, "W7", "five released jobs and five others were done", time.Since(start))
	require.Equal(t, pawl.Counters{Enqueued: 10, Started: 15, Released: 5, Done: 10}, f.Total(t, "q"))
}

// W7. A second SIGTERM that the program catches, as signal.NotifyContext does
// until its stop is called, changes nothing of the drain.
func TestASecondSIGTERMThatIsCaughtDoesNotHurryTheDrain(t *testing.T) {
	t.Parallel()
	f, p := told(t, victim{Do: "work", Took: time.Second, Visibility: time.Minute, Drain: time.Minute})
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.True(t, p.await("run <nil>"))
	require.True(t, p.end().Success())
	f.wholeRuns(t)
}

// W7. SIGKILL while draining, or a second SIGTERM that is not caught: until then
// the leases are renewed, from then on they run out, and nothing is lost.
func TestAWorkerKilledWhileItDrainsLosesNoJob(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"SIGKILL": syscall.SIGKILL, "a second SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const visibility = 2 * time.Second
			f, p := told(t, victim{Do: "work", Took: time.Hour, Visibility: visibility, Drain: time.Hour, Second: true})
			f.heir(t, visibility)
			f.Log.Wait(t, "done", 5) // those that had not begun
			<-time.After(3 * visibility / 2)
			require.Len(t, f.Log.Of("started"), 5, "the leases of a worker that drains are renewed")
			killed := time.Now()
			require.NoError(t, p.Process.Signal(sig))
			require.Equal(t, sig, p.end().Sys().(syscall.WaitStatus).Signal())
			f.Log.Wait(t, "done", 10)
			took := time.Since(killed)
			measured(t, "W7", name+" while draining: all five were done", took)
			require.Less(t, took, 3*(visibility+2*time.Second))
			require.Equal(t, pawl.Counters{Enqueued: 10, Started: 15, Crashed: 5, Done: 10}, f.run(t, "q"))
		})
	}
}
