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

// What needs no memory is done in a full Redis, and what finds nothing to do says so.
func TestAFullRedisTellsOperatorsTheTruth(t *testing.T) {
	t.Parallel()
	e := newEnv(t, redistest.Start(t).Client(t), nil)
	ctx, q := t.Context(), e.Queue("mail")
	dead := die(t, e, 1)[0]
	enqueue := func() pawl.ID {
		job, err := q.Enqueue(ctx, note{})
		require.NoError(t, err)
		return job.ID
	}
	gone, waiting := enqueue(), enqueue()
	require.NoError(t, q.Cancel(ctx, gone))
	require.NoError(t, e.Redis.ConfigSet(ctx, "maxmemory", "1").Err())

	nobody, dlq := e.Queue("nobody"), q.Dead()
	_, redriven := dlq.Redrive(ctx, gone)
	_, unmoved := dlq.Redrive(ctx, waiting)
	_, nowhere := nobody.Dead().Delete(ctx, gone)
	_, purged := nobody.Purge(ctx, pawl.StateReady, pawl.Filter{})
	for name, err := range map[string]error{
		"cancel": q.Cancel(ctx, gone), "reschedule": q.Reschedule(ctx, gone, time.Now().Add(time.Hour)),
		"run now": q.RunNow(ctx, gone), "redrive": redriven, "redrive of one that waits": unmoved,
		"redrive with": dlq.RedriveWith(ctx, gone, note{}), "delete": nowhere, "purge": purged,
		"pause": nobody.Pause(ctx, time.Hour), "resume": nobody.Resume(ctx), "destroy": nobody.Destroy(ctx),
	} {
		require.ErrorIs(t, err, pawl.ErrNotFound, name)
	}
	for _, id := range []pawl.ID{gone, waiting} {
		n, err := dlq.Delete(ctx, id)
		require.NoError(t, err)
		require.Zero(t, n)
	}
	require.ErrorIs(t, q.Cancel(ctx, dead), pawl.ErrState)
	require.ErrorIs(t, q.RunNow(ctx, dead), pawl.ErrState)
	require.NoError(t, q.RunNow(ctx, waiting), "it is ready already")

	_, moved := dlq.Redrive(ctx, dead)
	for name, err := range map[string]error{"redrive": moved, "redrive with": dlq.RedriveWith(ctx, dead, note{}),
		"reschedule": q.Reschedule(ctx, waiting, time.Now().Add(time.Hour))} {
		require.ErrorIs(t, err, pawl.ErrFull, "%s needs memory", name)
	}
	n, err := dlq.Delete(ctx, gone, dead)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, q.Pause(ctx, time.Hour))
	require.NoError(t, q.Cancel(ctx, waiting))
	require.NoError(t, q.Destroy(ctx))
}
