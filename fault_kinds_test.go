package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// W9. A deploy in its middle: the old worker puts jobs of a kind that it does not
// know back, does its own meanwhile, and the new one does them, nothing spent.
func TestJobsOfAKindThatAWorkerDoesNotKnowWaitForOneThatDoes(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	q := f.Queue("q")
	const each = 20
	for range each {
		_, err := q.EnqueueRaw(t.Context(), "new.kind", []byte("{}"), pawl.MaxAttempts(1), pawl.MaxCrashes(1))
		require.NoError(t, err)
	}
	f.put(t, "q", each)
	old := f.Worker("q", pawl.WorkerConfig{Concurrency: 2})
	known := func(context.Context, *pawl.Job[note]) error { return nil }
	pawl.Handle(old, known)
	stop := f.Start(old)
	f.Log.Wait(t, "done", each)
	f.Log.Wait(t, "snoozed", each)
	require.NoError(t, stop())
	start := time.Now()
	w := f.Worker("q", pawl.WorkerConfig{})
	pawl.Handle(w, known)
	w.HandleRaw("new.kind", func(_ context.Context, job *pawl.RawJob) error {
		require.Equal(t, 1, job.Attempt)
		require.Zero(t, job.Crashes)
		return nil
	})
	stop = f.Start(w)
	f.Log.Wait(t, "done", 2*each)
	measured(t, "W9", "20 jobs were done by a worker that knows their kind", time.Since(start))
	require.NoError(t, stop())
	total := f.Total(t, "q")
	require.Zero(t, total.Failed+total.Retried+total.Dead+total.Crashed)
	require.GreaterOrEqual(t, total.Snoozed, int64(each))
}
