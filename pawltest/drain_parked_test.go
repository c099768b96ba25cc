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

// A job that waits behind one that runs is among those that wait, and a drain runs it
// when its turn has come.
func TestADrainRunsWhatWasParked(t *testing.T) {
	t.Parallel()
	latest := pawl.Unique{Key: "k", OnDuplicate: pawl.RunLatestAfter}
	for name, c := range map[string]struct {
		outcome error
		delay   time.Duration
		ready   int // runs of a drain of what is ready
	}{
		"at once":         {nil, 0, 2},
		"after a failure": {errors.New("no"), 0, 2},
		"in an hour":      {nil, time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
				var ran []int
				w := worker(t, env, pawl.WorkerConfig{}, func(ctx context.Context, job *pawl.Job[welcome]) error {
					if ran = append(ran, job.Args.UserID); len(ran) > 1 {
						return nil
					}
					for n := 2; n < 5; n++ {
						enqueue(t, env, "emails", welcome{n}, latest, pawl.Delay(c.delay))
					}
					pawltest.RequireEnqueued(env, "emails", welcome{4}, latest, pawl.Delay(c.delay))
					require.Len(t, pawltest.Jobs[welcome](env, "emails"), 1)
					return c.outcome
				})
				enqueue(t, env, "emails", welcome{1}, latest)
				require.Len(t, env.DrainReady(w).Runs, c.ready)
				require.Len(t, env.Drain(w).Runs, 2-c.ready)
				require.Equal(t, []int{1, 4}, ran)
				pawltest.RequireNone[welcome](env, "emails")
			})
		})
	}
}

// Parked behind a job that another worker runs: the drain waits for its end.
func TestADrainWaitsForWhoeverAParkedJobIsBehind(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		latest := pawl.Unique{Key: "k", OnDuplicate: pawl.RunLatestAfter}
		started := make(chan struct{}, 2)
		slow := worker(t, env, pawl.WorkerConfig{Concurrency: 1}, func(ctx context.Context, job *pawl.Job[welcome]) error {
			started <- struct{}{}
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
			return nil
		})
		enqueue(t, env, "emails", welcome{1}, latest)
		env.Start(slow)
		<-started
		enqueue(t, env, "emails", welcome{2}, latest)
		other := worker(t, env, pawl.WorkerConfig{}, done)
		require.Empty(t, env.DrainReady(other).Runs, "it is not ready")
		env.Drain(other) // whichever of the two runs it
		s, err := env.Client.Queue("emails").Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Total.Done)
	})
}
