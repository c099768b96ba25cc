package pawltest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

func TestADrainFiresNoSchedules(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		q := env.Client.Queue("emails")
		require.NoError(t, q.Schedule(t.Context(), pawl.Schedule{ID: "s", When: pawl.Every(time.Minute), Args: welcome{7}}))
		w := worker(t, env, pawl.WorkerConfig{}, done)
		env.Advance(time.Hour)
		enqueue(t, env, "emails", welcome{1}, pawl.Delay(time.Hour))
		require.Len(t, env.Drain(w).Runs, 1, "the one that was enqueued")
		_, err := q.Trigger(t.Context(), "s")
		require.NoError(t, err)
		pawltest.RequireEnqueued(env, "emails", welcome{7})
		runs := env.DrainReady(w).Runs
		require.Len(t, runs, 1)
		require.Equal(t, "s", runs[0].Job.Schedule)
		require.WithinDuration(t, time.Now(), runs[0].Job.ScheduledAt, time.Second)

		env.Start(w)
		env.Advance(5*time.Minute + time.Second)
		infos, err := q.Schedules(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 7, infos[0].Fired, "the one by hand, one for all that were missed, and five")
		pawltest.RequireNone[welcome](env, "emails")
	})
}

// noted is a test that keeps what it logs.
type noted struct {
	testing.TB
	lines []string
}

func (n *noted) Logf(format string, args ...any) {
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

// A drain that runs nothing, with schedules that are due, says why.
func TestADrainHintsAtSchedulesThatAreDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &noted{TB: t}
		env := pawltest.New(log, pawl.Config{})
		q := env.Client.Queue("emails")
		require.NoError(t, q.Schedule(t.Context(),
			pawl.Schedule{ID: "a", When: pawl.Every(time.Minute), Args: welcome{7}},
			pawl.Schedule{ID: "b", When: pawl.Every(time.Minute), Args: welcome{8}},
			pawl.Schedule{ID: "later", When: pawl.Every(time.Hour), Args: welcome{9}}))
		require.NoError(t, q.PauseSchedule(t.Context(), "b"))
		w := worker(t, env, pawl.WorkerConfig{}, done)
		env.Drain(w)
		require.Empty(t, log.lines, "none is due")

		env.Advance(2 * time.Minute)
		const says = `: nothing ran in queue "emails", of which schedules are due, ["a"]; a drain fires none: Start the worker, or Trigger them`
		env.Drain(w)
		env.DrainReady(w)
		require.Equal(t, []string{"pawltest: Drain" + says, "pawltest: DrainReady" + says}, log.lines)
		log.lines = nil

		_, err := q.Trigger(t.Context(), "a")
		require.NoError(t, err)
		require.Len(t, env.Drain(w).Runs, 1)
		require.Empty(t, log.lines, "something ran")

		env.Start(w)
		env.DrainReady(w)
		env.DrainReady(w)
		require.Empty(t, log.lines, "and a worker that was started fires them")
	})
}
