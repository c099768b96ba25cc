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

// RawJob.ThenOn, and what stands in its way.

func TestAFollowUpInAnotherQueueIsThereOnceHoweverOftenItsJobRuns(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, other := e.Queue("q"), e.Queue("other")
		id := put(t, q, 1)
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			job.ThenOn("other", note{2}, pawl.Header{Key: "a", Value: "b"})
			job.ThenOn("other", note{2})
			job.ThenOn("q", note{3}, pawl.Delay(time.Hour))
			return nil
		})
		e.Run(w, "done", 1)
		s, err := other.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Ready)
		require.EqualValues(t, 2, s.Total.Enqueued)
		s, err = q.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Delayed, "its own queue's name is Then")
		for _, n := range []string{"1", "2"} {
			require.EqualValues(t, 1, e.Redis.Exists(t.Context(), "pawl:{other}:unique:"+pawl.Key("then", id, n)).Val())
		}
	})
}

// single is a job of which there is one at a time, wherever it is enqueued.
type single struct{ N int }

func (single) Kind() string { return "single" }

func (single) JobOptions() []pawl.Option {
	return []pawl.Option{pawl.Unique{Key: "one", OnDuplicate: pawl.RunLatestAfter}, pawl.Priority(3), pawl.Idempotency{Key: "two"}}
}

func TestTheKeyOfAnotherQueueTakesThePlaceOfTheTypesOwn(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		other := e.Queue("other")
		id := put(t, e.Queue("q"), 1)
		_, err := other.Enqueue(t.Context(), single{1})
		require.NoError(t, err)
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			job.ThenOn("other", single{2})
			return nil
		})
		e.Run(w, "done", 1)
		s, err := other.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Ready, "beside the one under the type's key")
		require.EqualValues(t, 1, e.Redis.Exists(t.Context(), "pawl:{other}:unique:"+pawl.Key("then", id, 1)).Val())
		for info, err := range other.List(t.Context(), pawl.StateReady, pawl.Filter{}) {
			require.NoError(t, err)
			require.Equal(t, 3, info.Priority, "the type's other options hold")
			require.Equal(t, "two", info.Idempotency)
		}
	})
}

// docs/follow-ups.md, "One chain at a time".
func TestAKeyIsPassedOnFromStepToStep(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, one := e.Queue("q"), pawl.Unique{Key: "chain"}
		first, second := e.Worker("q", pawl.WorkerConfig{}), e.Worker("q", pawl.WorkerConfig{})
		start := func() pawl.Enqueued {
			got, err := q.Enqueue(t.Context(), note{1}, one, pawl.Then{Args: note{2}, Options: []pawl.Option{one, pawl.Delay(time.Hour)}})
			require.NoError(t, err)
			return got
		}
		require.False(t, start().Duplicate)
		require.True(t, start().Duplicate, "the first step waits")
		pawl.Handle(first, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Run(first, "done", 1)
		step := start()
		require.True(t, step.Duplicate, "the second one waits")
		require.NoError(t, q.RunNow(t.Context(), step.ID))
		pawl.Handle(second, func(context.Context, *pawl.Job[note]) error { return pawl.Permanent(errors.New("no")) })
		e.Run(second, "dead", 1)
		another := start()
		require.False(t, another.Duplicate, "the second one is dead")
		report, err := q.Dead().Redrive(t.Context(), step.ID)
		require.NoError(t, err)
		require.Equal(t, another.ID, report.Refused[0].Holder)
	})
}

func TestAFollowUpThatWasRefusedIsTriedAgain(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, bad, other := e.Queue("q"), e.Client.Queue("bad"), e.Queue("other")
		require.NoError(t, e.Redis.Set(t.Context(), "pawl:{bad}:jobs", "x", 0).Err())
		put(t, q, 1)
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			job.Then(note{4}, pawl.Delay(time.Hour))
			job.ThenOn("other", note{2})
			job.ThenOn("bad", note{3})
			return nil
		}, pawl.Backoff{Base: 100 * time.Millisecond})
		stop := e.Start(w)
		failed := e.Log.Wait(t, "retry", 1)[0]
		require.ErrorContains(t, failed.Err, "ThenOn, 2 of 2: pawl: enqueue bad")
		require.NoError(t, e.Redis.Del(t.Context(), "pawl:{bad}:jobs").Err())
		e.Log.Wait(t, "done", 1)
		require.NoError(t, stop())
		for _, queue := range []*pawl.Queue{bad, other} {
			s, err := queue.Stats(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 1, s.Ready)
			require.EqualValues(t, 1, s.Total.Enqueued)
		}
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Delayed)
	})
}

func TestNothingIsHandedOnByARunThatCannotBeStored(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		put(t, q, 1, retained)
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			job.ThenOn("other", note{2})
			job.SetResult(func() {})
			return nil
		})
		e.Run(w, "dead", 1)
		s, err := e.Queue("other").Stats(t.Context())
		require.NoError(t, err)
		require.Zero(t, s)
	})
}

func TestNothingIsHandedOnByARunThatLostItsLease(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	f.put(t, "q", 1)
	w := f.Worker("q", pawl.WorkerConfig{VisibilityTimeout: 300 * time.Millisecond})
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
		job.Then(note{2})
		job.ThenOn("other", note{3})
		f.Proxy.Blackhole(true)
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), pawl.ErrLeaseLost)
		f.Proxy.Blackhole(false)
		f.Proxy.CutAll()
		return nil
	})
	other, err := pawl.NewWorker(f.past, pawl.WorkerConfig{Queues: pawl.Queues("q"), VisibilityTimeout: time.Second})
	require.NoError(t, err)
	pawl.Handle(other, func(context.Context, *pawl.Job[note]) error { return nil })
	stop := f.Start(w)
	f.Log.Wait(t, "lost", 1)
	_ = stop() // it may have leased the job again, and gives it back
	end := f.Start(other)
	redistest.Eventually(t, "the job is done, by the other", func(context.Context) bool { return f.Total(t, "q").Done == 1 })
	require.NoError(t, end())
	require.EqualValues(t, 1, f.Total(t, "q").Enqueued)
	require.Zero(t, f.Total(t, "other"))
}
