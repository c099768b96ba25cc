package pawltest_test

import (
	"testing"
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
