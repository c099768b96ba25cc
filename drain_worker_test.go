package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// W7.
func TestDrainLetsHandlersFinishAndLeasesNoMore(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		fill(t, e, 5, "mail")
		w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 2})
		var y tally
		pawl.Handle(w, y.handle(20*time.Second))
		stop := e.Start(w)
		e.Pass(time.Second)
		start := time.Now()
		require.NoError(t, stop())
		require.InDelta(t, 19*time.Second, time.Since(start), float64(100*time.Millisecond))
		require.Len(t, e.Log.Of("done"), 2)
		s, err := e.Queue("mail").Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, s.Ready)
		require.Error(t, w.Healthy(), "it has stopped")
	})
}

// W7.
func TestHandlersThatOutstayTheDrainAreReleasedUnspent(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		job, err := e.Queue("mail").Enqueue(t.Context(), note{1})
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{DrainTimeout: 10 * time.Second})
		pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), pawl.ErrShutdown)
			return errors.New("whatever it says")
		})
		stop := e.Start(w)
		e.Log.Wait(t, "started", 1)
		start := time.Now()
		var drain *pawl.DrainError
		require.ErrorAs(t, stop(), &drain)
		require.Equal(t, []pawl.ID{job.ID}, drain.Released)
		require.Empty(t, drain.Stuck)
		require.InDelta(t, 10*time.Second, time.Since(start), float64(100*time.Millisecond))

		w = e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			require.Equal(t, 1, job.Attempt)
			require.Zero(t, job.Crashes)
			return nil
		})
		e.Run(w, "done", 1)
		s, err := e.Queue("mail").Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, pawl.Counters{Enqueued: 1, Started: 2, Released: 1, Done: 1}, s.Total)
	})
}

func TestAJobThatMayRunAtMostOnceDiesWithItsWorker(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		job, err := e.Queue("mail").Enqueue(t.Context(), note{1}, pawl.MaxAttempts(1), pawl.MaxCrashes(1))
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		stop := e.Start(w)
		e.Log.Wait(t, "started", 1)
		require.NoError(t, stop(), "nothing went back")
		dead, err := e.Queue("mail").Dead().Get(t.Context(), job.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.ReasonExhausted, dead.Reason)
		require.Equal(t, 1, dead.MaxAttempts)
		require.Empty(t, e.Log.Of("released"))
	})
}

// W6.
func TestAHandlerThatIgnoresItsContextIsReportedAndItsLeaseLapses(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		job, err := e.Queue("mail").Enqueue(t.Context(), note{1})
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{DrainTimeout: 10 * time.Second, VisibilityTimeout: 5 * time.Second})
		free := make(chan struct{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { <-free; return nil })
		stop := e.Start(w)
		e.Log.Wait(t, "started", 1)
		start := time.Now()
		var drain *pawl.DrainError
		require.ErrorAs(t, stop(), &drain)
		require.Equal(t, []pawl.ID{job.ID}, drain.Stuck)
		require.Less(t, time.Since(start), 17*time.Second)
		require.Len(t, e.Log.Of("stuck"), 1)

		w = e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			require.Equal(t, 1, job.Crashes)
			return nil
		})
		e.Run(w, "done", 1)
		close(free)
	})
}

// W6.
func TestAStuckHandlerIsReportedOnceAndKeepsItsJob(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		_, err := e.Queue("mail").Enqueue(t.Context(), note{1}, pawl.Timeout(time.Second))
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{StuckAfter: 10 * time.Second})
		free := make(chan struct{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { <-free; return nil })
		stop := e.Start(w)
		start := time.Now()
		ev := e.Log.Wait(t, "stuck", 1)[0]
		require.ErrorIs(t, ev.Err, pawl.ErrTimeout)
		require.InDelta(t, 11*time.Second, time.Since(start), float64(50*time.Millisecond))
		e.Pass(10 * time.Minute)
		require.Len(t, e.Log.Of("stuck"), 1)
		require.Len(t, e.Log.Of("started"), 1, "its lease is renewed while it runs")
		close(free)
		e.Log.Wait(t, "done", 1)
		require.NoError(t, stop())
	})
}

func TestHealthyTellsAnOutageWhileEverySlotIsBusy(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		_, err := e.Queue("mail").Enqueue(t.Context(), note{1})
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 1, VisibilityTimeout: time.Hour})
		var y tally
		pawl.Handle(w, y.handle(2*time.Hour), pawl.Timeout(pawl.NoTimeout))
		require.Error(t, w.Healthy(), "not started")
		stop := e.Start(w)
		e.Log.Wait(t, "started", 1)
		require.NoError(t, w.Healthy())
		e.Mini.SetError("LOADING it is away")
		e.Log.Wait(t, "outage", 1)
		require.ErrorContains(t, w.Healthy(), "LOADING")
		e.Mini.SetError("")
		e.Log.Wait(t, "back", 1)
		require.NoError(t, w.Healthy())
		e.Log.Wait(t, "done", 1)
		require.NoError(t, stop())
		require.Len(t, e.Log.Of("outage"), 1)
	})
}

func TestCancelEndsAJobInAnyState(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		for name, opt := range map[string]pawl.Option{"fresh": pawl.Priority(0), "prioritised": pawl.Priority(4), "delayed": pawl.Delay(time.Hour)} {
			job, err := q.Enqueue(t.Context(), note{1}, opt, pawl.Unique{Key: "k"})
			require.NoError(t, err)
			require.False(t, job.Duplicate, name)
			require.NoError(t, q.Cancel(t.Context(), job.ID), name)
			_, err = q.Get(t.Context(), job.ID)
			require.ErrorIs(t, err, pawl.ErrNotFound, name)
			require.ErrorIs(t, q.Cancel(t.Context(), job.ID), pawl.ErrNotFound, name)
		}
		require.ErrorIs(t, q.Cancel(t.Context(), pawl.ID{}), pawl.ErrNotFound)
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, s.Total.Cancelled)
	})
}

func TestCancelOfARunningJobEndsItsContext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result  error
		counter func(pawl.Counters) int64
	}{
		"an error after it is the end":         {errors.New("interrupted"), func(c pawl.Counters) int64 { return c.Cancelled }},
		"a snooze after it is the end":         {pawl.Snooze(time.Hour), func(c pawl.Counters) int64 { return c.Cancelled }},
		"a handler that finishes all the same": {nil, func(c pawl.Counters) int64 { return c.Done }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				q := e.Queue("mail")
				job, err := q.Enqueue(t.Context(), note{1}, pawl.Unique{Key: "k"})
				require.NoError(t, err)
				w := e.Worker("mail", pawl.WorkerConfig{VisibilityTimeout: 9 * time.Second})
				cause := make(chan error, 1)
				pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
					<-ctx.Done()
					cause <- context.Cause(ctx)
					return c.result
				})
				stop := e.Start(w)
				e.Log.Wait(t, "started", 1)
				start := time.Now()
				require.False(t, get(t, q, job.ID).Cancelling)
				require.NoError(t, q.Cancel(t.Context(), job.ID))
				require.True(t, get(t, q, job.ID).Cancelling)
				require.ErrorIs(t, <-cause, pawl.ErrCancelled)
				require.LessOrEqual(t, time.Since(start), 3*time.Second+10*time.Millisecond)
				require.NoError(t, stop())
				s, err := q.Stats(t.Context())
				require.NoError(t, err)
				require.EqualValues(t, 1, c.counter(s.Total), "%+v", s.Total)
				again, err := q.Enqueue(t.Context(), note{1}, pawl.Unique{Key: "k"})
				require.NoError(t, err)
				require.False(t, again.Duplicate, "the key is free")
			})
		})
	}
}

func TestCancelOfADeadJobIsRefused(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		job, err := q.Enqueue(t.Context(), note{1}, pawl.MaxAttempts(1))
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return errors.New("x") })
		e.Run(w, "dead", 1)
		require.ErrorIs(t, q.Cancel(t.Context(), job.ID), pawl.ErrState)
	})
}
