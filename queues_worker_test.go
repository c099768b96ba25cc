package pawl_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// tally counts what runs and what ran, by queue.
type tally struct {
	mu            sync.Mutex
	running, most map[string]int
	order         []string
}

func (y *tally) handle(took time.Duration) func(context.Context, *pawl.Job[note]) error {
	y.running, y.most = map[string]int{}, map[string]int{}
	return func(_ context.Context, job *pawl.Job[note]) error {
		y.mu.Lock()
		y.running[job.Queue]++
		y.most[job.Queue] = max(y.most[job.Queue], y.running[job.Queue])
		y.most["unreserved"] = max(y.most["unreserved"], y.running["exports"]+y.running["mail"])
		y.order = append(y.order, job.Queue)
		y.mu.Unlock()
		<-time.After(took)
		y.mu.Lock()
		y.running[job.Queue]--
		y.mu.Unlock()
		return nil
	}
}

func (y *tally) count(n int) map[string]int {
	counts := map[string]int{}
	for _, q := range y.order[:n] {
		counts[q]++
	}
	return counts
}

func fill(t *testing.T, e *env, n int, queues ...string) {
	t.Helper()
	for _, name := range queues {
		args := make([]note, n)
		for i := range args {
			args[i].N = i
		}
		_, err := e.Queue(name).EnqueueMany(t.Context(), pawl.Items(args))
		require.NoError(t, err)
	}
}

func TestQueuesShareTheSlotsByWeight(t *testing.T) {
	t.Parallel()
	for name, slots := range map[string]int{"one slot": 1, "eight slots": 8} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				fill(t, e, 200, "high", "low")
				w := e.Worker("", pawl.WorkerConfig{Concurrency: slots, Queues: pawl.Weights(map[string]int{"high": 3, "low": 1})})
				var y tally
				pawl.Handle(w, y.handle(time.Second))
				e.Run(w, "done", 200)
				counts := y.count(160)
				require.InDelta(t, 120, counts["high"], 24, "%v", counts)
			})
		})
	}
}

func TestStrictServesALaterQueueOnlyWhenTheFirstIsEmpty(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		fill(t, e, 40, "first", "second", "third")
		w := e.Worker("", pawl.WorkerConfig{Concurrency: 4, Strict: true, Queues: pawl.Queues("first", "second", "third")})
		var y tally
		pawl.Handle(w, y.handle(time.Second))
		e.Run(w, "done", 120)
		require.Equal(t, map[string]int{"first": 40}, y.count(40))
		require.Equal(t, map[string]int{"first": 40, "second": 40}, y.count(80))
	})
}

func TestMaxAndReserveAreKept(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		fill(t, e, 60, "exports", "mail")
		w := e.Worker("", pawl.WorkerConfig{Concurrency: 10, Queues: []pawl.WorkerQueue{
			{Name: "exports", Max: 3}, {Name: "mail"}, {Name: "urgent", Reserve: 2}}})
		var y tally
		pawl.Handle(w, y.handle(time.Second))
		stop := e.Start(w)
		e.Pass(1500 * time.Millisecond)
		before := time.Now()
		_, err := e.Queue("urgent").Enqueue(t.Context(), note{})
		require.NoError(t, err)
		e.Log.Wait(t, "done", 121)
		require.NoError(t, stop())
		for _, ev := range e.Log.Of("started") {
			if ev.Job.Queue == "urgent" {
				require.Less(t, ev.Job.DueAt.Sub(before)+ev.Wait, 10*time.Millisecond, "a reserved slot was free")
			}
		}
		require.Equal(t, 3, y.most["exports"])
		require.Equal(t, 8, y.most["unreserved"])
	})
}

func TestNoMoreThanConcurrencyRunAtOnceAndNoneWaitsLeased(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		fill(t, e, 50, "a")
		w := e.Worker("a", pawl.WorkerConfig{Concurrency: 4})
		var y tally
		pawl.Handle(w, y.handle(time.Second))
		stop := e.Start(w)
		for range 10 {
			e.Pass(time.Second)
			s, err := e.Queue("a").Stats(t.Context())
			require.NoError(t, err)
			require.LessOrEqual(t, s.Running, int64(4))
		}
		e.Log.Wait(t, "done", 50)
		require.NoError(t, stop())
		require.Equal(t, 4, y.most["a"])
	})
}

// W8.
func TestABacklogOfSuspectsRunsOneAtATimeWithoutPauses(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		const jobs = 20
		fill(t, e, jobs, "a")
		// As if two workers had died with all of them.
		ctx := t.Context()
		for _, entry := range e.Redis.XRange(ctx, "pawl:{a}:jobs", "-", "+").Val() {
			require.NoError(t, e.Redis.ZAdd(ctx, "pawl:{a}:leases", redis.Z{Score: 1000, Member: entry.ID}).Err())
			require.NoError(t, e.Redis.HSet(ctx, "pawl:{a}:runs", entry.ID, "1-x|1||").Err())
			require.NoError(t, e.Redis.HSet(ctx, "pawl:{a}:meta", "cursor", entry.ID).Err())
		}
		w := e.Worker("a", pawl.WorkerConfig{})
		var y tally
		pawl.Handle(w, y.handle(time.Second))
		start := time.Now()
		e.Run(w, "done", jobs)
		require.Equal(t, 1, y.most["a"])
		require.Less(t, time.Since(start), (jobs+2)*time.Second)
	})
}

func TestOneQueueInTroubleDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		w := e.Worker("", pawl.WorkerConfig{Queues: pawl.Queues("good", "bad")})
		require.NoError(t, e.Redis.Set(t.Context(), "pawl:{bad}:due", "not a sorted set", 0).Err())
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		stop := e.Start(w)
		e.Log.Wait(t, "outage", 1)
		require.ErrorContains(t, w.Healthy(), "bad")
		for i := range 5 {
			before := time.Now()
			_, err := e.Queue("good").Enqueue(t.Context(), note{i})
			require.NoError(t, err)
			e.Log.Wait(t, "done", i+1)
			require.Less(t, time.Since(before), time.Second)
			e.Pass(time.Minute)
		}
		require.NoError(t, e.Redis.Del(t.Context(), "pawl:{bad}:due").Err())
		e.Log.Wait(t, "back", 1)
		require.NoError(t, w.Healthy())
		require.NoError(t, stop())
		require.Len(t, e.Log.Of("outage"), 1, "one report an outage")
	})
}

// A token may be lost with the worker that took it.
func TestALostTokenCostsTheBlockingTimeThoughAnotherQueueIsBusy(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		w := e.Worker("", pawl.WorkerConfig{Queues: pawl.Queues("busy", "quiet")})
		var y tally
		pawl.Handle(w, y.handle(time.Millisecond))
		stop := e.Start(w)
		fill(t, e, 1, "elsewhere")
		for _, entry := range e.Redis.XRange(t.Context(), "pawl:{elsewhere}:jobs", "-", "+").Val() {
			e.Pass(time.Second)
			require.NoError(t, e.Redis.XAdd(t.Context(), &redis.XAddArgs{Stream: "pawl:{quiet}:jobs", ID: entry.ID, Values: entry.Values}).Err())
		}
		for range 20 {
			fill(t, e, 1, "busy")
			e.Pass(time.Second)
		}
		require.NoError(t, stop())
		require.Contains(t, y.count(20), "quiet")
	})
}
