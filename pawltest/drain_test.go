package pawltest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

func TestADrainRunsRetriesDelaysAndFollowUps(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		start := time.Now()
		failed := errors.New("mail server is down")
		w := worker(t, env, pawl.WorkerConfig{Concurrency: 1, Backoff: pawl.Backoff{Jitter: pawl.JitterNone}},
			func(ctx context.Context, job *pawl.Job[welcome]) error {
				switch {
				case job.Args.UserID == 1 && job.Attempt < 3:
					return failed
				case job.Args.UserID == 2:
					_, err := job.Client().Queue("emails").Enqueue(ctx, welcome{3}, pawl.Delay(24*time.Hour))
					return err
				case job.Args.UserID == 4:
					return pawl.Permanent(errors.New("no such address"))
				case job.Args.UserID == 5:
					return pawl.Discard(failed)
				}
				return nil
			})
		ids := map[pawl.ID]int{}
		for i := range 5 {
			ids[enqueue(t, env, "emails", welcome{i + 1})] = i + 1
		}
		report := env.Drain(w)

		type run struct {
			user, attempt int
			err           string
		}
		var got []run
		for _, e := range report.Runs {
			r := run{user: ids[e.Job.ID], attempt: e.Job.Attempt}
			if e.Err != nil {
				r.err = e.Err.Error()
			}
			got = append(got, r)
		}
		require.Equal(t, []run{{1, 1, failed.Error()}, {2, 1, ""}, {3, 1, ""}, {4, 1, "no such address"}, {5, 1, failed.Error()},
			{1, 2, failed.Error()}, {1, 3, ""}, {0, 1, ""}}, got)
		require.Len(t, report.Dead, 1)
		require.Equal(t, pawl.ReasonPermanent, report.Dead[0].Reason)
		require.Equal(t, 4, ids[report.Dead[0].ID])
		require.WithinDuration(t, start.Add(24*time.Hour), time.Now(), time.Second)
		require.Zero(t, env.Drain(w), "there is nothing left")
	})
}

func TestHoursOfBackoffPassAtOnce(t *testing.T) {
	t.Parallel()
	start := time.Now()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		begin := time.Now()
		w := worker(t, env, pawl.WorkerConfig{MaxAttempts: 30}, func(context.Context, *pawl.Job[welcome]) error {
			return errors.New("no")
		})
		enqueue(t, env, "emails", welcome{1}, pawl.Delay(300*24*time.Hour))
		report := env.Drain(w)
		require.Len(t, report.Runs, 30)
		require.Equal(t, pawl.ReasonExhausted, report.Dead[0].Reason)
		require.Greater(t, time.Since(begin), 300*24*time.Hour)
	})
	require.Less(t, time.Since(start), 20*time.Second, "of real time; some 50 ms are usual")
}

func TestADrainOfNothingIsAnEmptyReport(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		start := time.Now()
		w := worker(t, env, pawl.WorkerConfig{Queues: pawl.Queues("emails", "texts")}, done)
		require.Zero(t, env.Drain(w))
		require.Zero(t, env.DrainReady(w))
		require.Equal(t, start, time.Now(), "no time passes")
	})
}

func TestNothingRunsBetweenTwoDrains(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		w := worker(t, env, pawl.WorkerConfig{}, done)
		for i := range 5 {
			enqueue(t, env, "emails", welcome{i})
			env.Advance(time.Hour)
			pawltest.RequireEnqueued(env, "emails", welcome{i})
			require.Len(t, env.Drain(w).Runs, 1, "each drain reports its own runs")
		}
		env.Start(w)
		enqueue(t, env, "emails", welcome{9})
		env.Advance(time.Second)
		pawltest.RequireNone[welcome](env, "emails")
		require.Len(t, env.Drain(w).Runs, 1, "and a drain of a started worker all since its start")
		enqueue(t, env, "emails", welcome{10}, pawl.Delay(time.Hour))
		require.Empty(t, env.DrainReady(w).Runs)
		require.Len(t, env.Drain(w).Runs, 1)
	})
}

func TestDrainReadyLeavesTheClockAlone(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		start := time.Now()
		w := worker(t, env, pawl.WorkerConfig{}, func(ctx context.Context, job *pawl.Job[welcome]) error {
			if job.Args.UserID == 1 {
				_, err := job.Client().Queue("emails").Enqueue(ctx, welcome{2})
				return err
			}
			return errors.New("comes again")
		})
		enqueue(t, env, "emails", welcome{1})
		enqueue(t, env, "emails", welcome{3}, pawl.Delay(time.Second))
		require.Len(t, env.DrainReady(w).Runs, 2, "the job and the follow-up, not its retry")
		require.Equal(t, start, time.Now())
		require.Len(t, pawltest.Jobs[welcome](env, "emails"), 2)

		env.Advance(time.Second)
		require.Len(t, env.DrainReady(w).Runs, 1)
		require.Equal(t, start.Add(time.Second), time.Now())
	})
}

func TestADrainWaitsForAHandlerThatTakesTime(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		start := time.Now()
		w := worker(t, env, pawl.WorkerConfig{}, func(ctx context.Context, _ *pawl.Job[welcome]) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(10 * time.Minute):
				return nil
			}
		})
		enqueue(t, env, "emails", welcome{1})
		report := env.DrainReady(w)
		require.Len(t, report.Runs, 1)
		require.NoError(t, report.Runs[0].Err)
		require.Equal(t, 10*time.Minute, report.Runs[0].Took)
		require.Equal(t, 10*time.Minute, time.Since(start))
	})
}

func TestADrainReportsPanicsTimeoutsAndCancelledJobs(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		w := worker(t, env, pawl.WorkerConfig{MaxAttempts: 1, Timeout: time.Minute, Concurrency: 1},
			func(ctx context.Context, job *pawl.Job[welcome]) error {
				switch job.Args.UserID {
				case 1:
					panic("out of paper")
				case 2:
					<-ctx.Done()
				case 3:
					if err := job.Client().Queue(job.Queue).Cancel(ctx, job.ID); err != nil {
						return err
					}
					<-ctx.Done()
				}
				return context.Cause(ctx)
			})
		for i := range 3 {
			enqueue(t, env, "emails", welcome{i + 1})
		}
		report := env.Drain(w)
		require.Len(t, report.Runs, 3)
		require.ErrorContains(t, report.Runs[0].Err, "panic: out of paper")
		require.ErrorIs(t, report.Runs[1].Err, pawl.ErrTimeout)
		require.ErrorIs(t, report.Runs[2].Err, pawl.ErrCancelled)
		require.Len(t, report.Dead, 2)
		require.Contains(t, report.Dead[0].Stack, "drain_test.go")
	})
}

func TestJobsThatDieUnrunAreInTheReport(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		w := worker(t, env, pawl.WorkerConfig{}, done)
		enqueue(t, env, "emails", other{})
		enqueue(t, env, "emails", welcome{1}, pawl.ExpireIn(time.Minute))
		env.Advance(2 * time.Minute)
		report := env.Drain(w)
		require.Empty(t, report.Runs)
		require.Len(t, report.Dead, 2)
		require.Equal(t, pawl.ReasonExpired, report.Dead[0].Reason)
		require.Equal(t, pawl.ReasonUnhandled, report.Dead[1].Reason)
	})
}

func TestADrainServesAllQueuesOfTheWorkerAndNoOther(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		w := worker(t, env, pawl.WorkerConfig{Queues: pawl.Queues("emails", "texts")}, done)
		another := worker(t, env, pawl.WorkerConfig{Queues: pawl.Queues("letters")}, done)
		env.Start(another)
		for _, name := range []string{"emails", "texts", "letters", "nobody"} {
			enqueue(t, env, name, welcome{1}, pawl.Delay(time.Minute))
		}
		require.Len(t, env.Drain(w).Runs, 2)
		pawltest.RequireEnqueued(env, "nobody", welcome{1})
		env.Advance(time.Second)
		require.Len(t, env.Drain(another).Runs, 1)
	})
}

func TestADrainSeesWhatComesWhileItWaits(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		start := time.Now()
		var at []time.Duration
		w := worker(t, env, pawl.WorkerConfig{}, func(context.Context, *pawl.Job[welcome]) error {
			at = append(at, time.Since(start))
			return nil
		})
		enqueue(t, env, "emails", welcome{1}, pawl.Delay(time.Hour))
		time.AfterFunc(time.Minute, func() {
			_, _ = env.Client.Queue("emails").Enqueue(context.Background(), welcome{2})
		})
		require.Len(t, env.Drain(w).Runs, 2)
		require.Less(t, at[0], time.Minute+time.Second)
		require.GreaterOrEqual(t, at[1], time.Hour)
	})
}

func TestManyJobsDrain(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		args := make([]welcome, 1000)
		_, err := env.Client.Queue("emails").EnqueueMany(t.Context(), pawl.Items(args))
		require.NoError(t, err)
		w := worker(t, env, pawl.WorkerConfig{Concurrency: 100}, done)
		require.Len(t, env.Drain(w).Runs, len(args))
	})
}

// A pause that ends is jumped over, like any time; of one that does not, a drain
// says so instead of waiting for the year 9999.
func TestADrainOfAPausedQueue(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		w := worker(t, env, pawl.WorkerConfig{}, done)
		enqueue(t, env, "emails", welcome{1})
		start := time.Now()
		require.NoError(t, env.Client.Queue("emails").Pause(t.Context(), time.Hour))
		require.Empty(t, env.DrainReady(w).Runs)
		require.Len(t, env.Drain(w).Runs, 1)
		require.WithinDuration(t, start.Add(time.Hour), time.Now(), 10*time.Second)
		require.NoError(t, env.Client.Queue("emails").Pause(t.Context(), pawl.Forever))
		require.Empty(t, env.Drain(w).Runs, "nothing is left to run")
	})
	for _, start := range []bool{false, true} {
		text := failing(t, func(t testing.TB, env *pawltest.Env) {
			w := worker(t, env, pawl.WorkerConfig{}, done)
			if start {
				env.Start(w)
			}
			enqueue(t, env, "emails", welcome{1}, pawl.Delay(time.Minute))
			require.NoError(t, env.Client.Queue("emails").Pause(context.Background(), pawl.Forever))
			env.Drain(w)
		})
		require.Contains(t, text, "Drain: jobs are left in queue emails, which is paused until Resume is called")
	}
}
