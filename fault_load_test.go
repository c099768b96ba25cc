package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// wholeSize is the variable that has the tests of faults take the sizes of the
// rows themselves, where those are too long for every day.
const wholeSize = "PAWL_FAULTS_WHOLE"

// sized is daily, or whole where all of the row is asked for.
func sized[T any](daily, whole T) T {
	if os.Getenv(wholeSize) != "" {
		return whole
	}
	return daily
}

// load is producers that enqueue notes into a queue, one at a time, until it is
// told to stop, and workers that run them.
type load struct {
	e       *env
	handled runs
	workers []*pawl.Worker
	stops   []func() error

	stopping context.Context
	stop     context.CancelFunc
	running  sync.WaitGroup
	mu       sync.Mutex
	acked    map[int]pawl.ID
	errs     []error
	longest  time.Duration
}

// load starts two producers and two workers, each of a client that other gives.
// Every fifth job fails once, every seventh has a unique key and a delay.
func (e *env) load(queue string, visibility time.Duration, other func() *pawl.Client) *load {
	e.t.Helper()
	l := &load{e: e, acked: map[int]pawl.ID{}}
	l.stopping, l.stop = context.WithCancel(context.Background())
	e.t.Cleanup(func() { l.stop(); l.running.Wait() })
	for range 2 {
		e.Queue(queue)
		w, err := pawl.NewWorker(other(), pawl.WorkerConfig{Queues: pawl.Queues(queue), VisibilityTimeout: visibility,
			Backoff: pawl.Backoff{Base: 10 * time.Millisecond, Jitter: pawl.JitterNone}})
		require.NoError(e.t, err)
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			if l.handled.add(job.Args.N) == 1 && job.Args.N%5 == 0 {
				return errors.New("the first attempt fails")
			}
			<-time.After(time.Millisecond)
			return nil
		})
		l.workers = append(l.workers, w)
		l.stops = append(l.stops, e.Start(w))
	}
	for p := range 2 {
		q := other().Queue(queue)
		l.running.Go(func() {
			for n := p; l.stopping.Err() == nil; n += 2 {
				l.enqueue(q, n)
			}
		})
	}
	return l
}

// same is a client on the connections of all others of the env.
func (e *env) same() *pawl.Client { return e.NewClient(pawl.Config{}) }

// patience is how long a producer of a load waits for one answer.
const patience = 15 * time.Second

func (l *load) enqueue(q *pawl.Queue, n int) {
	<-time.After(5 * time.Millisecond)
	var opts []pawl.Option
	if n%7 == 0 { // some of them are always there
		opts = append(opts, pawl.Unique{Key: fmt.Sprint(n)}, pawl.Delay(time.Second))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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
	l.e.t.Helper()
	before := l.Acked()
	redistest.Eventually(l.e.t, "more is enqueued", func(context.Context) bool { return l.Acked() >= before+n })
	l.e.Log.Wait(l.e.t, "done", len(l.e.Log.Of("done"))+n)
}

// end stops the producers, waits until nothing is left to do, stops the workers
// and tells what was counted.
func (l *load) end(queue string) pawl.Counters {
	t := l.e.t
	t.Helper()
	l.stop()
	l.running.Wait()
	q := l.e.Queue(queue)
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
		len(l.acked), l.longest, len(l.e.Log.Of("outage")), len(l.e.Log.Of("lost")))
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
	require.LessOrEqual(t, again, len(l.e.Log.Of("lost"))+int(total.Crashed))
	require.Len(t, l.handled.of, len(l.acked), "nothing ran that was not enqueued")
	require.EqualValues(t, len(l.acked), total.Enqueued)
	require.EqualValues(t, len(l.acked), total.Done)
	require.Zero(t, total.Dead+total.Lost+total.Healed)
}

// once is clean of a load whose jobs each ran as often as they should: what had
// finished did not run again.
func (l *load) once(t *testing.T, total pawl.Counters) {
	t.Helper()
	l.clean(t, total)
	require.Zero(t, total.Crashed)
	for n, times := range l.handled.of {
		want := 1
		if n%5 == 0 {
			want = 2
		}
		require.Equal(t, want, times, "note %d", n)
	}
	require.Empty(t, l.e.Log.Of("lost"))
}

// well returns when all workers say that they are.
func (l *load) well() {
	l.e.t.Helper()
	redistest.Eventually(l.e.t, "the workers are well", func(context.Context) bool {
		for _, w := range l.workers {
			if w.Healthy() != nil {
				return false
			}
		}
		return true
	})
}
