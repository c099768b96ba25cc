package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// note is the job of most tests.
type note struct {
	N int `json:"n"`
}

func (note) Kind() string { return "note" }

func TestJobsRunOnceAndLeaveNothing(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		const jobs = 50
		for i := range jobs {
			_, err := q.Enqueue(t.Context(), note{i})
			require.NoError(t, err)
		}
		w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 7})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		stop := e.Start(w)
		e.Log.Wait(t, "done", jobs)
		require.NoError(t, stop())

		seen := map[pawl.ID]bool{}
		for _, ev := range e.Log.Of("done") {
			require.False(t, seen[ev.Job.ID], "a job was done twice")
			seen[ev.Job.ID] = true
		}
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, pawl.Counters{Enqueued: jobs, Started: jobs, Done: jobs}, s.Total)
		require.Zero(t, s.Ready+s.Delayed+s.Running+s.Dead)
	})
}

func TestAFailingJobIsRetriedByPolicyAndDies(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		id, err := q.Enqueue(t.Context(), note{1})
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{Backoff: pawl.Backoff{Jitter: pawl.JitterNone}})
		var at []time.Time
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			at = append(at, time.Now())
			require.Equal(t, len(at), job.Attempt)
			return errors.New("no")
		})
		stop := e.Start(w)
		e.Log.Wait(t, "retry", 7)
		e.Log.Wait(t, "dead", 1)
		require.NoError(t, stop())
		require.Len(t, at, 8)
		for i, want := range []time.Duration{5, 15, 45, 135, 405, 1215, 3600} {
			got := at[i+1].Sub(at[i])
			require.GreaterOrEqual(t, got, want*time.Second, "early")
			require.Less(t, got, want*time.Second+50*time.Millisecond, "late")
		}
		dead, err := q.Dead().Get(t.Context(), id.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.ReasonExhausted, dead.Reason)
		require.Equal(t, "no", dead.Error)
		require.Len(t, dead.Errors, 5)
		require.Equal(t, 8, dead.Attempt)
	})
}
