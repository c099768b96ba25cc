package pawl_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// blackHoleEnv is how long the black hole of N5 lasts: 60s is the row's own size.
const blackHoleEnv = "PAWL_BLACKHOLE"

func blackHole(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(blackHoleEnv)
	if text == "" {
		return 8 * time.Second
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

// N5. A worker is cut off from the network while its job finishes, and another is
// not: when the lease has run out the other runs the job again, and the first is
// told so.
func TestWhatFinishedInABlackHoleRunsAgainIfAnotherTakesItFirst(t *testing.T) {
	t.Parallel()
	const visibility = 2 * time.Second
	f := behindProxy(t, redistest.Start(t), 0)
	var handled runs
	cutOff, finish := f.Worker("q", pawl.WorkerConfig{VisibilityTimeout: visibility}), make(chan struct{})
	pawl.Handle(cutOff, func(_ context.Context, job *pawl.Job[note]) error {
		handled.add(job.Args.N)
		<-finish
		return nil
	})
	f.Start(cutOff)
	f.put(t, "q", 1)
	f.Log.Wait(t, "started", 1)
	f.Proxy.Blackhole(true)
	close(finish) // its effect has happened, and cannot be told

	other, err := pawl.NewWorker(f.past, pawl.WorkerConfig{Queues: pawl.Queues("q"), VisibilityTimeout: visibility})
	require.NoError(t, err)
	pawl.Handle(other, func(_ context.Context, job *pawl.Job[note]) error {
		handled.add(job.Args.N)
		return nil
	})
	f.Start(other)
	redistest.Eventually(t, "another has run it", func(context.Context) bool { return f.Total(t, "q").Done == 1 })
	f.Proxy.Blackhole(false)
	f.Log.Wait(t, "lost", 1)
	handled.each(t, 1, 2)
	total := f.Total(t, "q")
	require.EqualValues(t, 1, total.Done, "it is counted once")
	require.EqualValues(t, 1, total.Crashed)
	require.Zero(t, total.Retried, "no attempt was spent")
}

// N5. Ten jobs finish in the black hole, after their leases have run out; ten
// heed the end of their lease; thirty wait.
func TestWorkResumesAfterABlackHole(t *testing.T) {
	t.Parallel()
	const visibility = 3 * time.Second
	f := behindProxy(t, redistest.Start(t), 0)
	w := f.Worker("q", pawl.WorkerConfig{Concurrency: 20, VisibilityTimeout: visibility})
	var handled, finished runs
	finish := make(chan struct{})
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
		first := handled.add(job.Args.N) == 1
		switch {
		case job.Args.N < 10:
			<-finish
		case job.Args.N < 20 && first:
			<-ctx.Done()
			return ctx.Err()
		}
		finished.add(job.Args.N)
		return nil
	})
	label := t.Name()
	var stop func() error
	labelled(label, func() { stop = f.Start(w) })
	f.put(t, "q", 20)
	f.Log.Wait(t, "started", 20)
	require.NoError(t, w.Healthy())
	before := newFlat(t, label, f.Proxy)
	more := make([]note, 30)
	for i := range more {
		more[i].N = 20 + i
	}
	_, err := f.past.Queue("q").EnqueueMany(t.Context(), pawl.Items(more))
	require.NoError(t, err)

	f.Proxy.Blackhole(true)
	began := time.Now()
	lasts := time.NewTimer(blackHole(t))
	enqueued := make(chan error, 1)
	go func() {
		_, err := f.Client.Queue("q").Enqueue(within(t, time.Second), note{1000})
		enqueued <- err
	}()
	f.Log.Wait(t, "lost", 20) // by the worker's own clock
	took := time.Since(began)
	measured(t, "N5", "every context had ended", took)
	require.Less(t, took, 3*visibility)
	f.Log.Wait(t, "outage", 1)
	measured(t, "N5", "the black hole was noticed", time.Since(began))
	require.ErrorIs(t, <-enqueued, context.DeadlineExceeded, "no enqueue is said to have been made")
	close(finish)
	unwell := time.NewTicker(50 * time.Millisecond)
	defer unwell.Stop()
	for in := true; in; {
		select {
		case <-unwell.C:
			require.Error(t, w.Healthy(), "in the black hole")
		case <-lasts.C:
			in = false
		}
	}
	f.Proxy.Blackhole(false)
	healed := time.Now()
	started := len(f.Log.Of("started"))
	f.Log.Wait(t, "started", started+1)
	took = time.Since(healed)
	measured(t, "N5", "work resumed", took)
	require.Less(t, took, 3*(visibility+2*time.Second))
	f.Log.Wait(t, "done", 50)
	measured(t, "N5", "all jobs were done", time.Since(healed))
	redistest.Eventually(t, "the worker is healthy", func(context.Context) bool { return w.Healthy() == nil })
	require.Len(t, f.Log.Of("back"), len(f.Log.Of("outage")))
	finished.each(t, 50, 1) // what had finished did not run again
	for n := range 10 {
		require.Equal(t, 1, handled.of[n], "note %d", n)
	}
	total := f.Total(t, "q")
	require.EqualValues(t, 50, total.Done)
	require.Zero(t, total.Failed+total.Retried, "no attempt was spent")
	require.LessOrEqual(t, total.Enqueued, int64(51), "the enqueue that got no answer made one job or none")
	before.still(t)
	require.NoError(t, stop())
}

// N5. Connections are reset faster than calls are answered, for a while.
func TestAStormOfResetsLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	w := f.Worker("q", pawl.WorkerConfig{Concurrency: 10, VisibilityTimeout: 30 * time.Second})
	var handled runs
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		handled.add(job.Args.N)
		return nil
	})
	label := t.Name()
	var stop func() error
	labelled(label, func() { stop = f.Start(w) })
	redistest.Eventually(t, "the worker is healthy", func(context.Context) bool { return w.Healthy() == nil && f.Proxy.Calls("blpop") > 0 })
	before := newFlat(t, label, f.Proxy)
	require.Positive(t, before.connections)
	const jobs = 300
	ended := make(chan error, 1)
	q := f.Queue("q")
	go func() {
		for i := range jobs {
			if _, err := q.Enqueue(context.Background(), note{i}); err != nil && !errors.Is(err, pawl.ErrUnconfirmed) {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for range 200 {
		<-every.C
		f.Proxy.CutAll()
	}
	calm := time.Now()
	require.NoError(t, <-ended)
	f.Log.Wait(t, "done", jobs)
	measured(t, "N5", "all jobs were done after a storm of resets", time.Since(calm))
	handled.each(t, jobs, 1)
	total := f.Total(t, "q")
	require.Equal(t, pawl.Counters{Enqueued: jobs, Started: jobs, Done: jobs}, total)
	redistest.Eventually(t, "the worker is healthy", func(context.Context) bool { return w.Healthy() == nil })
	before.still(t)
	require.NoError(t, stop())
	require.Empty(t, f.Log.Of("lost"))
}

// Case 7.
func TestAWorkerConsumesSoonAfterThreeResetsOfAllConnections(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	w := f.Worker("q", pawl.WorkerConfig{})
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
	stop := f.Start(w)
	f.put(t, "q", 1)
	f.Log.Wait(t, "done", 1)
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for range 3 {
		<-every.C
		f.Proxy.CutAll()
	}
	reset := time.Now()
	f.put(t, "q", 1)
	f.Log.Wait(t, "done", 2)
	took := time.Since(reset)
	measured(t, "case 7", "consuming again", took)
	require.Less(t, took, 5*time.Second)
	require.NoError(t, stop())
}

// Case 8, at a fifth of its times: due in 6 s, and cut from 1 s to 3 s.
func TestADueJobStartsOnTimeAfterACut(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(p *redistest.Proxy, on bool){
		"of a network that loses all": func(p *redistest.Proxy, on bool) { p.Blackhole(on) },
		"of a network that resets all": func(p *redistest.Proxy, on bool) {
			if on {
				p.On(redistest.Any, 0, redistest.Drop)
				p.CutAll()
			} else {
				p.Clear()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := behindProxy(t, redistest.Start(t), 0)
			w := f.Worker("q", pawl.WorkerConfig{})
			pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
			stop := f.Start(w)
			due := time.Now().Add(6 * time.Second) // the server's clock is this one
			f.put(t, "q", 1, pawl.At(due))
			<-time.After(time.Second)
			cut(f.Proxy, true)
			<-time.After(time.Until(due.Add(-3 * time.Second)))
			cut(f.Proxy, false)
			f.Log.Wait(t, "started", 1)
			late := time.Since(due)
			measured(t, "case 8", "the job started, counted from when it was due,", late)
			require.GreaterOrEqual(t, late, time.Duration(0))
			require.Less(t, late, 2*time.Second)
			f.Log.Wait(t, "done", 1)
			require.NoError(t, stop())
		})
	}
}
