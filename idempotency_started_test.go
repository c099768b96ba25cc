package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// A job that has been started does not hold its key again because it was put back
// behind another of its idempotency key.
func TestAStartedJobThatWaitsForAnIdempotencyKeyHasStarted(t *testing.T) {
	t.Parallel()
	seen := 0
	for turn := range 4 { // which of the two is leased first is up to the queue's turn
		bubble(t, func(t *testing.T, e *env) {
			q := e.Queue("mail")
			unique := pawl.Unique{Key: "u", Until: pawl.UntilStarted}
			w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 1, DrainTimeout: time.Millisecond})
			begun := make(chan struct{}, 1)
			pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
				if job.Args.N == 0 {
					return nil
				}
				begun <- struct{}{}
				<-ctx.Done()
				return ctx.Err()
			})
			for range turn {
				put(t, q, 0)
			}
			stop := e.Start(w)
			e.Log.Wait(t, "done", turn)
			first := put(t, q, 1, unique, once(1))
			<-begun
			require.Error(t, stop()) // it is given back, after it was started
			put(t, q, 2, once(1), pawl.Priority(9))
			w = e.Worker("mail", pawl.WorkerConfig{Concurrency: 1})
			second, letGo := make(chan struct{}), make(chan struct{})
			pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
				if job.Args.N == 2 {
					close(second)
					<-letGo
				}
				return nil
			})
			other := e.Worker("mail", pawl.WorkerConfig{Concurrency: 1})
			pawl.Handle(other, func(context.Context, *pawl.Job[note]) error { return nil })
			e.Start(w)
			select {
			case <-second:
			case <-time.After(time.Second):
				return // the first came first, and was done
			}
			e.Start(other)
			e.Log.Wait(t, "snoozed", 1)
			_, err := q.Get(t.Context(), first)
			require.False(t, errors.Is(err, pawl.ErrNotFound))
			got, err := q.Enqueue(t.Context(), note{3}, unique)
			close(letGo)
			require.NoError(t, err)
			require.False(t, got.Duplicate, "its holder has been started")
			seen++
		})
	}
	require.NotZero(t, seen)
}
