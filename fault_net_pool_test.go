package pawl_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// smallPool gives f's client a pool of few connections, and none beside it for
// pipelines.
func smallPool(t *testing.T, f *faulty, size int) {
	t.Helper()
	wide := f.App
	f.App = redis.NewClient(&redis.Options{Addr: f.Proxy.Addr(), PoolSize: size, PipelinePoolSize: -1})
	f.Client = f.NewClient(pawl.Config{})
	t.Cleanup(func() {
		_ = f.App.Close()
		f.App = wide
	})
}

// longJobs is a worker whose first n jobs last twice their lease, the others no time.
func longJobs(t *testing.T, f *faulty, queue string, visibility time.Duration, n int64) *pawl.Worker {
	t.Helper()
	var handled atomic.Int64
	w := f.Worker(queue, pawl.WorkerConfig{Concurrency: 4, VisibilityTimeout: visibility})
	pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
		if handled.Add(1) > n {
			return nil
		}
		select {
		case <-time.After(2 * visibility):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	return w
}

// N7. More workers than connections: each keeps one in a blocking read while it
// has slots, and all that is left is theirs to renew and to settle.
func TestRenewalsDoNotStarveBehindTheReadsOfOtherWorkers(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	const workers = 3
	smallPool(t, f, workers)
	const visibility = 4 * time.Second
	var stops []func() error
	for i := range workers {
		stops = append(stops, f.Start(longJobs(t, f, fmt.Sprint("q", i), visibility, 2)))
	}
	redistest.Eventually(t, "every connection blocks", func(ctx context.Context) bool {
		info, _ := f.Direct.Info(ctx, "clients").Result()
		return infoField(info, "blocked_clients") == workers
	})
	start := time.Now()
	for i := range workers {
		f.put(t, fmt.Sprint("q", i), 2)
	}
	f.Log.Wait(t, "done", 2*workers)
	measured(t, "N7", "jobs of 8 s were done with one connection a worker", time.Since(start))
	require.Empty(t, f.Log.Of("lost"))
	for i := range workers {
		require.Equal(t, pawl.Counters{Enqueued: 2, Started: 2, Done: 2}, f.Total(t, fmt.Sprint("q", i)))
	}
	for _, stop := range stops {
		require.NoError(t, stop())
	}
}

func infoField(info, field string) int {
	_, rest, _ := strings.Cut(info, "\r\n"+field+":")
	text, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// N7. Whoever else uses the pool has all of it for a while, and gives it back.
func TestAWorkerRecoversFromAPoolThatRanDry(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	const size = 4
	smallPool(t, f, size)
	const visibility = 5 * time.Second
	w := f.Worker("q", pawl.WorkerConfig{Concurrency: 4, VisibilityTimeout: visibility})
	finish := make(chan struct{})
	var handled runs
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		handled.add(job.Args.N)
		<-finish
		return nil
	})
	f.put(t, "q", 4)
	stop := f.Start(w)
	f.Log.Wait(t, "started", 4)
	var held []*redis.Conn
	for range size { // each as soon as the worker lets it go
		c := f.App.Conn()
		redistest.Eventually(t, "a connection is free", func(ctx context.Context) bool { return c.Ping(ctx).Err() == nil })
		held = append(held, c)
	}
	close(finish)
	dry := time.Now()
	f.Log.Wait(t, "outage", 1)
	measured(t, "N7", "a dry pool was noticed", time.Since(dry))
	require.Error(t, w.Healthy())
	require.Empty(t, f.Log.Of("done"))
	for _, c := range held {
		require.NoError(t, c.Close())
	}
	back := time.Now()
	f.Log.Wait(t, "done", 4)
	measured(t, "N7", "what had finished was stored after a dry pool", time.Since(back))
	redistest.Eventually(t, "the worker is healthy", func(context.Context) bool { return w.Healthy() == nil })
	handled.each(t, 4, 1)
	require.NoError(t, stop())
	require.Equal(t, pawl.Counters{Enqueued: 4, Started: 4, Done: 4}, f.Total(t, "q"))
}

// N7. A flood of enqueues over the worker's own pool.
func TestRenewalsAndOutcomesPassThroughAFloodOfEnqueues(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	smallPool(t, f, 3)
	f.Proxy.On("enqueue", 0, redistest.Delay(100*time.Millisecond)) // each holds a connection for long
	const visibility = 3 * time.Second
	stop := f.Start(longJobs(t, f, "q", visibility, 4))
	f.put(t, "q", 4)
	f.Log.Wait(t, "started", 4)
	start := time.Now()
	flood, end := context.WithCancel(context.Background())
	var producers sync.WaitGroup
	for i := range 12 {
		q := f.Queue(fmt.Sprint("other", i))
		producers.Go(func() {
			for flood.Err() == nil {
				_, _ = q.Enqueue(flood, note{})
			}
		})
	}
	f.Log.Wait(t, "done", 4)
	measured(t, "N7", "jobs of 6 s were done in a flood of enqueues", time.Since(start))
	end()
	producers.Wait()
	require.Empty(t, f.Log.Of("lost"))
	require.NoError(t, stop())
	require.Equal(t, pawl.Counters{Enqueued: 4, Started: 4, Done: 4}, f.Total(t, "q"))
}

// N7. No lease is answered: it is what a worker fetches by.
func TestRenewalsAndOutcomesPassAFetchWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), time.Second)
	const visibility = 3 * time.Second
	stop := f.Start(longJobs(t, f, "q", visibility, 2))
	f.put(t, "q", 2)
	f.Log.Wait(t, "started", 2)
	f.Proxy.On("lease", 0, redistest.RunDropReplyAndHold)
	f.put(t, "q", 2)
	f.Log.Wait(t, "done", 2)
	require.Len(t, f.Log.Of("started"), 2)
	require.Empty(t, f.Log.Of("lost"))
	f.Proxy.Clear()
	healed := time.Now()
	f.Log.Wait(t, "started", 4)
	measured(t, "N7", "the lease was answered", time.Since(healed))
	f.Log.Wait(t, "done", 4)
	require.NoError(t, stop())
	total := f.Total(t, "q")
	require.EqualValues(t, 4, total.Done)
	require.Zero(t, total.Failed+total.Retried)
}

// N7. The server takes no more connections than one worker's fewest, one and two.
func TestAWorkerLivesOnFewConnectionsAndRecovers(t *testing.T) {
	t.Parallel()
	for _, few := range []int{1, 2} {
		t.Run(fmt.Sprint(few), func(t *testing.T) {
			t.Parallel()
			f := behindProxy(t, redistest.Start(t), 0)
			const visibility = 4 * time.Second
			w := longJobs(t, f, "q", visibility, 2)
			stop := f.Start(w)
			f.put(t, "q", 2)
			f.Log.Wait(t, "started", 2)
			clients, err := f.Direct.ClientList(t.Context()).Result()
			require.NoError(t, err)
			own := strings.Count(clients, "user=default") // those of the test
			require.NoError(t, f.Direct.ConfigSet(t.Context(), "maxclients", strconv.Itoa(own+few)).Err())
			f.Proxy.CutAll()
			start := time.Now()
			f.Log.Wait(t, "done", 2)
			measured(t, "N7", fmt.Sprintf("jobs of 8 s were done with %d connections left", few), time.Since(start))
			require.Empty(t, f.Log.Of("lost"))
			require.NoError(t, f.Direct.ConfigSet(t.Context(), "maxclients", "1000").Err())
			back := time.Now()
			f.put(t, "q", 1)
			f.Log.Wait(t, "started", 3)
			measured(t, "N7", "a job started once the server took connections again", time.Since(back))
			redistest.Eventually(t, "the worker is healthy", func(context.Context) bool { return w.Healthy() == nil })
			f.Log.Wait(t, "done", 3)
			require.NoError(t, stop())
			require.Equal(t, pawl.Counters{Enqueued: 3, Started: 3, Done: 3}, f.Total(t, "q"))
		})
	}
}
