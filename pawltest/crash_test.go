package pawltest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

func TestAnotherWorkerTakesTheJobsOfACrashedOne(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		causes := make(chan error, 3)
		begun := make(chan pawl.RawJob, 3)
		first := worker(t, env, pawl.WorkerConfig{VisibilityTimeout: time.Minute}, func(ctx context.Context, job *pawl.Job[welcome]) error {
			begun <- job.RawJob
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil // as if it had not been told
		})
		env.Start(first)
		for i := range 3 {
			enqueue(t, env, "emails", welcome{i})
		}
		runs := map[pawl.ID]pawl.RawJob{}
		for range 3 {
			job := <-begun
			runs[job.ID] = job
		}
		env.Advance(10 * time.Minute) // of heartbeats
		crash := time.Now()
		env.Crash(first)
		require.Error(t, first.Healthy(), "its Run has returned")
		for range 3 {
			require.ErrorIs(t, <-causes, pawl.ErrShutdown)
		}
		s, err := env.Client.Queue("emails").Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, s.Running, "nothing was settled and nothing released")
		require.Zero(t, s.Total.Done+s.Total.Released)

		second := worker(t, env, pawl.WorkerConfig{}, done)
		require.Empty(t, env.DrainReady(second).Runs, "the leases hold")
		report := env.Drain(second)
		require.Len(t, report.Runs, 3)
		for _, e := range report.Runs {
			require.Equal(t, 1, e.Job.Crashes)
			require.Equal(t, runs[e.Job.ID].Attempt, e.Job.Attempt)
			require.Greater(t, e.Job.Run, runs[e.Job.ID].Run)
		}
		require.InDelta(t, time.Minute, time.Since(crash), float64(21*time.Second), "less what is left of a heartbeat's interval")
	})
}

func TestAHandlerMayCrashItsWorkerInADrain(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		enqueue(t, env, "emails", welcome{1})
		for range 3 {
			var w *pawl.Worker
			w = worker(t, env, pawl.WorkerConfig{}, func(context.Context, *pawl.Job[welcome]) error {
				env.Crash(w)
				return nil
			})
			require.Zero(t, env.Drain(w), "a run without an end is not reported")
		}
		report := env.Drain(worker(t, env, pawl.WorkerConfig{}, done))
		require.Empty(t, report.Runs)
		require.Len(t, report.Dead, 1)
		require.Equal(t, pawl.ReasonCrashed, report.Dead[0].Reason, "MaxCrashes is 3")
	})
}

func TestOutcomesFromBeforeACrashCount(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		ran := 0
		var w *pawl.Worker
		w = worker(t, env, pawl.WorkerConfig{Concurrency: 1}, func(context.Context, *pawl.Job[welcome]) error {
			if ran++; ran == 3 {
				env.Crash(w)
			}
			return nil
		})
		for i := range 5 {
			enqueue(t, env, "emails", welcome{i})
		}
		require.Len(t, env.Drain(w).Runs, 2)
		require.Len(t, env.Drain(worker(t, env, pawl.WorkerConfig{}, done)).Runs, 3)
	})
}

func TestACrashOfAnIdleWorkerLeavesNothing(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		w := worker(t, env, pawl.WorkerConfig{}, done)
		env.Start(w)
		env.Advance(time.Minute)
		start := time.Now()
		env.Crash(w)
		require.Equal(t, start, time.Now())
		enqueue(t, env, "emails", welcome{1})
		env.Advance(time.Hour)
		pawltest.RequireEnqueued(env, "emails", welcome{1})
	})
}

func TestACrashWithoutABubble(t *testing.T) {
	t.Parallel()
	env := pawltest.New(t, pawl.Config{})
	for range 20 {
		begun := make(chan struct{}, 10)
		w := worker(t, env, pawl.WorkerConfig{VisibilityTimeout: 2 * time.Second, MaxCrashes: 255},
			func(ctx context.Context, _ *pawl.Job[welcome]) error {
				begun <- struct{}{}
				<-ctx.Done()
				return nil
			})
		env.Start(w)
		enqueue(t, env, "emails", welcome{1})
		<-begun
		env.Crash(w)
	}
	s, err := env.Client.Queue("emails").Stats(t.Context())
	require.NoError(t, err)
	require.Zero(t, s.Total.Done+s.Total.Released+s.Total.Discarded)
	w := worker(t, env, pawl.WorkerConfig{MaxCrashes: 255}, done)
	require.Len(t, env.Drain(w).Runs, 20)
}
