package pawltest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

// What is skipped is not among the runs, and the drain waits for what waits for
// its key.
func TestADrainOfJobsWithIdempotencyKeys(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		once := pawl.Idempotency{Key: "k", Window: time.Hour}
		w := worker(t, env, pawl.WorkerConfig{}, func(context.Context, *pawl.Job[welcome]) error {
			<-time.After(time.Minute)
			return nil
		})
		for i := range 3 {
			enqueue(t, env, "emails", welcome{i}, once)
		}
		pawltest.RequireEnqueued(env, "emails", welcome{0}, once)
		require.Len(t, env.Drain(w).Runs, 1)
		s, err := env.Client.Queue("emails").Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, s.Total.Done)
		require.EqualValues(t, 2, s.Total.Skipped)

		enqueue(t, env, "emails", welcome{3}, once)
		require.Empty(t, env.Drain(w).Runs)
		env.Advance(time.Hour)
		enqueue(t, env, "emails", welcome{4}, once)
		require.Len(t, env.Drain(w).Runs, 1)
	})
}
