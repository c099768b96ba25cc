package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// C2. While keys of a slot are on two masters, each script is refused whole: its
// keys are declared. So the queue stands still and nothing of it is torn apart.
func TestASlotThatMovesUnderLoadTakesItsQueueAlong(t *testing.T) {
	t.Parallel()
	s := onCluster(t, 3, 0)
	l := s.start("q", 5*time.Second)
	l.more(100)
	source, target := s.Cluster.MasterOf(tag), s.Cluster.OtherMaster(tag)
	began := time.Now()
	keys := 0
	s.Cluster.Migrate(tag, target, func(moved int) {
		keys = moved
		<-time.After(25 * time.Millisecond) // for the calls of the others
	})
	t.Logf("%d keys moved in %v", keys, time.Since(began))
	moved := time.Now()
	l.more(100)
	measured(t, "C2", "100 more jobs enqueued and done", time.Since(moved))
	s.Cluster.Migrate(tag, source, func(int) {}) // and back
	l.more(50)
	total := l.end("q")
	l.clean(t, total)
	require.Empty(t, s.Log.Of("lost"))
	require.Empty(t, s.Cluster.Keys(target, tag), "no key is left behind")
	for _, key := range s.Cluster.Keys(source, tag) {
		require.NotContains(t, key, ":unique:")
	}
}

// elsewhere is a queue in another master's slot than q.
func (s *sharded) elsewhere() string {
	s.t.Helper()
	return strings.Trim(s.Cluster.KeyElsewhere("{q%d}", tag), "{}")
}

func TestOneWorkerServesQueuesOfSeveralSlots(t *testing.T) {
	t.Parallel()
	s := onCluster(t, 3, 0)
	other := s.elsewhere()
	w := s.Worker("", pawl.WorkerConfig{Queues: pawl.Queues("q", other), Concurrency: 3, Name: "both"})
	var handled [2]runs
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		which := 0
		if job.Queue == other {
			which = 1
		}
		if handled[which].add(job.Args.N) == 1 && job.Args.N == 5 {
			return pawl.RetryAfter(0, errors.New("again"))
		}
		return nil
	})
	stop := s.Start(w)
	s.put("q", 0, 600) // two calls
	s.put(other, 0, 600)
	s.Log.Wait(t, "done", 1200)
	for i, queue := range []string{"q", other} {
		handled[i].mu.Lock()
		require.Len(t, handled[i].of, 600)
		handled[i].mu.Unlock()
		stats, err := s.Queue(queue).Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, pawl.Counters{Enqueued: 600, Started: 601, Retried: 1, Failed: 1, Done: 600}, stats.Total)
	}
	// Both are listened to when nothing is left to do.
	for n, queue := range []string{"q", other, "q", other} {
		start := time.Now()
		s.put(queue, 1000, 1001)
		s.Log.Wait(t, "done", 1201+n)
		require.Less(t, time.Since(start), 1900*time.Millisecond, "%s is woken", queue)
	}

	names, err := s.Client.Queues(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"q", other}, names)
	redistest.Eventually(t, "the worker is listed in both", func(ctx context.Context) bool {
		workers, err := s.Client.Workers(ctx)
		return err == nil && len(workers) == 1 && workers[0].Name == "both" && len(workers[0].Queues) == 2
	})
	require.NoError(t, stop())
	workers, err := s.Client.Workers(t.Context())
	require.NoError(t, err)
	require.Empty(t, workers)
}

func TestLookingAtAQueueOfACluster(t *testing.T) {
	t.Parallel()
	s := onCluster(t, 3, 0)
	q := s.Queue("q")
	ready := s.put("q", 0, 5)
	delayed := s.put("q", 5, 10, pawl.Delay(time.Hour), pawl.Priority(3))
	for job, want := range map[pawl.ID]pawl.State{ready[0].ID: pawl.StateReady, delayed[0].ID: pawl.StateDelayed} {
		require.Equal(t, want, s.state("q", job))
	}
	deaths := make(chan pawl.DeadJob)
	watching, end := context.WithCancel(context.Background())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for job, err := range q.Dead().Watch(watching, "0-0") {
			if err == nil {
				deaths <- job
			}
		}
	}()
	w := s.Worker("q", pawl.WorkerConfig{})
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		if job.Args.N == 3 {
			return pawl.Permanent(errors.New("no"))
		}
		return nil
	})
	stop := s.Start(w)
	require.Equal(t, ready[3].ID, (<-deaths).ID)
	end()
	<-watched
	s.Log.Wait(t, "done", 4)
	require.NoError(t, q.Cancel(t.Context(), delayed[0].ID))
	require.NoError(t, q.RunNow(t.Context(), delayed[1].ID))
	s.Log.Wait(t, "done", 5)
	moved, err := q.Dead().Redrive(t.Context(), ready[3].ID)
	require.NoError(t, err)
	require.Equal(t, 1, moved.Moved)
	s.Log.Wait(t, "dead", 2)
	require.NoError(t, stop())
	findings, err := s.Client.Doctor(t.Context())
	require.NoError(t, err)
	for _, f := range findings {
		if f.Check == "cluster" || f.Check == "rights" || f.Check == "role" {
			require.True(t, f.OK, "%s", f)
		}
	}
}

// What Check and Destroy ask of one node is not sent on to another.
func TestACheckAndADestroyFindASlotThatHasMoved(t *testing.T) {
	t.Parallel()
	s := onCluster(t, 2, 0)
	stale := s.Other().Queue("q")
	for i := range 5 {
		_, err := stale.Enqueue(t.Context(), note{i}, pawl.Unique{Key: fmt.Sprint(i), For: time.Hour})
		require.NoError(t, err)
	}
	require.NoError(t, s.Redis.HSet(t.Context(), "pawl:{q}:odd", "a", "1").Err())
	s.Cluster.Migrate(tag, s.Cluster.OtherMaster(tag), func(int) {})
	s.Cluster.AwaitOK()
	found, err := stale.Check(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 1, "the odd key")
	require.NoError(t, s.Redis.Del(t.Context(), "pawl:{q}:odd").Err())
	s.Cluster.Migrate(tag, s.Cluster.OtherMaster(tag), func(int) {})
	s.Cluster.AwaitOK()
	require.NoError(t, stale.Destroy(t.Context()))
	for _, key := range s.Cluster.Keys(s.Cluster.MasterOf(tag), tag) {
		require.NotContains(t, key, ":unique:")
	}
}

// Who only watches hears of deaths although the master has died.
func TestAWatchFindsTheNewMasterOfTheCluster(t *testing.T) {
	t.Parallel()
	s := onCluster(t, 3, 1)
	s.Queue("q")
	deaths := make(chan pawl.DeadJob)
	watching, end := context.WithCancel(context.Background())
	watched := make(chan struct{})
	t.Cleanup(func() { end(); <-watched })
	watcher := s.Other().Queue("q").Dead()
	go func() {
		defer close(watched)
		for job, err := range watcher.Watch(watching, "0-0") {
			if err == nil {
				deaths <- job
			}
		}
	}()
	w := s.Worker("q", pawl.WorkerConfig{})
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return pawl.Permanent(errors.New("no")) })
	stop := s.Start(w)
	s.put("q", 0, 1)
	<-deaths
	master := s.Cluster.MasterOf(tag)
	s.Cluster.ReplicaOf(master).AwaitSync(t, master)
	master.Kill()
	killed := time.Now()
	late, err := s.Queue("q").Enqueue(within(t, 15*time.Second), note{1})
	require.NoError(t, err)
	require.Equal(t, late.ID, (<-deaths).ID)
	require.Less(t, time.Since(killed), 20*time.Second)
	measured(t, "C1 killed", "a death heard of by a watch", time.Since(killed))
	require.NoError(t, stop())
}

func TestAQueueOfAClusterIsDestroyedWhole(t *testing.T) {
	t.Parallel()
	s := onCluster(t, 3, 0)
	other := s.elsewhere()
	for i := range 20 {
		for _, queue := range []string{"q", other} {
			s.put(queue, i, i+1, pawl.Unique{Key: fmt.Sprint(i)})
		}
	}
	require.NoError(t, s.Queue("q").Destroy(t.Context()))
	for _, key := range s.Cluster.Keys(s.Cluster.MasterOf(tag), tag) {
		require.Contains(t, key, ":lane:", "what goes by itself")
	}
	names, err := s.Client.Queues(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{other}, names)
	stats, err := s.Queue(other).Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 20, stats.Ready, "another queue is as it was")
	s.put("q", 0, 1, pawl.Unique{Key: "1"}) // it may be used again
}
