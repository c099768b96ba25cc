package pawl_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

func TestADueTimeInTheFarFutureLeavesWorkersAtRest(t *testing.T) {
	t.Parallel()
	for _, year := range []int{2100, 2300, 2400, 2700, 5000, 9999} {
		bubble(t, func(t *testing.T, e *env) {
			q := e.Queue("mail")
			_, err := q.Enqueue(t.Context(), note{1}, pawl.At(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)))
			require.NoError(t, err)
			w := e.Worker("mail", pawl.WorkerConfig{})
			pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
			counted := &counter{}
			e.Redis.AddHook(counted)
			stop := e.Start(w)
			e.Pass(10 * time.Minute)
			require.Less(t, counted.calls.Load(), int64(300))
			require.NoError(t, stop())
			require.Empty(t, e.Log.Of("started"))
		})
	}
}

// counter counts what a client sends.
type counter struct{ calls atomic.Int64 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { c.calls.Add(1); return next(ctx, cmd) }
}
func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestARetryFuncThatEndsItsGoroutineBuriesTheJobOnly(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		fill(t, e, 3, "mail")
		w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 1})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return errors.New("x") },
			pawl.RetryFunc(func(pawl.Failure) time.Duration { runtime.Goexit(); return 0 }))
		require.ErrorContains(t, e.Run(w, "dead", 3)[0].Err, "Goexit")
	})
}

// quitter is a hook that ends the goroutine that calls it.
type quitter struct{}

func (quitter) Done(context.Context, pawl.Event) { runtime.Goexit() }

func TestAHookThatEndsItsGoroutineDoesNotEndTheWorker(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		e.Client = e.NewClient(pawl.Config{Hooks: []pawl.Hook{quitter{}}})
		w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 1})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		stop := e.Start(w)
		for range 3 {
			fill(t, e, 2, "mail")
			e.Pass(time.Minute)
		}
		s, err := e.Queue("mail").Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 6, s.Total.Done)
		require.NoError(t, w.Healthy())
		require.NoError(t, stop())
	})
}

// stuckQuitter is a hook that ends the goroutine that renews leases.
type stuckQuitter struct{}

func (stuckQuitter) Stuck(context.Context, pawl.Event) { runtime.Goexit() }

func TestAHookThatEndsItsGoroutineDoesNotEndTheRenewals(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		e.Client = e.NewClient(pawl.Config{Hooks: []pawl.Hook{stuckQuitter{}}})
		serve := func() (stop func() error) {
			w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 2, StuckAfter: time.Second})
			pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
				<-time.After(time.Duration(job.Args.N) * time.Minute) // whatever becomes of its context
				return nil
			})
			return e.Start(w)
		}
		put(t, e.Queue("mail"), 5, pawl.Timeout(5*time.Second)) // reported as stuck
		put(t, e.Queue("mail"), 4)
		stop := serve()
		e.Log.Wait(t, "started", 2)
		stopOther := serve() // which would take what is not renewed
		e.Pass(10 * time.Minute)
		require.NoError(t, stop())
		require.NoError(t, stopOther())
		s, err := e.Queue("mail").Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Total.Done)
		require.Zero(t, s.Total.Crashed)
	})
}

func TestFlagsOfGarbageInARunEntryDoNotEndTheProcess(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		fill(t, e, 1, "mail")
		ctx := t.Context()
		id := e.Redis.XRange(ctx, "pawl:{mail}:jobs", "-", "+").Val()[0].ID
		require.NoError(t, e.Redis.ZAdd(ctx, "pawl:{mail}:leases", redis.Z{Score: 1000, Member: id}).Err())
		require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:runs", id, "1-x|0|sxz|").Err())
		require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:meta", "cursor", id).Err())
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Run(w, "done", 1)
	})
}

// silence loses the answer of every lease of one queue, though it ran.
type silence struct {
	queue string
	on    atomic.Bool
}

func (s *silence) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s *silence) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		ours := slices.ContainsFunc(cmd.Args(), func(a any) bool {
			text, ok := a.(string)
			return ok && strings.HasSuffix(text, "{"+s.queue+"}:leases")
		})
		enqueues := slices.ContainsFunc(cmd.Args(), func(a any) bool { _, isRecord := a.([]byte); return isRecord })
		if !s.on.Load() || !ours || enqueues {
			return err
		}
		cmd.SetErr(io.EOF)
		return io.EOF
	}
}

func (s *silence) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestAQueueWithoutAnswersHoldsNoSlotsOfOthers(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		bubble(t, func(t *testing.T, e *env) {
			lost := &silence{queue: "a"}
			lost.on.Store(true)
			e.Redis.AddHook(lost)
			w := e.Worker("", pawl.WorkerConfig{Queues: pawl.Queues("a", "b"), Concurrency: 2, Strict: strict})
			var y tally
			pawl.Handle(w, y.handle(time.Millisecond))
			stop := e.Start(w)
			e.Pass(time.Second)
			fill(t, e, 1, "a")
			fill(t, e, 20, "b")
			start := time.Now()
			e.Log.Wait(t, "done", 20)
			require.Less(t, time.Since(start), 5*time.Second, "strict %v", strict)
			lost.on.Store(false)
			e.Log.Wait(t, "done", 21)
			require.NoError(t, stop())
		})
	}
}

func TestAJobThatMayRunAtMostOnceIsBuriedByAWorkerThatStops(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		job, err := q.Enqueue(t.Context(), note{1}, pawl.MaxAttempts(1), pawl.MaxCrashes(1))
		require.NoError(t, err)
		ctx := t.Context()
		id := e.Redis.XRange(ctx, "pawl:{mail}:jobs", "-", "+").Val()[0].ID
		require.NoError(t, e.Redis.ZAdd(ctx, "pawl:{mail}:leases", redis.Z{Score: 1000, Member: id}).Err())
		require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:runs", id, "1-x|0||").Err())
		require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:meta", "cursor", id).Err())
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return errors.New("must not run") })
		e.Run(w, "dead", 1)
		dead, err := q.Dead().Get(t.Context(), job.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.ReasonCrashed, dead.Reason)
		require.Empty(t, e.Log.Of("started"))
	})
}
