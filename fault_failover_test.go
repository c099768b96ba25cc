package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// load is producers that enqueue notes into a queue, one at a time, until it is
// told to stop, and workers that run them.
type load struct {
	s       *sharded
	handled runs
	stops   []func() error

	stopping context.Context
	stop     context.CancelFunc
	running  sync.WaitGroup
	mu       sync.Mutex
	acked    map[int]pawl.ID
	errs     []error
	longest  time.Duration
}

// start starts two producers and two workers, each of a client of its own.
// Every fifth job fails once, every seventh has a unique key and a delay.
func (s *sharded) start(queue string, visibility time.Duration) *load {
	s.t.Helper()
	l := &load{s: s, acked: map[int]pawl.ID{}}
	l.stopping, l.stop = context.WithCancel(context.Background())
	s.t.Cleanup(func() { l.stop(); l.running.Wait() })
	for range 2 {
		s.Queue(queue)
		w, err := pawl.NewWorker(s.Other(), pawl.WorkerConfig{Queues: pawl.Queues(queue), VisibilityTimeout: visibility,
			Backoff: pawl.Backoff{Base: 10 * time.Millisecond, Jitter: pawl.JitterNone}})
		require.NoError(s.t, err)
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			if l.handled.add(job.Args.N) == 1 && job.Args.N%5 == 0 {
				return errors.New("the first attempt fails")
			}
			<-time.After(time.Millisecond)
			return nil
		})
		l.stops = append(l.stops, s.Start(w))
	}
	for p := range 2 {
		q := s.Other().Queue(queue)
		l.running.Go(func() {
			for n := p; l.stopping.Err() == nil; n += 2 {
				l.enqueue(q, n)
			}
		})
	}
	return l
}

func (l *load) enqueue(q *pawl.Queue, n int) {
	<-time.After(5 * time.Millisecond)
	var opts []pawl.Option
	if n%7 == 0 { // some of them are always there
		opts = append(opts, pawl.Unique{Key: fmt.Sprint(n)}, pawl.Delay(time.Second))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	start := time.Now()
	job, err := q.Enqueue(ctx, note{n}, opts...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = max(l.longest, time.Since(start))
	if err != nil {
		l.errs = append(l.errs, err)
		return
	}
	l.acked[n] = job.ID
}

// Acked is how many jobs were acknowledged so far.
func (l *load) Acked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// more returns when n more jobs were acknowledged and done.
func (l *load) more(n int) {
	l.s.t.Helper()
	before := l.Acked()
	redistest.Eventually(l.s.t, "more is enqueued", func(context.Context) bool { return l.Acked() >= before+n })
	l.s.Log.Wait(l.s.t, "done", len(l.s.Log.Of("done"))+n)
}

// end stops the producers, waits until nothing is left to do, stops the workers
// and tells what was counted.
func (l *load) end(queue string) pawl.Counters {
	t := l.s.t
	t.Helper()
	l.stop()
	l.running.Wait()
	q := l.s.Queue(queue)
	var stats *pawl.Stats
	redistest.Eventually(t, "all is done", func(ctx context.Context) bool {
		s, err := q.Stats(ctx)
		stats = &s
		return err == nil && s.Ready+s.Delayed+s.Running == 0
	})
	for _, stop := range l.stops {
		require.NoError(t, stop())
	}
	t.Logf("%d jobs; the longest enqueue took %v; %d outages, %d leases lost",
		len(l.acked), l.longest, len(l.s.Log.Of("outage")), len(l.s.Log.Of("lost")))
	return stats.Total
}

// clean says that no caller saw an error, every acknowledged job was run to its
// end, and none was run twice without its lease being lost.
func (l *load) clean(t *testing.T, total pawl.Counters) {
	t.Helper()
	require.Empty(t, l.errs)
	again := 0
	for n := range l.acked {
		want := 1
		if n%5 == 0 {
			want = 2
		}
		require.GreaterOrEqual(t, l.handled.of[n], want, "note %d", n)
		again += l.handled.of[n] - want
	}
	require.LessOrEqual(t, again, len(l.s.Log.Of("lost"))+int(total.Crashed))
	require.Len(t, l.handled.of, len(l.acked), "nothing ran that was not enqueued")
	require.EqualValues(t, len(l.acked), total.Enqueued)
	require.EqualValues(t, len(l.acked), total.Done)
	require.Zero(t, total.Dead+total.Lost+total.Healed)
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
	t.Logf("the failover took %v", time.Since(began))
	l.more(50)
	t.Logf("50 more jobs were done after %v", time.Since(began))
	require.Equal(t, promoted, s.Cluster.MasterOf(tag))
	total := l.end("q")
	l.clean(t, total)
	require.Empty(t, s.Log.Of("lost"))
}

// C1, unplanned: what is not replicated when a master dies is lost, as ever, so
// nothing is enqueued in that moment.
func TestAWorkerGoesOnWhenAMasterOfTheClusterDies(t *testing.T) {
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
	master.Kill()
	killed := time.Now()
	close(gate)
	_, err := s.Queue("q").Enqueue(within(t, 15*time.Second), note{300})
	require.NoError(t, err)
	t.Logf("writing again after %v", time.Since(killed))
	s.Log.Wait(t, "done", 104)
	t.Logf("working again after %v", time.Since(killed))
	s.Log.Wait(t, "done", 301)
	t.Logf("all is done after %v", time.Since(killed))
	require.Less(t, time.Since(killed), 10*time.Second+visibility)
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
}
