package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
	"github.com/pawlq/pawl/internal/testhook"
)

func get(t *testing.T, q *pawl.Queue, id pawl.ID) pawl.JobInfo {
	t.Helper()
	info, err := q.Get(t.Context(), id)
	require.NoError(t, err)
	return info
}

func TestRescheduleMovesAJobThatWaits(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		for name, opts := range map[string][]pawl.Option{
			"fresh": nil, "delayed": {pawl.Delay(time.Hour)}, "prio": {pawl.Priority(7)}, "due": {pawl.Delay(time.Millisecond)},
			"delayed-prio": {pawl.Delay(time.Hour), pawl.Priority(2)},
			"unique":       {pawl.Unique{Key: pawl.Key("u"), Until: pawl.UntilStarted}, pawl.Header{Key: "a", Value: "b"}, pawl.MaxAttempts(2)},
		} {
			q := e.Queue(name)
			id := put(t, q, 1, opts...)
			<-time.After(5 * time.Millisecond)
			before := get(t, q, id)

			at := time.Now().Add(2 * time.Hour).Truncate(time.Second)
			require.NoError(t, q.Reschedule(ctx, id, at))
			after := get(t, q, id)
			require.Equal(t, pawl.StateDelayed, after.State, name)
			require.True(t, at.Equal(after.DueAt), "%s: %v", name, after.DueAt)
			require.Equal(t, before.Priority, after.Priority)
			require.Equal(t, before.Attempt, after.Attempt)
			require.Equal(t, before.MaxAttempts, after.MaxAttempts)
			require.Equal(t, before.Unique, after.Unique)
			require.Equal(t, before.Headers, after.Headers)
			require.Equal(t, before.Payload, after.Payload)
			require.Zero(t, after.Crashes)
			if before.Unique != "" {
				again, err := q.Enqueue(ctx, note{2}, opts...)
				require.NoError(t, err)
				require.True(t, again.Duplicate, "its key is held: it has not started")
			}

			require.NoError(t, q.Reschedule(ctx, id, time.Now().Add(-time.Hour)), "what is past is now")
			require.Equal(t, pawl.StateReady, get(t, q, id).State)
			require.WithinDuration(t, time.Now(), get(t, q, id).DueAt, time.Minute)
			require.NoError(t, q.Reschedule(ctx, id, at))
			require.NoError(t, q.RunNow(ctx, id))
			require.NoError(t, q.RunNow(ctx, id), "it is ready: nothing to do")
			require.Equal(t, pawl.StateReady, get(t, q, id).State)

			w := e.Worker(name, pawl.WorkerConfig{})
			pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
				if job.Attempt != 1 {
					return errors.New("another job")
				}
				return nil
			})
			n := len(e.Log.Of("done"))
			e.Run(w, "done", n+1)
		}
	})
}

func TestRescheduleRefuses(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ctx, q := t.Context(), e.Queue("q")
		hour := time.Now().Add(time.Hour)
		id := put(t, q, 1, pawl.Delay(time.Hour))
		for _, at := range []time.Time{{}, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(1<<60, 0)} {
			require.ErrorIs(t, q.Reschedule(ctx, id, at), pawl.ErrInvalid, "%v", at)
		}
		refuses := func(id pawl.ID, want error) {
			t.Helper()
			require.ErrorIs(t, q.Reschedule(ctx, id, hour), want)
			require.ErrorIs(t, q.RunNow(ctx, id), want)
		}
		refuses(pawl.ID{}, pawl.ErrNotFound)
		refuses(pawl.ID{1, 2, 3}, pawl.ErrNotFound)
		require.NoError(t, q.Cancel(ctx, id))
		refuses(id, pawl.ErrNotFound)

		id = put(t, q, 2)
		w := e.Worker("q", pawl.WorkerConfig{Concurrency: 1, DrainTimeout: time.Millisecond})
		stopped, end := make(chan struct{}), make(chan struct{})
		pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
			<-end
			<-ctx.Done()
			return ctx.Err()
		})
		stop := e.Start(w)
		e.Log.Wait(t, "started", 1)
		refuses(id, pawl.ErrState)
		require.NoError(t, q.Cancel(ctx, id))
		go func() { defer close(stopped); _ = stop() }()
		close(end)
		<-stopped
		if get := func() error { _, err := q.Get(ctx, id); return err }; get() == nil {
			refuses(id, pawl.ErrState) // given back, and ends with its next lease
		}

		dead := put(t, q, 3)
		w = e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return pawl.Permanent(errors.New("no")) })
		e.Run(w, "dead", 1)
		refuses(dead, pawl.ErrState)
	})
}

// A time that is earlier than before wakes a worker that is idle.
func TestAnEarlierTimeIsHeard(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		w := e.Worker("q", pawl.WorkerConfig{})
		ran := make(chan time.Time, 10)
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { ran <- time.Now(); return nil })
		e.Start(w)
		for _, in := range []time.Duration{0, 30 * time.Millisecond, 3 * time.Second, 9 * time.Second, 25 * time.Second, 5 * time.Minute} {
			id := put(t, q, 1, pawl.Delay(time.Hour))
			e.Pass(97 * time.Second) // idle, in a long blocking read
			at := time.Now().Add(in)
			if in == 0 {
				require.NoError(t, q.RunNow(t.Context(), id))
			} else {
				require.NoError(t, q.Reschedule(t.Context(), id, at))
			}
			require.Equal(t, at.UnixMilli(), (<-ran).UnixMilli(), "%v", in)
		}
		id := put(t, q, 1, pawl.Delay(time.Minute))
		e.Pass(time.Second)
		require.NoError(t, q.Reschedule(t.Context(), id, time.Now().Add(time.Hour)))
		later := time.Now().Add(time.Hour)
		require.Equal(t, later.UnixMilli(), (<-ran).UnixMilli(), "not before")
	})
}

// The late holder of a lease that ran out hears that it lost, and one crash is
// counted; after MaxCrashes of them the job is buried.
func TestRescheduleOfALapsedJobCountsACrash(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		id := put(t, q, 1, pawl.MaxCrashes(2), pawl.Priority(4))
		for crashes := range 2 {
			w := e.Worker("q", pawl.WorkerConfig{VisibilityTimeout: 5 * time.Second})
			pawl.Handle(w, untilCancelled)
			e.Start(w)
			e.Log.Wait(t, "started", crashes+1)
			require.Equal(t, crashes, get(t, q, id).Crashes)
			testhook.Abandon(w)
			e.Pass(10 * time.Second)
			require.Equal(t, pawl.StateReady, get(t, q, id).State)
			require.NoError(t, q.Reschedule(t.Context(), id, time.Now().Add(time.Minute)))
			info := get(t, q, id)
			require.Equal(t, pawl.StateDelayed, info.State)
			require.Equal(t, crashes+1, info.Crashes)
			require.Equal(t, 4, info.Priority)
			require.Zero(t, info.Attempt)
		}
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, untilCancelled)
		e.Run(w, "dead", 1)
		require.Len(t, e.Log.Of("started"), 2, "unrun")
	})
}

func TestTheHolderOfARescheduledJobHasLostItsLease(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	q := f.Queue("q")
	id := put(t, q, 1)
	w := f.Worker("q", pawl.WorkerConfig{VisibilityTimeout: 300 * time.Millisecond})
	goOn := make(chan struct{})
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { <-goOn; return nil })
	f.Start(w)
	f.Log.Wait(t, "started", 1)
	f.Proxy.Blackhole(true)
	operator := f.past.Queue("q")
	require.Eventually(t, func() bool {
		info, err := operator.Get(t.Context(), id)
		return err == nil && info.State == pawl.StateReady
	}, 20*time.Second, 10*time.Millisecond)
	require.NoError(t, operator.Reschedule(t.Context(), id, time.Now().Add(time.Hour)))
	f.Proxy.Blackhole(false)
	f.Proxy.CutAll()
	close(goOn)
	f.Log.Wait(t, "lost", 1)
	info, err := operator.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, pawl.StateDelayed, info.State)
	require.Equal(t, 1, info.Crashes)
	require.Empty(t, f.Log.Of("done"))
}

func TestAFullRedisRefusesToReschedule(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		ctx, q := t.Context(), e.Queue("q")
		id, delayed := put(t, q, 1), put(t, q, 2, pawl.Delay(time.Hour))
		before := redistest.Dump(ctx, e.Redis, "pawl:{q}:")
		require.NoError(t, e.Redis.ConfigSet(ctx, "maxmemory", "1").Err())
		require.ErrorIs(t, q.Reschedule(ctx, id, time.Now().Add(time.Hour)), pawl.ErrFull)
		require.ErrorIs(t, q.RunNow(ctx, delayed), pawl.ErrFull)
		require.Equal(t, before, redistest.Dump(ctx, e.Redis, "pawl:{q}:"))
		require.NoError(t, q.Pause(ctx, time.Hour), "an operator is heard")
		s, err := q.Stats(ctx)
		require.NoError(t, err)
		require.True(t, s.Paused)
		require.NoError(t, q.Resume(ctx))
		n, err := q.Purge(ctx, pawl.StateDelayed, pawl.Filter{})
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		require.NoError(t, q.Destroy(ctx))
	})
}

// A worker that died is named for a minute, although its job is leased longer.
func TestGetNamesTheWorkerWhileItIsHeardOf(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		id := put(t, q, 1)
		require.Zero(t, get(t, q, id).StartedAt)
		w := e.Worker("q", pawl.WorkerConfig{Name: "blue", VisibilityTimeout: time.Hour})
		pawl.Handle(w, untilCancelled)
		e.Start(w)
		began := time.Now()
		e.Log.Wait(t, "started", 1)
		e.Pass(25 * time.Second)
		info := get(t, q, id)
		require.Equal(t, "blue", info.Worker)
		require.WithinDuration(t, began, info.StartedAt, time.Second)
		require.WithinDuration(t, began.Add(time.Hour), info.LeaseUntil, time.Second)
		testhook.Abandon(w)
		e.Pass(30 * time.Second)
		require.Equal(t, "blue", get(t, q, id).Worker)
		e.Pass(35 * time.Second)
		info = get(t, q, id)
		require.Equal(t, pawl.StateRunning, info.State, "its lease has not run out")
		require.Empty(t, info.Worker)
		require.Empty(t, listed(t, q.List(t.Context(), pawl.StateRunning, pawl.Filter{}))[0].Worker)
		workers, err := e.Client.Workers(t.Context())
		require.NoError(t, err)
		require.Empty(t, workers)
	})
}
