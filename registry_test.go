package pawl_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
	"github.com/pawlq/pawl/internal/testhook"
)

func queuesOf(t *testing.T, c *pawl.Client) []string {
	t.Helper()
	names, err := c.Queues(t.Context())
	require.NoError(t, err)
	return names
}

func workersOf(t *testing.T, c *pawl.Client) []pawl.WorkerInfo {
	t.Helper()
	workers, err := c.Workers(t.Context())
	require.NoError(t, err)
	return workers
}

func TestQueuesAreListedFromTheirFirstJob(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		require.Empty(t, queuesOf(t, e.Client))
		want := []string{"a", "b.c", "jobs", "queues", "workers:info"}
		for _, name := range []string{"queues", "b.c", "jobs", "a", "workers:info"} {
			put(t, e.Queue(name), 1)
			require.Contains(t, queuesOf(t, e.Client), name, "before Enqueue returns")
		}
		require.Equal(t, want, queuesOf(t, e.Client), "sorted")
		for _, namespace := range []string{"other", "pawl:queues"} {
			// Not as the user of docs/security.md, who has one namespace.
			another, err := pawl.New(e.Redis, pawl.Config{Namespace: namespace})
			require.NoError(t, err)
			require.Empty(t, queuesOf(t, another))
			put(t, another.Queue("a"), 1)
			require.Equal(t, []string{"a"}, queuesOf(t, another))
		}
		require.Equal(t, want, queuesOf(t, e.Client))
		for _, name := range want {
			s, err := e.Queue(name).Stats(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 1, s.Ready, name)
		}
	})
}

func TestAQueueIsListedAgainAfterDestroy(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		ctx, q := t.Context(), e.Queue("q")
		put(t, q, 1)
		another := e.NewClient(pawl.Config{})
		put(t, another.Queue("q"), 1) // it knows the queue
		require.NoError(t, q.Destroy(ctx))
		require.Empty(t, queuesOf(t, e.Client))
		put(t, q, 1)
		require.Equal(t, []string{"q"}, queuesOf(t, e.Client), "by the client that destroyed it")

		require.NoError(t, q.Destroy(ctx))
		put(t, another.Queue("q"), 1)
		e.Pass(time.Minute)
		put(t, another.Queue("q"), 1)
		require.Equal(t, []string{"q"}, queuesOf(t, e.Client), "by another, once its minute is over")

		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Start(w)
		e.Log.Wait(t, "done", 2)
		require.NoError(t, q.Destroy(ctx))
		require.Empty(t, queuesOf(t, e.Client))
		e.Pass(11 * time.Second)
		require.Equal(t, []string{"q"}, queuesOf(t, e.Client), "a worker serves it")
		require.Len(t, workersOf(t, e.Client), 1)
	})
}

func TestAQueueThatOnlyAWorkerServedIsListed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		w := e.Worker("", pawl.WorkerConfig{Queues: pawl.Queues("b", "a")})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		stop := e.Start(w)
		e.Pass(time.Second)
		require.Equal(t, []string{"a", "b"}, queuesOf(t, e.Client))
		require.NoError(t, e.Queue("a").Pause(t.Context(), time.Hour), "it is a queue")
		require.NoError(t, stop())
		require.Equal(t, []string{"a", "b"}, queuesOf(t, e.Client))
	})
}

func TestWorkersAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		began := time.Now()
		host, err := os.Hostname()
		require.NoError(t, err)
		fill(t, e, 5, "b")
		w := e.Worker("", pawl.WorkerConfig{Name: "blue", Queues: pawl.Queues("b", "a", "c"), Concurrency: 7, DrainTimeout: time.Minute})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { <-time.After(3 * time.Minute); return nil })
		stop := e.Start(w)
		e.Pass(15 * time.Second)
		got := workersOf(t, e.Client)
		require.Len(t, got, 1)
		one := got[0]
		require.NotEmpty(t, one.Build)
		require.WithinDuration(t, began, one.StartedAt, time.Second)
		require.WithinDuration(t, began.Add(10*time.Second), one.SeenAt, time.Second)
		require.Equal(t, pawl.WorkerInfo{Name: "blue", Host: host, PID: os.Getpid(), Build: one.Build, Queues: []string{"a", "b", "c"},
			Concurrency: 7, Running: 5, StartedAt: one.StartedAt, SeenAt: one.SeenAt}, one)
		e.Pass(2 * time.Minute)
		later := workersOf(t, e.Client)[0]
		require.WithinDuration(t, one.StartedAt, later.StartedAt, time.Second)
		require.WithinDuration(t, time.Now(), later.SeenAt, 11*time.Second)

		stopped := make(chan error, 1)
		go func() { stopped <- stop() }()
		e.Pass(time.Millisecond)
		require.True(t, workersOf(t, e.Client)[0].Draining, "at once")
		e.Pass(30 * time.Second)
		require.True(t, workersOf(t, e.Client)[0].Draining)
		require.WithinDuration(t, time.Now(), workersOf(t, e.Client)[0].SeenAt, 11*time.Second)
		require.NoError(t, <-stopped)
		require.Empty(t, workersOf(t, e.Client), "gone when Run has returned")
	})
}

func TestAWorkerThatDiesIsListedForAMinute(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		for i := range 20 {
			w := e.Worker("", pawl.WorkerConfig{Name: fmt.Sprintf("w%02d", i), Queues: pawl.Queues("a", "b")})
			pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
			e.Start(w)
			if i%2 == 0 {
				defer testhook.Abandon(w)
			}
		}
		e.Pass(time.Second)
		got := workersOf(t, e.Client)
		require.Len(t, got, 20)
		for i, w := range got {
			require.Equal(t, fmt.Sprintf("w%02d", i), w.Name, "by name")
			require.Equal(t, []string{"a", "b"}, w.Queues)
		}
	})
	bubble(t, func(t *testing.T, e *env) {
		w := e.Worker("a", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Start(w)
		e.Pass(25 * time.Second)
		testhook.Abandon(w)
		e.Pass(30 * time.Second)
		got := workersOf(t, e.Client)
		require.Len(t, got, 1)
		seen := got[0].SeenAt
		require.WithinDuration(t, time.Now().Add(-35*time.Second), seen, 2*time.Second)
		e.Pass(time.Until(seen.Add(time.Minute)) - time.Second)
		require.Equal(t, seen, workersOf(t, e.Client)[0].SeenAt, "it stands still")
		e.Pass(time.Second)
		require.Empty(t, workersOf(t, e.Client))
		e.Pass(time.Minute)
		keys := kept(t, e, "a")
		require.NotContains(t, keys, "pawl:{a}:workers")
		require.NotContains(t, keys, "pawl:{a}:workers:info")
	})
}

// The end of Run waits for an unreachable Redis as long as it did for the
// blocking read alone.
func TestTheEndOfRunIsNotHeldUpByABeat(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*faulty){
		"killed":    func(f *faulty) { f.Server.Kill() },
		"blackhole": func(f *faulty) { f.Proxy.Blackhole(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := behindProxy(t, redistest.Start(t), time.Second)
			f.queues = nil
			w, err := pawl.NewWorker(f.Client, pawl.WorkerConfig{Queues: pawl.Queues("a", "b", "c", "d"), DrainTimeout: 100 * time.Millisecond})
			require.NoError(t, err)
			pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
			stop := f.Start(w)
			beats := f.Proxy.Seen("beat", 1)
			<-beats
			cut(f)
			f.Log.Wait(t, "outage", 1)
			start := time.Now()
			require.NoError(t, stop())
			require.Less(t, time.Since(start), 9*time.Second)
			if name == "killed" {
				f.Server.Restart()
			}
		})
	}
}
