package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// hears waits until somebody on this server listens to the ends of jobs of a queue.
func hears(t *testing.T, s *redistest.Server, queue string) {
	t.Helper()
	channel, rdb := "pawl:{"+queue+"}:ended", s.Client(t)
	redistest.Eventually(t, "Wait listens", func(ctx context.Context) bool {
		return rdb.PubSubNumSub(ctx, channel).Val()[channel] > 0
	})
}

// S1. The master dies while somebody waits: the wait goes on at the new one.
func TestAWaitOutlivesAFailover(t *testing.T) {
	t.Parallel()
	s := underSentinels(t)
	id, free := held(t, s.env, pawl.WorkerConfig{}, func(context.Context, *pawl.Job[note]) {}, retained)
	result := beginWait(s.Queue("mail"), within(t, time.Minute), id)
	hears(t, s.Master, "mail")
	s.Replica.AwaitSync(t, s.Master)
	s.Master.Kill()
	hears(t, s.Replica, "mail")
	free(nil)
	info, err := result()
	require.NoError(t, err)
	require.Equal(t, pawl.StateDone, info.State)
}

// One connection hears of all queues of a cluster, whichever master they are on.
func TestWaitsInACluster(t *testing.T) {
	t.Parallel()
	s := onCluster(t, 3, 0)
	other := s.elsewhere()
	w := s.Worker("", pawl.WorkerConfig{Queues: pawl.Queues("q", other)})
	gate := make(chan struct{})
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error {
		<-gate
		return nil
	})
	s.Start(w)
	ctx := within(t, time.Minute)
	var results []func() (pawl.JobInfo, error)
	for _, queue := range []string{"q", other} {
		results = append(results, beginWait(s.Queue(queue), ctx, s.put(queue, 0, 1, retained)[0].ID))
	}
	s.Log.Wait(t, "started", 2)
	<-time.After(500 * time.Millisecond) // by then they listen
	began := time.Now()
	close(gate)
	for _, result := range results {
		info, err := result()
		require.NoError(t, err)
		require.Equal(t, pawl.StateDone, info.State)
	}
	measured(t, "C wait", "jobs on two masters are told", time.Since(began))
}
