package pawl_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

type billing struct{ Order int }

func (billing) Kind() string { return "charge" }

func once(order int) pawl.Idempotency { return pawl.Idempotency{Key: pawl.Key("charge", order)} }

// The key is what a handler is to give to the system that it changes: it must
// not change with what becomes of the job.
func TestTheIdempotencyKeyIsTheSameInEveryRun(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		q := env.Client.Queue("pay")
		var keys, ids []string
		work := func() *pawl.Worker {
			w, err := pawl.NewWorker(env.Client, pawl.WorkerConfig{Queues: pawl.Queues("pay"), MaxAttempts: 2, Concurrency: 1})
			require.NoError(t, err)
			pawl.Handle(w, func(_ context.Context, job *pawl.Job[billing]) error {
				if job.Args.Order == 7 {
					keys = append(keys, job.IdempotencyKey())
				} else {
					ids = append(ids, job.IdempotencyKey())
				}
				return errors.New("declined")
			})
			return w
		}
		with, err := q.Enqueue(t.Context(), billing{7}, once(7))
		require.NoError(t, err)
		without, err := q.Enqueue(t.Context(), billing{8})
		require.NoError(t, err)

		for id, key := range map[pawl.ID]string{with.ID: "charge:7", without.ID: ""} {
			info, err := q.Get(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, key, info.Idempotency)
		}
		env.Drain(work())
		dead, err := q.Dead().Get(t.Context(), with.ID)
		require.NoError(t, err)
		require.Equal(t, "charge:7", dead.Idempotency)
		require.Equal(t, "charge:7", dead.IdempotencyKey())
		_, err = q.Dead().Redrive(t.Context(), with.ID, without.ID)
		require.NoError(t, err)
		env.Drain(work())

		require.Equal(t, []string{"charge:7", "charge:7", "charge:7", "charge:7"}, keys)
		require.Equal(t, []string{without.ID.String(), without.ID.String(), without.ID.String(), without.ID.String()}, ids)
	})
}
