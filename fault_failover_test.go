package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// sharded is a cluster and an env whose client is one of it.
type sharded struct {
	*env
	Cluster *redistest.Cluster
	Redis   *redis.ClusterClient
}

func onCluster(t *testing.T, masters, replicasEach int) *sharded {
	t.Helper()
	s := &sharded{Cluster: redistest.StartCluster(t, masters, replicasEach)}
	s.Redis = s.Cluster.Client(t)
	s.env = &env{t: t, Log: newRecorder(false), queues: map[string]bool{}}
	s.Client = s.Other()
	t.Cleanup(s.Check)
	return s
}

// Other is a client with connections of its own and a view of its own of the
// cluster.
func (s *sharded) Other() *pawl.Client {
	s.t.Helper()
	c, err := pawl.New(s.Cluster.Client(s.t), pawl.Config{Hooks: []pawl.Hook{s.Log}})
	require.NoError(s.t, err)
	return c
}

const tag = "{q}" // a key in the slot of queue q

// start puts a load on a queue; each of its producers and workers has a client of
// its own.
func (s *sharded) start(queue string, visibility time.Duration) *load {
	s.t.Helper()
	return s.load(queue, visibility, s.Other)
}

// C1, planned: the master of the queue's slot and its replica change places.
func TestAPlannedFailoverOfAClusterIsNotNoticed(t *testing.T) {
	t.Parallel()
	s := onCluster(t, 3, 1)
	l := s.start("q", 5*time.Second)
	l.more(50)
	master := s.Cluster.MasterOf(tag)
	began := time.Now()
	promoted := s.Cluster.Failover(master)
	measured(t, "C1 CLUSTER FAILOVER", "the slots at the other node", time.Since(began))
	l.more(50)
	measured(t, "C1 CLUSTER FAILOVER", "50 more jobs enqueued and done", time.Since(began))
	require.Equal(t, promoted, s.Cluster.MasterOf(tag))
	total := l.end("q")
	l.clean(t, total)
	require.Empty(t, s.Log.Of("lost"))
}

// C1, unplanned: what is not replicated when a master dies is lost, as ever, so
// nothing is enqueued in that moment. One that is frozen comes back as a replica.
func TestAWorkerGoesOnWhenAMasterOfTheClusterDies(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]struct{ end, after func(*redistest.Server) }{
		"killed": {(*redistest.Server).Kill, func(*redistest.Server) {}},
		"frozen": {(*redistest.Server).Pause, (*redistest.Server).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := onCluster(t, 3, 1)
			const visibility = 2 * time.Second
			w := s.Worker("q", pawl.WorkerConfig{Concurrency: 4, VisibilityTimeout: visibility})
			var handled runs
			gate := make(chan struct{})
			pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
				handled.add(job.Args.N)
				if job.Args.N >= 100 {
					<-gate
				}
				return nil
			})
			stop := s.Start(w)
			s.put("q", 0, 100)
			s.Log.Wait(t, "done", 100)
			s.put("q", 100, 300)
			s.Log.Wait(t, "started", 104)
			master := s.Cluster.MasterOf(tag)
			s.Cluster.ReplicaOf(master).AwaitSync(t, master)
			how.end(master)
			ended := time.Now()
			close(gate)
			_, err := s.Queue("q").Enqueue(within(t, 30*time.Second), note{300})
			require.NoError(t, err)
			measured(t, "C1 "+name, "an enqueue", time.Since(ended))
			s.Log.Wait(t, "done", 104)
			measured(t, "C1 "+name, "the jobs that ran done", time.Since(ended))
			s.Log.Wait(t, "done", 301)
			measured(t, "C1 "+name, "200 jobs done", time.Since(ended))
			require.Less(t, time.Since(ended), 30*time.Second)
			how.after(master)
			s.Cluster.AwaitOK()
			require.NoError(t, stop())
			stats, err := s.Queue("q").Stats(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 301, stats.Total.Enqueued)
			require.EqualValues(t, 301, stats.Total.Done)
			require.Zero(t, stats.Total.Dead+stats.Total.Lost+stats.Total.Healed)
			handled.mu.Lock()
			defer handled.mu.Unlock()
			require.Len(t, handled.of, 301)
		})
	}
}
