package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// W1, case 2. A crash spends no attempt, so that a job of one attempt runs again.
func TestAJobOfAKilledWorkerRunsAgainSoon(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	e := newEnv(t, server.Client(t), nil)
	_, err := e.Queue("q").Enqueue(t.Context(), note{}, pawl.MaxAttempts(1))
	require.NoError(t, err)
	const visibility = 2 * time.Second
	p := startChild(t, "hang", server.Addr(), visibility)
	require.True(t, p.await("started"))
	w := e.Worker("q", pawl.WorkerConfig{VisibilityTimeout: visibility})
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
	stop := e.Start(w)
	killed := time.Now()
	p.kill()
	again := e.Log.Wait(t, "started", 1)[0]
	took := time.Since(killed)
	measured(t, "W1", "the job of a killed worker ran again", took)
	require.Less(t, took, 3*(visibility+2*time.Second))
	require.Equal(t, 1, again.Job.Attempt, "a crash spends no attempt")
	require.Equal(t, 1, again.Job.Crashes)
	e.Log.Wait(t, "done", 1)
	require.NoError(t, stop())
	require.Len(t, e.Log.Of("crashed"), 1)
}

// W5, case 4. A job that ends its process each time is buried with the reason,
// and the 49 beside it are done.
func TestAPoisonJobIsBuriedAlone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	e := newEnv(t, server.Client(t), nil)
	q := e.Queue("q")
	jobs := make([]note, 50)
	for i := range jobs {
		jobs[i].N = i
	}
	enqueued, err := q.EnqueueMany(t.Context(), pawl.Items(jobs))
	require.NoError(t, err)
	for starts := 1; ; starts++ {
		require.LessOrEqual(t, starts, 12, "the poison job is run for ever")
		p := startChild(t, "poison", server.Addr(), 300*time.Millisecond)
		empty := p.await("empty")
		p.kill()
		if empty {
			break
		}
	}
	s, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 49, s.Total.Done)
	require.EqualValues(t, 1, s.Dead)
	require.Zero(t, s.Total.Failed, "no attempt was spent")
	dead, err := q.Dead().Get(t.Context(), enqueued[7].ID)
	require.NoError(t, err)
	require.Equal(t, pawl.ReasonCrashed, dead.Reason)
	require.Equal(t, 3, dead.Crashes)
}
