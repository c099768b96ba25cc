package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// The call that asks for an idempotency key is lost, at each point of its way: it
// is asked again, the job runs once, and its attempt is the first.
func TestAClaimThatIsLostIsAskedAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for name, fault := range map[string]redistest.Fault{
		"before it ran": redistest.Drop, "with its reply": redistest.RunDropReply, "by a reset": redistest.RunReset,
		"with half of its reply": redistest.HalfReply, "by a refusal": redistest.Refuse("LOADING Redis is loading the dataset in memory"),
		"by a script that is not known":  redistest.Refuse("NOSCRIPT No matching script"),
		"and comes when its job is over": redistest.Late,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := behindProxy(t, s, 0)
			q := freshQueue()
			f.put(t, q, 1, once(7))
			f.Proxy.On("claim", 1, fault)
			var handled runs
			w := f.Worker(q, pawl.WorkerConfig{})
			pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
				require.Equal(t, 1, job.Attempt)
				handled.add(job.Args.N)
				return nil
			})
			stop := f.Start(w)
			f.Log.Wait(t, "done", 1)
			for _, reply := range f.Proxy.Release() {
				require.Contains(t, reply, "l", "a claim that comes late finds no lease")
			}
			f.put(t, q, 1, once(7))
			f.Log.Wait(t, "skipped", 1)
			require.NoError(t, stop())
			handled.each(t, 1, 1)
			require.Equal(t, pawl.Counters{Enqueued: 2, Started: 2, Done: 2, Skipped: 1}, f.Total(t, q))
		})
	}
}

// A claim without an answer holds up its job alone: what has no key, or comes
// after it, runs.
func TestAClaimThatHangsHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 30*time.Second)
	f.Proxy.On("claim", 1, redistest.Stall(3*time.Second))
	f.put(t, "q", 1, once(1))
	w := f.Worker("q", pawl.WorkerConfig{Concurrency: 4})
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
	stop := f.Start(w)
	<-f.Proxy.Seen("claim", 1)
	began := time.Now()
	for n := range 10 {
		f.put(t, "q", 1, once(2+n))
		f.put(t, "q", 1)
	}
	f.Log.Wait(t, "done", 20)
	require.Less(t, time.Since(began), 2500*time.Millisecond, "they waited for another's claim")
	f.Log.Wait(t, "done", 21)
	require.NoError(t, stop())
}

// Redis goes while a key is asked for, for longer than the lease: the handler is
// not called, Healthy says so, and the job runs once Redis is back, no attempt
// spent and no crash counted.
func TestAnOutageDuringAClaimCallsNoHandler(t *testing.T) {
	t.Parallel()
	const visibility = 500 * time.Millisecond
	f := behindProxy(t, redistest.Start(t), 200*time.Millisecond)
	f.put(t, "q", 1, once(7))
	for _, name := range []string{"claim", "extend", "release"} {
		f.Proxy.On(name, 0, redistest.Drop)
	}
	w := f.Worker("q", pawl.WorkerConfig{VisibilityTimeout: visibility})
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		if job.Attempt != 1 {
			return fmt.Errorf("attempt %d", job.Attempt)
		}
		return nil
	})
	stop := f.Start(w)
	f.Log.Wait(t, "lost", 1)
	require.Empty(t, f.Log.Of("started"))
	require.Error(t, w.Healthy())
	f.Proxy.Clear()
	f.Log.Wait(t, "done", 1)
	redistest.Eventually(t, "the worker is well", func(context.Context) bool { return w.Healthy() == nil })
	require.NoError(t, stop())
	require.Len(t, f.Log.Of("started"), 1)
	require.Len(t, f.Log.Of("outage"), 1, "one outage, though it had three parts")
	require.EqualValues(t, 1, f.Total(t, "q").Done)
	require.Zero(t, f.Total(t, "q").Failed)
}

// A worker that stops while Redis does not answer its claim gives the job back.
func TestAWorkerStopsWhileItWaitsForAClaim(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 200*time.Millisecond)
	job := f.put(t, "q", 1, once(7), pawl.MaxAttempts(1), pawl.MaxCrashes(1))[0]
	f.Proxy.On("claim", 0, redistest.RunDropReply) // it marks the key each time
	w := f.Worker("q", pawl.WorkerConfig{DrainTimeout: 500 * time.Millisecond})
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return errors.New("called") })
	stop := f.Start(w)
	f.Log.Wait(t, "outage", 1)
	began := time.Now()
	require.NoError(t, stop(), "nothing that ran was cut short")
	require.Less(t, time.Since(began), 5*time.Second)
	require.Len(t, f.Log.Of("released"), 1)
	require.Empty(t, f.Log.Of("started"))
	f.Proxy.Clear()

	second := f.Worker("q", pawl.WorkerConfig{})
	pawl.Handle(second, func(context.Context, *pawl.Job[note]) error { return nil })
	require.Equal(t, job.ID, f.Run(second, "done", 1)[0].Job.ID)
	require.Zero(t, f.Total(t, "q").Crashed)
}

// The reply to a settle is lost: it is sent again, and neither the job nor its
// duplicate runs.
func TestASettleWhoseReplyIsLostLeavesItsKeyDone(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	f.Proxy.On("settle", 1, redistest.RunDropReply)
	w := f.Worker("q", pawl.WorkerConfig{})
	var handled runs
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error { handled.add(job.Args.N); return nil })
	stop := f.Start(w)
	f.put(t, "q", 1, once(7))
	f.Log.Wait(t, "done", 1)
	f.put(t, "q", 1, once(7))
	f.Log.Wait(t, "skipped", 1)
	require.NoError(t, stop())
	handled.each(t, 1, 1)
}

// A handler that outlives its lease and is leased its own job again goes on, and
// the key stays its own meanwhile.
func TestARunThatIsLeasedAgainKeepsItsKey(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		first := put(t, q, 1, once(7))
		w := e.Worker("q", pawl.WorkerConfig{})
		let := make(chan struct{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { <-let; return nil })
		stop := e.Start(w)
		e.Log.Wait(t, "started", 1)
		lease := e.Redis.ZRange(t.Context(), "pawl:{q}:leases", 0, 0).Val()[0]
		require.NoError(t, e.Redis.ZAdd(t.Context(), "pawl:{q}:leases", redis.Z{Score: 1, Member: lease}).Err())
		redistest.Eventually(t, "its job is leased again", func(ctx context.Context) bool {
			put(t, q, 1, once(8)) // or the worker looks only every few seconds
			s, err := q.Stats(ctx)
			return err == nil && s.Total.Crashed > 0
		})
		second := put(t, q, 1, once(7))
		e.Log.Wait(t, "snoozed", 2)
		close(let)
		redistest.Eventually(t, "the second one is skipped", func(context.Context) bool {
			return slices.ContainsFunc(e.Log.Of("skipped"), func(s pawl.Event) bool { return s.Job.ID == second })
		})
		require.NoError(t, stop())
		require.Equal(t, first, e.Log.Of("started")[0].Job.ID)
		for _, s := range e.Log.Of("started")[1:] {
			require.NotEqual(t, second, s.Job.ID)
			require.NotEqual(t, first, s.Job.ID)
		}
	})
}

// Two workers, many jobs, few keys: of each key no two run at a time, and one is
// done.
func TestOneJobOfAKeyIsDoneByTwoWorkers(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		const keys, copies = 20, 5
		q := e.Queue("pay")
		var items []pawl.Item
		for n := range keys * copies {
			items = append(items, pawl.Item{Args: note{n % keys}, Options: []pawl.Option{once(n % keys)}})
		}
		_, err := q.EnqueueMany(t.Context(), items)
		require.NoError(t, err)
		var mu sync.Mutex
		running, done, failed := map[int]bool{}, map[int]int{}, map[int]bool{}
		for range 2 {
			w := e.Worker("pay", pawl.WorkerConfig{Concurrency: 8, Backoff: pawl.Backoff{Base: time.Millisecond, Jitter: pawl.JitterNone}})
			pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
				n := job.Args.N
				mu.Lock()
				if running[n] {
					t.Errorf("two jobs of key %d run at a time", n)
				}
				running[n] = true
				fail := !failed[n]
				failed[n] = true
				mu.Unlock()
				<-time.After(5 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				running[n] = false
				if fail {
					return errors.New("the first of each")
				}
				done[n]++
				return nil
			})
			e.Start(w)
		}
		e.Log.Wait(t, "done", keys)
		e.Log.Wait(t, "skipped", keys*(copies-1))
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, done, keys)
		for n, times := range done {
			require.Equal(t, 1, times, "key %d", n)
		}
		require.Len(t, e.Log.Of("retry"), keys)
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, keys*copies, s.Total.Done)
		require.EqualValues(t, keys*(copies-1), s.Total.Skipped)
	})
}

// E2. A full Redis is drained of jobs that have keys too.
func TestAFullRedisIsDrainedOfJobsWithKeys(t *testing.T) {
	t.Parallel()
	e := newEnv(t, redistest.Start(t).Client(t), nil)
	const n = 200
	q := e.Queue("pay")
	for i := range n {
		put(t, q, i, once(i%(n/2)))
	}
	require.NoError(t, e.Redis.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err := q.Enqueue(t.Context(), note{1}, once(1))
	require.ErrorIs(t, err, pawl.ErrFull)
	w := e.Worker("pay", pawl.WorkerConfig{Concurrency: 20})
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
	stop := e.Start(w)
	e.Log.Wait(t, "done", n/2)
	e.Log.Wait(t, "skipped", n/2)
	require.NoError(t, stop())
}
