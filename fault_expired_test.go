package pawl_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// amount is a number from the environment: a row is small unless it says so.
func amount(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	require.Positive(t, n, name)
	return n
}

// bereaved is a queue all of whose jobs were held by one worker when it was killed.
func bereaved(t *testing.T, jobs int, visibility time.Duration, opts ...pawl.Option) *faulty {
	t.Helper()
	f := behindProxy(t, redistest.Start(t), 0)
	f.put(t, "q", jobs, opts...)
	p := victim{Addr: f.Server.Addr(), Queue: "q", Visibility: visibility, Concurrency: jobs, Do: "heed", Silent: true}.run(t)
	redistest.Eventually(t, "it holds them all", func(ctx context.Context) bool {
		s, err := f.past.Queue("q").Stats(ctx)
		return err == nil && s.Running == int64(jobs)
	})
	p.kill()
	return f
}

// W8. The leases of a killed worker run out all at once, with several workers
// there: each job is moved once. PAWL_FAULT_EXPIRED says how many.
func TestManyExpiredLeasesAreEachMovedOnce(t *testing.T) {
	t.Parallel()
	jobs, visibility := amount(t, "PAWL_FAULT_EXPIRED", 1000), 4*time.Second
	f := bereaved(t, jobs, visibility)
	start := time.Now()
	var handled runs
	var stops []func() error
	for range 4 {
		w, err := pawl.NewWorker(f.pastWithLog(t), pawl.WorkerConfig{Queues: pawl.Queues("q"), Concurrency: 50, VisibilityTimeout: time.Minute})
		require.NoError(t, err)
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			handled.add(job.Args.N)
			return nil
		})
		stops = append(stops, f.Start(w))
	}
	f.Log.Wait(t, "done", 1)
	measured(t, "W8", "the first of the expired jobs was done", time.Since(start))
	f.Log.Wait(t, "done", jobs)
	measured(t, "W8", fmt.Sprintf("the last of %d expired jobs was done", jobs), time.Since(start))
	for _, stop := range stops {
		require.NoError(t, stop())
	}
	handled.each(t, jobs, 1)
	n := int64(jobs)
	require.Equal(t, pawl.Counters{Enqueued: n, Started: 2 * n, Crashed: n, Done: n}, f.run(t, "q"))
}

// W8. The next crash of each would be its last, so that a worker takes one at a
// time: while it runs, everything else goes past the others.
func TestNothingStarvesBehindJobsThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	const suspects, visibility = 200, 2 * time.Second
	f := bereaved(t, suspects, visibility, pawl.MaxCrashes(2))
	var running, handled atomic.Int64
	var together atomic.Bool
	free := make(chan struct{})
	for range 2 {
		var mine atomic.Int64
		w, err := pawl.NewWorker(f.pastWithLog(t), pawl.WorkerConfig{Queues: pawl.Queues("q"), VisibilityTimeout: time.Minute})
		require.NoError(t, err)
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			if job.Crashes == 0 {
				return nil
			}
			handled.Add(1)
			running.Add(1)
			if mine.Add(1) > 1 {
				together.Store(true)
			}
			<-free
			mine.Add(-1)
			running.Add(-1)
			return nil
		})
		f.Start(w)
	}
	redistest.Eventually(t, "each worker runs one of them", func(context.Context) bool { return running.Load() == 2 })
	start := time.Now()
	const others = 30
	f.put(t, "q", others)
	f.put(t, "q", others, pawl.Priority(5))
	f.put(t, "q", others, pawl.Delay(500*time.Millisecond))
	f.Log.Wait(t, "done", 3*others)
	measured(t, "W8", "90 jobs went past 198 that could not be taken", time.Since(start))
	require.EqualValues(t, 2, handled.Load())
	close(free)
	f.Log.Wait(t, "done", 3*others+suspects)
	measured(t, "W8", "200 jobs that run one at a time were done", time.Since(start))
	require.EqualValues(t, suspects, handled.Load())
	require.False(t, together.Load(), "two of them in one worker")
	require.EqualValues(t, suspects, f.Total(t, "q").Crashed)
}
