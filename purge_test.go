package pawl_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

func purge(t *testing.T, q *pawl.Queue, s pawl.State, f pawl.Filter) int64 {
	t.Helper()
	n, err := q.Purge(t.Context(), s, f)
	require.NoError(t, err)
	return n
}

func TestPurgeRemovesWhatMatchesAndCountsIt(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		w := e.Worker("q", pawl.WorkerConfig{Concurrency: 2, DrainTimeout: time.Second})
		pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
			if job.Args.N == 0 {
				return untilCancelled(ctx, job)
			}
			return pawl.Permanent(errors.New("no"))
		})
		put(t, q, 0)
		for range 5 {
			put(t, q, 1)
		}
		e.Start(w)
		e.Log.Wait(t, "dead", 5)
		require.NoError(t, q.Pause(t.Context(), pawl.Forever))
		tenant := pawl.Header{Key: "tenant", Value: "a"}
		held, window := pawl.Unique{Key: pawl.Key("held")}, pawl.Unique{Key: pawl.Key("window"), For: time.Hour}
		put(t, q, 2, held)
		put(t, q, 2, window, tenant)
		put(t, q, 2, pawl.Priority(3))
		for range 4 {
			put(t, q, 2, pawl.Delay(time.Hour), tenant)
			put(t, q, 2, pawl.Delay(time.Hour), pawl.Priority(2))
		}

		require.Zero(t, purge(t, q, pawl.StateReady, pawl.Filter{Kind: "none"}))
		require.EqualValues(t, 3, purge(t, q, pawl.StateDelayed, pawl.Filter{Header: tenant, Limit: 3}))
		require.EqualValues(t, 1, purge(t, q, pawl.StateDelayed, pawl.Filter{Header: tenant}))
		require.EqualValues(t, 4, purge(t, q, pawl.StateDelayed, pawl.Filter{}))
		require.EqualValues(t, 3, purge(t, q, pawl.StateReady, pawl.Filter{}))
		require.EqualValues(t, 2, purge(t, q, pawl.StateDead, pawl.Filter{Limit: 2}))
		require.EqualValues(t, 3, purge(t, q, pawl.StateDead, pawl.Filter{Kind: "note"}))
		for _, s := range []pawl.State{pawl.StateReady, pawl.StateDelayed, pawl.StateDead} {
			require.Zero(t, purge(t, q, s, pawl.Filter{}), s)
		}
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, [4]int64{0, 0, 1, 0}, [4]int64{s.Ready, s.Delayed, s.Running, s.Dead}, "what runs is left alone")
		require.EqualValues(t, 16, s.Total.Purged)

		again, err := q.Enqueue(t.Context(), note{3}, held)
		require.NoError(t, err)
		require.False(t, again.Duplicate, "its key is free")
		again, err = q.Enqueue(t.Context(), note{3}, window)
		require.NoError(t, err)
		require.True(t, again.Duplicate, "a window lasts")
	})
}

// L6. Each job is run or purged, whatever the order.
func TestPurgeWhileWorkersLease(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		const n = 2000
		fill(t, e, n, "q")
		var ran atomic.Int64
		w := e.Worker("q", pawl.WorkerConfig{Concurrency: 50})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error {
			ran.Add(1)
			<-time.After(time.Millisecond)
			return nil
		})
		e.Start(w)
		purged := int64(0)
		for range 100 {
			purged += purge(t, q, pawl.StateReady, pawl.Filter{Limit: 7})
			<-time.After(time.Millisecond)
		}
		e.Log.Wait(t, "done", int(n-purged))
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, n, ran.Load()+purged)
		require.Equal(t, pawl.Counters{Enqueued: n, Started: n - purged, Done: n - purged, Purged: purged}, s.Total)
		require.NotZero(t, purged)
	})
}

func TestPurgeGoesInSteps(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		const n = 20_000
		fill(t, e, n/2, "q")
		_, err := q.EnqueueMany(t.Context(), pawl.Items(make([]note, n/2), pawl.Delay(time.Hour)))
		require.NoError(t, err)
		require.EqualValues(t, n/2, purge(t, q, pawl.StateReady, pawl.Filter{}))
		require.EqualValues(t, n/2, purge(t, q, pawl.StateDelayed, pawl.Filter{}))
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.Zero(t, s.Depth())
		require.EqualValues(t, n, s.Total.Purged)
	})
}

func TestAPurgeWithALostAnswerCountsEachJobOnce(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 100*time.Millisecond)
	for name, fault := range cuts {
		queue := freshQueue()
		q := f.Queue(queue)
		f.put(t, queue, 100)
		f.Proxy.Clear()
		f.Proxy.On("purge", 1, fault)
		n, err := q.Purge(t.Context(), pawl.StateReady, pawl.Filter{})
		require.NoError(t, err, name)
		require.EqualValues(t, 100, n, name)
		f.Proxy.Release()
		require.Equal(t, pawl.Counters{Enqueued: 100, Purged: 100}, f.Total(t, queue), name)
	}
}
