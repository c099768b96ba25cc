package pawl_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// kept is the keys of a queue but its lanes, which expire.
func kept(t *testing.T, e *env, queue string) map[string]string {
	t.Helper()
	keys := redistest.Dump(t.Context(), e.Redis, "pawl:{"+queue+"}:")
	for key := range keys {
		if strings.Contains(key, ":lane:") {
			ttl, err := e.Redis.PTTL(t.Context(), key).Result()
			require.NoError(t, err)
			require.NotEqual(t, time.Duration(-1), ttl, key)
			delete(keys, key)
		}
	}
	return keys
}

func TestDestroyLeavesNothing(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ctx, q, other := t.Context(), e.Queue("q"), e.Queue("q.other")
		once := pawl.Unique{Key: pawl.Key("k"), For: time.Hour}
		for _, some := range []*pawl.Queue{q, other} {
			leaveOneOfEach(t, e, some, once)
		}
		untouched := kept(t, e, "q.other")
		require.Greater(t, len(kept(t, e, "q")), 8, "%v", kept(t, e, "q"))

		require.NoError(t, q.Destroy(ctx))
		require.Empty(t, kept(t, e, "q"))
		require.Equal(t, untouched, kept(t, e, "q.other"))
		names, err := e.Client.Queues(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"q.other"}, names)
		require.ErrorIs(t, q.Destroy(ctx), pawl.ErrNotFound)
		s, err := q.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, s)

		job, err := q.Enqueue(ctx, note{1}, once)
		require.NoError(t, err)
		require.False(t, job.Duplicate, "a window ends with its queue")
		names, err = e.Client.Queues(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"q", "q.other"}, names, "a new queue")
		s, err = q.Stats(ctx)
		require.NoError(t, err)
		require.Equal(t, pawl.Counters{Enqueued: 1}, s.Total)
	})
}

// leaveOneOfEach leaves a dead job and jobs that wait, in each way, and keys
// of jobs that are over.
func leaveOneOfEach(t *testing.T, e *env, q *pawl.Queue, once pawl.Unique) {
	t.Helper()
	put(t, q, 1)
	put(t, q, 2, once, retained)
	w := e.Worker(q.Name(), pawl.WorkerConfig{})
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		if job.Args.N == 1 {
			return pawl.Permanent(context.Canceled)
		}
		return nil
	})
	n := len(e.Log.Of("done")) + 1
	stop := e.Start(w)
	e.Log.Wait(t, "done", n)
	e.Log.Wait(t, "dead", n)
	require.NoError(t, stop())
	put(t, q, 3, pawl.Unique{Key: pawl.Key("live")})
	put(t, q, 4, pawl.Delay(time.Hour))
	put(t, q, 5, pawl.Priority(3))
	require.NoError(t, q.Pause(t.Context(), time.Hour))
}

func TestDestroyRefusesWhileJobsRun(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		put(t, q, 1)
		put(t, q, 2, pawl.Delay(time.Hour), pawl.Unique{Key: pawl.Key("k")})
		w := e.Worker("q", pawl.WorkerConfig{DrainTimeout: time.Millisecond})
		pawl.Handle(w, untilCancelled)
		stop := e.Start(w)
		e.Log.Wait(t, "started", 1)
		before := layout(t, e, "q")
		require.ErrorIs(t, q.Destroy(t.Context()), pawl.ErrState)
		require.Equal(t, before, layout(t, e, "q"))
		names, err := e.Client.Queues(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"q"}, names)
		require.Error(t, stop(), "its job is given back")
		require.NoError(t, q.Destroy(t.Context()))
		require.Empty(t, kept(t, e, "q"))
	})
}

func TestDestroyRemovesKeysOfAnyType(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		for _, key := range []string{"jobs", "held", "due", "prio", "leases", "runs", "dead", "dead:index", "meta", "minutes", "wake",
			"workers", "workers:info", "unique:x", "done", "done:at"} {
			put(t, e.Queue("q"), 1)
			require.NoError(t, e.Redis.Del(t.Context(), "pawl:{q}:"+key).Err())
			require.NoError(t, e.Redis.SAdd(t.Context(), "pawl:{q}:"+key, "x").Err())
			require.NoError(t, e.Queue("q").Destroy(t.Context()), key)
			require.Empty(t, kept(t, e, "q"), key)
		}
	})
}

func TestTheHolderOfADestroyedQueueHasLostItsLease(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	put(t, f.Queue("q"), 1)
	w := f.Worker("q", pawl.WorkerConfig{VisibilityTimeout: 300 * time.Millisecond})
	goOn := make(chan struct{})
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { <-goOn; return nil })
	stop := f.Start(w)
	f.Log.Wait(t, "started", 1)
	f.Proxy.Blackhole(true)
	operator := f.past.Queue("q")
	require.Eventually(t, func() bool { return operator.Destroy(t.Context()) == nil }, 20*time.Second, 20*time.Millisecond)
	f.Proxy.Blackhole(false)
	f.Proxy.CutAll()
	close(goOn)
	f.Log.Wait(t, "lost", 1)
	require.NoError(t, stop())
	require.Empty(t, f.Log.Of("done"))
	require.Zero(t, f.Total(t, "q"))
}
