package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// theLeased is the id of the one job that is leased, and its run entry.
func theLeased(t *testing.T, e *env) (id, entry string) {
	t.Helper()
	for id, entry = range e.Redis.HGetAll(t.Context(), "pawl:{mail}:runs").Val() {
	}
	require.NotEmpty(t, id)
	return id, entry
}

// W2. Another holds the lease: the call says so, changes nothing, and the handler's
// context ends.
func TestProgressIsFenced(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		var sent tellers
		_, free := held(t, e, pawl.WorkerConfig{VisibilityTimeout: time.Hour}, func(run context.Context, job *pawl.Job[note]) {
			id, entry := theLeased(t, e)
			_, rest, _ := strings.Cut(entry, "|")
			require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:runs", id, "9999999999999999-another|"+rest).Err())
			before := layout(t, e, "mail")
			require.ErrorIs(t, job.Progress(run, 50, "half"), pawl.ErrLeaseLost)
			require.Equal(t, before, layout(t, e, "mail"))
			require.ErrorIs(t, context.Cause(run), pawl.ErrLeaseLost)
			e.App.AddHook(&sent)
			require.ErrorIs(t, job.Progress(context.Background(), 60, "more"), pawl.ErrLeaseLost)
			require.Zero(t, sent.calls.Load(), "it is known now")
			require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:runs", id, entry).Err()) // for Check
		})
		e.Log.Wait(t, "lost", 1)
		free(nil)
	})
}

// What was not sent yet is not sent once the handler has returned: no timer and no
// goroutine is left, and another run of the job is not told the old value.
func TestNothingIsToldOfARunThatIsOver(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		var kept *pawl.Job[note]
		id, free := held(t, e, pawl.WorkerConfig{}, func(ctx context.Context, job *pawl.Job[note]) {
			require.NoError(t, job.Progress(ctx, 10, "first"))
			require.NoError(t, job.Progress(ctx, 20, "second"))
			kept = job
		})
		var sent tellers
		e.Redis.AddHook(&sent)
		free(pawl.Snooze(time.Hour))
		e.Log.Wait(t, "snoozed", 1)
		e.Pass(time.Minute)
		require.ErrorIs(t, kept.Progress(t.Context(), 30, "third"), pawl.ErrState)
		require.Zero(t, sent.calls.Load())
		info, err := e.Queue("mail").Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, []any{pawl.StateDelayed, 0.0, ""}, []any{info.State, info.Percent, info.Note})
	})
}

// A holder hears of a cancel with its progress, if that comes before its renewal.
func TestProgressBringsACancel(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		_, free := held(t, e, pawl.WorkerConfig{VisibilityTimeout: time.Hour}, func(run context.Context, job *pawl.Job[note]) {
			require.NoError(t, e.Queue("mail").Cancel(t.Context(), job.ID))
			require.NoError(t, job.Progress(context.Background(), 50, "half"))
			<-run.Done()
			require.ErrorIs(t, context.Cause(run), pawl.ErrCancelled)
		})
		free(errors.New("heeded"))
		redistest.Eventually(t, "it is cancelled", func(context.Context) bool {
			s, err := e.Queue("mail").Stats(t.Context())
			return err == nil && s.Total.Cancelled == 1
		})
	})
}

// Many goroutines of one handler tell at once.
func TestProgressMayBeToldByManyAtOnce(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		_, free := held(t, e, pawl.WorkerConfig{}, func(ctx context.Context, job *pawl.Job[note]) {
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					for j := range 500 {
						if err := job.Progress(ctx, float64(i), fmt.Sprint(j)); err != nil {
							panic(err)
						}
					}
				})
			}
			all.Wait()
		})
		free(nil)
		e.Log.Wait(t, "done", 1)
	})
}

// A context that ends does not wait for Redis, and the value goes out all the same.
func TestProgressWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		id, free := held(t, e, pawl.WorkerConfig{}, func(_ context.Context, job *pawl.Job[note]) {
			over, cancel := context.WithCancel(context.Background())
			cancel()
			if err := job.Progress(over, 50, "half"); err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
		})
		e.Pass(time.Millisecond)
		info, err := e.Queue("mail").Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, "half", info.Note)
		free(nil)
		e.Log.Wait(t, "done", 1)
	})
}

// unanswered lets calls that carry progress run, and loses their answers.
type unanswered struct{ on atomic.Bool }

func (u *unanswered) DialHook(next redis.DialHook) redis.DialHook { return next }
func (u *unanswered) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if args := cmd.Args(); err == nil && u.on.Load() && strings.HasPrefix(fmt.Sprint(args[len(args)-1]), " ") {
			err = io.EOF
			cmd.SetErr(err)
		}
		return err
	}
}
func (u *unanswered) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// N3. A value was stored and its answer lost. The value before it, told again, is no
// longer what Redis has.
func TestAValueAsBeforeIsSentAfterOneWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		var lost unanswered
		e.App.AddHook(&lost)
		id, free := held(t, e, pawl.WorkerConfig{}, func(ctx context.Context, job *pawl.Job[note]) {
			require.NoError(t, job.Progress(ctx, 10, "read"))
			<-time.After(2 * time.Second)
			lost.on.Store(true)
			require.NoError(t, job.Progress(ctx, 20, "write"))
			require.NoError(t, job.Progress(ctx, 10, "read"))
			lost.on.Store(false)
		})
		e.Pass(3 * time.Second)
		info := get(t, e.Queue("mail"), id)
		require.Equal(t, "10 read", fmt.Sprint(info.Percent, " ", info.Note))
		free(nil)
		e.Log.Wait(t, "done", 1)
	})
}

// A handler that heeds its progress alone, and outlives its worker, is told that it has
// lost the job: whether a value of it is on its way then, waits for its second, or is yet
// to come, and also if Redis does not answer.
func TestProgressIsLostOnceTheWorkerHasEnded(t *testing.T) {
	t.Parallel()
	for _, gap := range []time.Duration{10 * time.Millisecond, 400 * time.Millisecond, 1500 * time.Millisecond} {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprint(gap, away), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, e *env) {
					const jobs = 3
					for n := range jobs {
						put(t, e.Queue("mail"), n)
					}
					w := e.Worker("mail", pawl.WorkerConfig{Concurrency: jobs, DrainTimeout: time.Second, VisibilityTimeout: 5 * time.Second})
					told := make(chan error, jobs)
					pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
						var err error
						for n := 0; err == nil && n < 10_000; n++ {
							err = job.Progress(context.Background(), float64(n%100), fmt.Sprint(n))
							<-time.After(gap)
						}
						told <- err
						return err
					})
					stop := e.Start(w)
					e.Pass(3 * time.Second)
					if away {
						e.Mini.SetError("LOADING Redis is loading the dataset in memory")
					}
					require.Error(t, stop())
					for range jobs {
						require.ErrorIs(t, <-told, pawl.ErrLeaseLost)
					}
					e.Mini.SetError("")
				})
			})
		}
	}
}
