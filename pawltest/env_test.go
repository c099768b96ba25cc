package pawltest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

func TestParallelTestsDoNotMeet(t *testing.T) {
	t.Parallel()
	for i := range 20 {
		t.Run(fmt.Sprint("environment ", i), func(t *testing.T) {
			t.Parallel()
			pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
				start := time.Now()
				enqueue(t, env, "emails", welcome{i}, pawl.Delay(time.Duration(i)*time.Hour))
				jobs := pawltest.Jobs[welcome](env, "emails")
				require.Len(t, jobs, 1)
				require.Equal(t, i, jobs[0].Args.UserID)
				require.Len(t, env.Drain(worker(t, env, pawl.WorkerConfig{}, done)).Runs, 1)
				require.WithinDuration(t, start.Add(time.Duration(i)*time.Hour), time.Now(), time.Second)
			})
		})
	}
}

func TestAdvanceMovesTheServersClockToo(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		require.NoError(t, env.Redis.Set(t.Context(), "mine", "1", time.Hour).Err())
		before := env.Redis.Time(t.Context()).Val()
		env.Advance(time.Hour + time.Second)
		require.Equal(t, time.Hour+time.Second, env.Redis.Time(t.Context()).Val().Sub(before))
		require.Zero(t, env.Redis.Exists(t.Context(), "mine").Val())
	})
}

// What a test has read, a handler may write after Advance or a drain, without a lock.
// The race detector tells.
func TestATestAndItsHandlersNeedNoLock(t *testing.T) {
	t.Parallel()
	for range 10 {
		pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
			ran := 0
			w := worker(t, env, pawl.WorkerConfig{}, func(context.Context, *pawl.Job[welcome]) error {
				ran++
				return nil
			})
			for i := range 10 {
				enqueue(t, env, "emails", welcome{i}, pawl.Delay(time.Duration(i)*time.Minute+30*time.Second))
			}
			env.Start(w)
			for i := range 10 {
				require.Equal(t, i, ran)
				env.Advance(time.Minute)
				if i%3 == 0 {
					env.DrainReady(w)
				}
			}
			require.Equal(t, 10, ran)
		})
	}
}

// slowOnce is a hook that lets the next call wait.
type slowOnce struct{ wait atomic.Int64 }

func (s *slowOnce) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *slowOnce) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		<-time.After(time.Duration(s.wait.Swap(0)))
		return next(ctx, cmd)
	}
}

func (s *slowOnce) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestATestMayEndBeforeTheCallsItGaveUp(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		q := env.Client.Queue("emails")
		enqueue(t, env, "emails", welcome{1})
		var slow slowOnce
		env.Redis.AddHook(&slow)
		slow.wait.Store(int64(5 * time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := q.Stats(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestAStartedWorkerRunsUntilTheTestEnds(t *testing.T) {
	t.Parallel()
	ran := 0
	text := failing(t, func(t testing.TB, env *pawltest.Env) {
		w := worker(t, env, pawl.WorkerConfig{}, func(ctx context.Context, _ *pawl.Job[welcome]) error {
			ran++
			<-ctx.Done() // the end of the test interrupts it
			return context.Cause(ctx)
		})
		env.Start(w)
		enqueue(t, env, "emails", welcome{1})
		env.Advance(time.Second)
		require.Error(t, w.Run(context.Background()), "it runs already")
		require.NoError(t, w.Healthy())
	})
	require.Empty(t, text)
	require.Equal(t, 1, ran)
}

func TestAHandlerThatDoesNotReturnFailsTheTest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		text := failures(t, func(t testing.TB) {
			env := pawltest.New(t, pawl.Config{})
			env.Start(worker(t, env, pawl.WorkerConfig{}, func(context.Context, *pawl.Job[welcome]) error {
				<-free
				return nil
			}))
			enqueue(t, env, "emails", welcome{1})
			env.Advance(time.Second)
		})
		require.Contains(t, text, "Start: the worker's Run: pawl: drain: released 0, stuck 1")
		close(free)
	})
}

func TestTheQueuesAreCheckedAtTheEnd(t *testing.T) {
	t.Parallel()
	text := failing(t, func(t testing.TB, env *pawltest.Env) {
		enqueue(t, env, "emails", welcome{1}, pawl.Delay(time.Hour))
		enqueue(t, env, "a.b_c-d:e", welcome{2}, pawl.Delay(time.Hour))
		enqueue(t, env, "fine", welcome{3})
		for _, name := range []string{"emails", "a.b_c-d:e"} {
			require.NoError(t, env.Redis.Del(context.Background(), "pawl:{"+name+"}:held").Err())
		}
	})
	require.Contains(t, text, `pawltest: queue "emails" is inconsistent: `)
	require.Contains(t, text, `pawltest: queue "a.b_c-d:e" is inconsistent: `)
	require.NotContains(t, text, `"fine"`)
}

func TestTheConfigIsTheClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		hooks := []pawl.Hook{enqueuedHook(func(e pawl.EnqueuedEvent) { _, _ = log.WriteString("hook: " + e.Kind + "\n") })}
		env := pawltest.New(t, pawl.Config{Namespace: "mine", Codec: upper{}, Hooks: hooks,
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Inject: func(_ context.Context, h pawl.Headers) { h["tenant"] = "acme" }})
		enqueue(t, env, "emails", welcome{1})
		pawltest.RequireEnqueued(env, "emails", welcome{1}, pawl.Header{Key: "tenant", Value: "acme"})
		require.Equal(t, "USER 1", string(pawltest.Jobs[welcome](env, "emails")[0].Payload))
		require.NotZero(t, env.Redis.Exists(t.Context(), "mine:{emails}:meta").Val())
		w := worker(t, env, pawl.WorkerConfig{MaxAttempts: 1}, func(context.Context, *pawl.Job[welcome]) error {
			return errors.New("no")
		})
		env.Advance(time.Minute)
		require.Len(t, env.Drain(w).Dead, 1)
		require.Contains(t, log.String(), "hook: welcome\n")
		require.Contains(t, log.String(), "job is dead")
		require.Len(t, hooks, 1)
		pawltest.RequireDead(env, "emails", welcome{1})
	})
}

func TestNewHasTheRealClock(t *testing.T) {
	t.Parallel()
	env := pawltest.New(t, pawl.Config{})
	w := worker(t, env, pawl.WorkerConfig{Concurrency: 3}, func(ctx context.Context, job *pawl.Job[welcome]) error {
		if job.Attempt == 1 {
			return pawl.RetryAfter(20*time.Millisecond, errors.New("not yet"))
		}
		return nil
	})
	for i := range 10 {
		enqueue(t, env, "emails", welcome{i})
	}
	first := len(env.DrainReady(w).Runs)
	require.GreaterOrEqual(t, first, 10, "more on a slow machine")
	require.Len(t, env.Drain(w).Runs, 20-first)
	env.Start(w)
	for i := range 10 {
		enqueue(t, env, "emails", welcome{i})
	}
	require.Len(t, env.Drain(w).Runs, 20)
}

func TestADrainThatWouldOutlastTheTestFails(t *testing.T) {
	t.Parallel()
	if _, ok := t.Deadline(); !ok {
		t.Skip("run without -timeout")
	}
	text := failures(t, func(fake testing.TB) {
		env := pawltest.New(deadliner{fake, t}, pawl.Config{})
		enqueue(fake, env, "emails", welcome{1}, pawl.Delay(1000*time.Hour))
		env.Drain(worker(fake, env, pawl.WorkerConfig{}, done))
	})
	require.Contains(t, text, "Drain: the next job is due in 1000h0m0s, after the test has to end; in pawltest.Run it would be due at once")
}

// deadliner is a fake test with the deadline of the real one.
type deadliner struct {
	testing.TB
	real *testing.T
}

func (d deadliner) Deadline() (time.Time, bool) { return d.real.Deadline() }

type enqueuedHook func(pawl.EnqueuedEvent)

func (h enqueuedHook) Enqueued(_ context.Context, e pawl.EnqueuedEvent) { h(e) }

// upper is a codec of welcome alone.
type upper struct{}

func (upper) Encode(_ string, v any) ([]byte, error) {
	return fmt.Appendf(nil, "USER %d", v.(welcome).UserID), nil
}

func (upper) Decode(_ string, data []byte, v any) error {
	_, err := fmt.Sscanf(string(data), "USER %d", &v.(*welcome).UserID)
	return err
}

// What a worker says of all its queues goes out in one piece.
func TestAWorkerOfManyQueuesIsSeenInEach(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		const queues = 60
		var names []string
		for i := range queues {
			names = append(names, fmt.Sprint("queue-", i))
		}
		w, err := pawl.NewWorker(env.Client, pawl.WorkerConfig{Queues: pawl.Queues(names...)})
		require.NoError(t, err)
		pawl.Handle(w, func(context.Context, *pawl.Job[Welcome]) error { return nil })
		env.Start(w)
		env.Advance(time.Second)
		seen, err := env.Client.Workers(t.Context())
		require.NoError(t, err)
		require.Len(t, seen, 1)
		require.Len(t, seen[0].Queues, queues)
	})
}
