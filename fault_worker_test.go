package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// cuts are what a network does to a call; the read timeout of those who use them
// is 100 ms.
var cuts = map[string]redistest.Fault{
	"the request is dropped": redistest.Drop, "the reply is dropped": redistest.RunDropReply,
	"reset after it ran": redistest.RunReset, "half a reply": redistest.HalfReply,
	"the request is late": redistest.Late, "the reply never comes": redistest.RunDropReplyAndHold,
	"the request stalls": redistest.Stall(200 * time.Millisecond), "the reply stalls": redistest.Delay(200 * time.Millisecond),
	"the reply trickles": redistest.Trickle(50 * time.Microsecond),
}

// eachCut runs fn with each way to cut a call of a script, behind a proxy of its own.
func eachCut(t *testing.T, server *redistest.Server, script string, fn func(t *testing.T, f *faulty, fault redistest.Fault)) {
	t.Helper()
	for name, fault := range cuts {
		t.Run(script+": "+name, func(t *testing.T) {
			t.Parallel()
			fn(t, behindProxy(t, server, 100*time.Millisecond), fault)
		})
	}
}

// N2, N3, N4. Every call of a verb that comes to it is cut in turn, and
// everything happens once all the same.
func TestAWorkerWithLostAnswersEndsEachJobOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, verb := range []string{"lease", "settle", "retry", "bury", "extend"} {
		eachCut(t, server, verb, func(t *testing.T, f *faulty, fault redistest.Fault) {
			fired := f.Proxy.On(verb, 1, fault)
			f.Proxy.On(verb, 2, fault)
			f.Proxy.On(verb, 4, fault)
			f.endEachOnce(t, verb == "extend")
			<-fired
		})
	}
}

// N3, case 22. Whatever a call is refused with that may pass, it is made again:
// no job runs again for it, and no attempt is spent.
func TestACallOfAWorkerThatIsRefusedIsMadeAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, text := range []string{"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica.",
		"MASTERDOWN Link with MASTER is down", "CLUSTERDOWN The cluster is down", "TRYAGAIN Multiple keys request during rehashing of slot",
		"NOREPLICAS Not enough good replicas to write.", "MISCONF Redis is configured to save RDB snapshots", "BUSY Redis is busy running a script.",
		"OOM command not allowed when used memory > 'maxmemory'.", "NOAUTH Authentication required.", "NOPERM this user has no permissions",
		"NOSCRIPT No matching script.", "ERR max number of clients reached", "ERR something that nobody has heard of"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			f := behindProxy(t, server, 0)
			var fired []<-chan struct{}
			for _, verb := range []string{"lease", "settle", "retry", "bury", "extend"} {
				fired = append(fired, f.Proxy.On(verb, 1, redistest.Refuse(text)))
				f.Proxy.On(verb, 3, redistest.Refuse(text))
			}
			f.endEachOnce(t, true)
			for _, ch := range fired {
				<-ch
			}
		})
	}
}

// endEachOnce has a worker end ten jobs, of each kind of end some, and fails the
// test unless each ended once, with no lease lost and no attempt spent for nothing.
// A long one needs five renewals.
func (f *faulty) endEachOnce(t *testing.T, long bool) {
	t.Helper()
	queue := freshQueue()
	f.put(t, queue, 10)
	visibility := 30 * time.Second
	if long {
		visibility = 3 * time.Second
	}
	var handled runs
	w := f.Worker(queue, pawl.WorkerConfig{Concurrency: 3, VisibilityTimeout: visibility,
		Backoff: pawl.Backoff{Base: time.Millisecond, Jitter: pawl.JitterNone}})
	renewed := f.Proxy.Seen("extend", 5)
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		first := handled.add(job.Args.N) == 1
		switch {
		case job.Args.N == 9 && long:
			<-renewed
		case job.Args.N < 3 && first:
			return errors.New("again")
		case job.Args.N == 3:
			return pawl.Permanent(errors.New("no"))
		}
		return nil
	})
	stop := f.Start(w)
	f.Log.Wait(t, "done", 9)
	f.Log.Wait(t, "dead", 1)
	require.NoError(t, stop())
	f.Proxy.Release()
	require.Empty(t, f.Log.Of("lost"))
	require.Len(t, f.Log.Of("done"), 9, "a hook hears of each end once")
	require.Len(t, f.Log.Of("retry"), 3)
	require.Len(t, f.Log.Of("dead"), 1)
	require.Equal(t, pawl.Counters{Enqueued: 10, Started: 13, Retried: 3, Failed: 4, Done: 9, Dead: 1}, f.Total(t, queue))
}

// N3.
func TestAReleaseWithALostAnswerHappensOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	eachCut(t, server, "release", func(t *testing.T, f *faulty, fault redistest.Fault) {
		queue := freshQueue()
		f.put(t, queue, 1)
		f.Proxy.On("release", 1, fault)
		w := f.Worker(queue, pawl.WorkerConfig{DrainTimeout: time.Millisecond})
		pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		stop := f.Start(w)
		f.Log.Wait(t, "started", 1)
		var drained *pawl.DrainError
		require.ErrorAs(t, stop(), &drained)
		require.Len(t, drained.Released, 1)
		f.Proxy.Release()
		require.Equal(t, pawl.Counters{Enqueued: 1, Started: 1, Released: 1}, f.Total(t, queue))
	})
}

// W10.
func TestALongHandlerKeepsItsLease(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	w := f.Worker("q", pawl.WorkerConfig{VisibilityTimeout: 300 * time.Millisecond})
	pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
		select {
		case <-time.After(time.Second):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	stop := f.Start(w)
	f.Proxy.On("extend", 2, redistest.Drop)
	f.put(t, "q", 1)
	f.Log.Wait(t, "done", 1)
	require.NoError(t, stop())
	require.Equal(t, pawl.Counters{Enqueued: 1, Started: 1, Done: 1}, f.Total(t, "q"))
}

// underLoad runs many jobs while fault goes on, and then some more: all end
// once, and the worker comes back by itself.
func underLoad(t *testing.T, f *faulty, fault func()) {
	t.Helper()
	const visibility = 20 * time.Second
	w := f.Worker("q", pawl.WorkerConfig{Concurrency: 10, VisibilityTimeout: visibility})
	var handled runs
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		handled.add(job.Args.N)
		<-time.After(time.Millisecond)
		return nil
	})
	stop := f.Start(w)
	require.Eventually(t, func() bool { return w.Healthy() == nil }, 5*time.Second, time.Millisecond)
	const jobs = 500
	f.put(t, "q", jobs)
	f.Log.Wait(t, "done", 50)
	fault()
	healed := time.Now()
	f.Log.Wait(t, "done", jobs)
	require.Less(t, time.Since(healed), visibility, "no job waited for its lease to run out")
	require.Eventually(t, func() bool { return w.Healthy() == nil }, 5*time.Second, time.Millisecond)
	require.Len(t, f.Log.Of("back"), len(f.Log.Of("outage")))

	// It hears of new work at once, not only when a timer ends.
	more := f.put(t, "q", 1)
	start := time.Now()
	f.Log.Wait(t, "done", jobs+1)
	require.Less(t, time.Since(start), 1900*time.Millisecond)
	require.Len(t, more, 1)
	require.NoError(t, stop())
	require.Error(t, w.Healthy())
	require.Empty(t, f.Log.Of("lost"))
	handled.mu.Lock()
	require.Equal(t, 2, handled.of[0], "note 0 was put twice")
	require.Len(t, handled.of, jobs)
	handled.mu.Unlock()
	total := f.Total(t, "q")
	require.EqualValues(t, jobs+1, total.Enqueued)
	require.EqualValues(t, jobs+1, total.Done)
	require.EqualValues(t, jobs+1, total.Started)
}

func TestAWorkerComesBackByItself(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(t *testing.T, f *faulty){
		"from a black hole": func(t *testing.T, f *faulty) {
			f.Proxy.Blackhole(true)
			f.Log.Wait(t, "outage", 1)
			f.Proxy.Blackhole(false)
			f.Log.Wait(t, "back", 1)
			require.Len(t, f.Log.Of("outage"), 1, "one outage is one event")
		},
		"from a storm of resets": func(t *testing.T, f *faulty) {
			every := time.NewTicker(100 * time.Millisecond)
			defer every.Stop()
			for range 20 {
				<-every.C
				f.Proxy.CutAll()
			}
		},
		"from a server killed and restarted": func(t *testing.T, f *faulty) {
			f.Server.Kill()
			f.Log.Wait(t, "outage", 1)
			f.Server.Restart()
		},
		"from a frozen server": func(t *testing.T, f *faulty) {
			f.Server.Pause()
			f.Log.Wait(t, "outage", 1)
			f.Server.Resume()
		},
		"from clients that were killed": func(t *testing.T, f *faulty) {
			for range 5 {
				require.NoError(t, f.Direct.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal").Err())
			}
		},
		"from scripts that were refused": func(t *testing.T, f *faulty) {
			require.NoError(t, f.Direct.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
			f.Log.Wait(t, "outage", 1)
			require.NoError(t, f.Direct.ConfigSet(t.Context(), "min-replicas-to-write", "0").Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := behindProxy(t, redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always"), time.Second)
			underLoad(t, f, func() { fault(t, f) })
		})
	}
}

func TestAWorkerSurvivesFlushall(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	w := f.Worker("q", pawl.WorkerConfig{Concurrency: 2})
	release := make(chan struct{})
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error {
		<-release
		return nil
	})
	stop := f.Start(w)
	f.put(t, "q", 5)
	f.Log.Wait(t, "started", 2)
	require.NoError(t, f.Direct.FlushAll(t.Context()).Err())
	close(release)
	f.Log.Wait(t, "lost", 2)
	f.put(t, "q", 3)
	f.Log.Wait(t, "done", 3)
	require.NoError(t, stop())
	require.EqualValues(t, 3, f.Total(t, "q").Done)
}

func TestAWrongTypeStopsOneQueueAlone(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	wake := "pawl:{bad}:wake"
	require.NoError(t, f.Direct.Set(t.Context(), wake, "not a list", 0).Err())
	w := f.Worker("", pawl.WorkerConfig{Queues: pawl.Queues("bad", "good"), Concurrency: 1})
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
	stop := f.Start(w)
	f.Log.Wait(t, "outage", 1)
	require.ErrorContains(t, w.Healthy(), "bad")
	for i := range 3 {
		start := time.Now()
		f.put(t, "good", 1)
		f.Log.Wait(t, "done", i+1)
		require.Less(t, time.Since(start), 1900*time.Millisecond)
	}
	require.NoError(t, f.Direct.Del(t.Context(), wake).Err())
	f.Log.Wait(t, "back", 1)
	f.put(t, "bad", 1)
	f.Log.Wait(t, "done", 4)
	require.NoError(t, w.Healthy())
	require.NoError(t, stop())
}
