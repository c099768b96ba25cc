package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// P2, durability: everysec. The power fails before the last writes were synced,
// under workers and producers that live through it.
func TestEverysecLosesWhatWasNotSyncedWhenThePowerFails(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "everysec")
	e := newEnv(t, s.Client(t), nil)
	w := e.Worker("q", pawl.WorkerConfig{Concurrency: 4, VisibilityTimeout: 2 * time.Second})
	var handled runs
	held, gate := make(chan struct{}), make(chan struct{})
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		handled.add(job.Args.N)
		switch n := job.Args.N; {
		case 100 <= n && n < 104:
			<-held
		case 300 <= n && n < 304:
			<-gate
		}
		return nil
	})
	stop := e.Start(w)
	e.put("q", 0, 50)
	e.Log.Wait(t, "done", 50)
	later := e.put("q", 50, 60, pawl.Delay(time.Hour))
	e.put("q", 100, 104) // leased before, done after the last sync
	e.Log.Wait(t, "started", 54)
	awaitSync(t, e.Redis)
	synced := s.AOF()
	close(held)
	e.Log.Wait(t, "done", 54)
	tail := e.put("q", 200, 250) // enqueued and done
	tail = append(tail, e.put("q", 250, 260, pawl.Delay(time.Hour), pawl.Priority(2))...)
	e.Log.Wait(t, "done", 104)
	tail = append(tail, e.put("q", 300, 304)...) // being run when it fails
	e.Log.Wait(t, "started", 108)

	s.RestartWith(synced)
	up := time.Now()
	fresh := e.put("q", 400, 401)[0]
	close(gate)
	e.Log.Wait(t, "lost", 4)
	e.Log.Wait(t, "done", 109)
	measured(t, "P2 everysec", "all that was not lost done after the restart", time.Since(up))
	for _, job := range tail {
		require.Empty(t, e.state("q", job.ID))
		require.Less(t, job.ID.String(), fresh.ID.String(), "ids go on rising")
	}
	for _, job := range later {
		require.Equal(t, pawl.StateDelayed, e.state("q", job.ID))
	}
	require.NoError(t, stop())
	require.Len(t, e.Log.Of("lost"), 4, "who held a job that is gone hears of it")
	handled.mu.Lock()
	for n, times := range handled.of {
		want := 1
		if 100 <= n && n < 104 { // their ends were forgotten
			want = 2
		}
		require.Equal(t, want, times, "note %d", n)
	}
	handled.mu.Unlock()
	stats, err := e.Queue("q").Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, pawl.Counters{Enqueued: 65, Started: 59, Done: 55, Crashed: 4}, stats.Total)
	require.EqualValues(t, len(later), stats.Delayed)
}

// P2, durability: always. What the power takes was not answered yet, and is done
// once when it is back.
func TestAlwaysLosesNothingAcknowledgedWhenThePowerFails(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always"), 20*time.Second)
	w := f.Worker("q", pawl.WorkerConfig{Concurrency: 4, VisibilityTimeout: 10 * time.Second})
	var handled runs
	gate := make(chan struct{})
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		handled.add(job.Args.N)
		if 100 <= job.Args.N && job.Args.N < 104 {
			<-gate
		}
		return nil
	})
	stop := f.Start(w)
	f.env.put("q", 0, 50)
	f.Log.Wait(t, "done", 50)
	acked := f.env.put("q", 50, 60, pawl.Delay(time.Hour))
	f.env.put("q", 100, 104)
	f.Log.Wait(t, "started", 54)
	answered := f.Server.AOF()

	// An enqueue and outcomes of four jobs run, are written, and have no answer.
	// The outcomes travel in one round trip or in two.
	settles := f.Proxy.On("settle", 0, redistest.RunDropReplyAndHold)
	enqueues := f.Proxy.On("enqueue", f.Proxy.Calls("enqueue")+1, redistest.RunDropReplyAndHold)
	type result struct {
		job pawl.Enqueued
		err error
	}
	done := make(chan result, 1)
	go func() {
		job, err := f.Queue("q").Enqueue(within(t, 15*time.Second), note{200})
		done <- result{job, err}
	}()
	<-enqueues
	close(gate)
	<-settles
	require.Greater(t, f.Server.AOFSize(), int64(len(answered)))
	f.Server.Kill()
	f.Proxy.Clear()
	f.Server.RestartWith(answered)
	up := time.Now()
	f.Proxy.Release()
	got := <-done
	require.NoError(t, got.err)
	f.Log.Wait(t, "done", 55)
	measured(t, "P2 always", "an enqueue and four outcomes that had no answer stored", time.Since(up))
	require.NoError(t, stop())
	handled.each(t, 55, 1)
	for _, job := range acked {
		require.Equal(t, pawl.StateDelayed, f.state("q", job.ID))
	}
	total := f.Total(t, "q")
	require.Equal(t, pawl.Counters{Enqueued: 65, Started: 55, Done: 55}, total)
	require.Empty(t, f.Log.Of("lost"))
}
