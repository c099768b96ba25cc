package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// A job that was redriven an hour ago, and then replaced, has the ExpireIn of the new
// one from the redrive on, at the least: not from the day it was first enqueued.
func TestAReplacementOfARedrivenJobHasNotExpiredAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		unique := pawl.Unique{Key: "sync:1", OnDuplicate: pawl.ReplaceWaiting}
		w := e.Worker("mail", pawl.WorkerConfig{})
		var ran []int
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			ran = append(ran, job.Args.N)
			if job.Args.N == 1 {
				return pawl.Permanent(errors.New("no"))
			}
			return nil
		})
		id := put(t, q, 1, unique, pawl.ExpireIn(time.Hour))
		e.Run(w, "dead", 1)
		e.Pass(24 * time.Hour)
		_, err := q.Dead().Redrive(t.Context(), id)
		require.NoError(t, err)
		got, err := q.Enqueue(t.Context(), note{2}, unique, pawl.ExpireIn(time.Hour))
		require.NoError(t, err)
		require.True(t, got.Replaced)
		w = e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error { ran = append(ran, job.Args.N); return nil })
		e.Run(w, "done", 1)
		require.Equal(t, []int{1, 2}, ran)
	})
}
