package pawl_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// E2, case 10. Redis is full of a backlog.
func TestAFullRedisIsDrainedWhileEveryEnqueueIsRefused(t *testing.T) {
	t.Parallel()
	jobs := sized(10_000, 100_000)
	e := newEnv(t, redistest.Start(t).Client(t), nil)
	q := e.Queue("q")
	started := time.Now()
	e.put("q", 0, jobs)
	t.Logf("%d jobs enqueued after %v", jobs, time.Since(started))
	require.NoError(t, e.Redis.ConfigSet(t.Context(), "maxmemory", "100kb").Err()) // an empty server has more

	// A producer that asks all the while, to the end of the last job.
	drained, ended := make(chan struct{}), make(chan struct{})
	var asked atomic.Int64
	go func() {
		defer close(ended)
		every := time.NewTicker(2 * time.Millisecond)
		defer every.Stop()
		for n := jobs; ; n++ {
			start := time.Now()
			_, err := q.Enqueue(context.Background(), note{n}, []pawl.Option{pawl.Unique{Key: "k"}, pawl.Priority(3), pawl.Delay(time.Hour)}[n%3])
			if !errors.Is(err, pawl.ErrFull) || errors.Is(err, pawl.ErrUnconfirmed) {
				t.Errorf("an enqueue into a full Redis answered %v", err)
			}
			if took := time.Since(start); took > 4*time.Second {
				t.Errorf("it took %v to say so, as if it had been waited out", took)
			}
			asked.Add(1)
			select {
			case <-drained:
				return
			case <-every.C:
			}
		}
	}()
	// The outcomes are of all kinds, in a full Redis too.
	w := e.Worker("q", pawl.WorkerConfig{Concurrency: 100, Backoff: pawl.Backoff{Base: time.Millisecond, Jitter: pawl.JitterNone}})
	var handled runs
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		first := handled.add(job.Args.N) == 1
		switch {
		case job.Args.N%100 == 1 && first:
			return errors.New("again")
		case job.Args.N%100 == 2 && first:
			return pawl.Snooze(time.Millisecond)
		case job.Args.N%100 == 3:
			return pawl.Permanent(errors.New("no"))
		}
		return nil
	})
	stop := e.Start(w)
	drain := time.Now()
	redistest.EventuallyWithin(t, 3*time.Minute, "the backlog is gone", func(ctx context.Context) bool {
		stats, err := q.Stats(ctx)
		return err == nil && stats.Ready+stats.Running+stats.Delayed == 0
	})
	measured(t, "E2", "a backlog drained from a full Redis", time.Since(drain))
	close(drained)
	<-ended
	require.NoError(t, w.Healthy())
	require.Empty(t, e.Log.Of("outage"), "a full Redis is none to a worker")
	require.NoError(t, stop())
	t.Logf("%d enqueues were refused meanwhile", asked.Load())
	require.Greater(t, asked.Load(), int64(10))
	require.Len(t, handled.of, jobs, "what was refused was not enqueued")
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	hundredth := int64(jobs / 100)
	require.Equal(t, pawl.Counters{Enqueued: int64(jobs), Started: int64(jobs) + 2*hundredth, Done: int64(jobs) - hundredth,
		Failed: 2 * hundredth, Retried: hundredth, Snoozed: hundredth, Dead: hundredth}, stats.Total)

	require.NoError(t, e.Redis.ConfigSet(t.Context(), "maxmemory", "0").Err())
	e.put("q", 0, 1)
}

// E2, case 10: with a limit that the backlog has reached, work makes the room that
// the next enqueue needs, and nobody has to do anything.
func TestAProducerGoesOnWhenWorkersHaveMadeRoom(t *testing.T) {
	t.Parallel()
	e := newEnv(t, redistest.Start(t).Client(t), nil)
	q := e.Queue("q")
	used, err := e.Redis.InfoMap(t.Context(), "memory").Result()
	require.NoError(t, err)
	empty, err := strconv.Atoi(used["Memory"]["used_memory"])
	require.NoError(t, err)
	require.NoError(t, e.Redis.ConfigSet(t.Context(), "maxmemory", strconv.Itoa(empty+4<<20)).Err())
	jobs, big := 0, make([]byte, 4096)
	for err == nil {
		if _, err = q.EnqueueRaw(t.Context(), "big", big); err == nil {
			jobs++
		}
	}
	require.ErrorIs(t, err, pawl.ErrFull)
	require.Greater(t, jobs, 500)
	w := e.Worker("q", pawl.WorkerConfig{Concurrency: 20})
	w.HandleRaw("big", func(context.Context, *pawl.RawJob) error { return nil })
	stop := e.Start(w)
	began := time.Now()
	redistest.EventuallyWithin(t, time.Minute, "there is room", func(ctx context.Context) bool {
		_, err = q.EnqueueRaw(ctx, "big", big)
		return !errors.Is(err, pawl.ErrFull)
	})
	require.NoError(t, err)
	measured(t, "case 10", "an enqueue into a Redis that was full", time.Since(began))
	e.Log.Wait(t, "done", jobs+1)
	require.NoError(t, stop())
	require.Empty(t, e.Log.Of("outage"))
}
