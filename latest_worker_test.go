package pawl_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// ReplaceWaiting and RunLatestAfter, as those see them who enqueue and who handle.

// gate is a handler whose first run waits until it is let go, with an outcome.
type gate struct {
	mu      sync.Mutex
	ran     []int
	started chan pawl.ID
	outcome chan error
}

func newGate() *gate { return &gate{started: make(chan pawl.ID, 1), outcome: make(chan error, 1)} }

func (g *gate) handle(ctx context.Context, job *pawl.Job[note]) error {
	g.mu.Lock()
	g.ran = append(g.ran, job.Args.N)
	first := len(g.ran) == 1
	g.mu.Unlock()
	if !first {
		return nil
	}
	g.started <- job.ID
	select {
	case err := <-g.outcome:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *gate) runs() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]int(nil), g.ran...)
}

var sync1 = pawl.Unique{Key: "sync:1", OnDuplicate: pawl.RunLatestAfter}

// push enqueues a note under the key of sync1.
func push(t *testing.T, q *pawl.Queue, n int, opts ...pawl.Option) pawl.Enqueued {
	t.Helper()
	got, err := q.Enqueue(t.Context(), note{n}, append(opts, sync1)...)
	require.NoError(t, err)
	return got
}

// While one runs, only the newest of those that come runs after it, at each end of it.
func TestTheLatestRunsAfterTheRunningOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcome error
		end     func(t *testing.T, q *pawl.Queue, id pawl.ID) error
		event   string
	}{
		"is done":          {nil, nil, "done"},
		"dies":             {pawl.Permanent(errors.New("no")), nil, "dead"},
		"is discarded":     {pawl.Discard(errors.New("no")), nil, "discarded"},
		"fails":            {errors.New("no"), nil, "discarded"},
		"snoozes":          {pawl.Snooze(time.Hour), nil, "discarded"},
		"has to try later": {pawl.RetryAfter(time.Hour, errors.New("no")), nil, "discarded"},
		"is cancelled": {nil, func(t *testing.T, q *pawl.Queue, id pawl.ID) error {
			return q.Cancel(t.Context(), id)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contract(t, func(t *testing.T, e *env) {
				q, g := e.Queue("mail"), newGate()
				w := e.Worker("mail", pawl.WorkerConfig{VisibilityTimeout: 3 * time.Second})
				pawl.Handle(w, g.handle)
				first := push(t, q, 1)
				stop := e.Start(w)
				require.Equal(t, first.ID, <-g.started)
				second, third, fourth := push(t, q, 2), push(t, q, 3), push(t, q, 4)
				require.Equal(t, pawl.Enqueued{ID: second.ID, Queue: "mail"}, second, "it was added")
				require.Equal(t, pawl.Enqueued{ID: second.ID, Queue: "mail", Duplicate: true, Replaced: true}, third)
				require.Equal(t, third, fourth)
				info, err := q.Get(t.Context(), second.ID)
				require.NoError(t, err)
				require.Equal(t, pawl.StateParked, info.State)
				require.WithinDuration(t, info.EnqueuedAt, info.DueAt, time.Minute)
				require.ErrorIs(t, q.RunNow(t.Context(), second.ID), pawl.ErrState)

				if c.end != nil {
					require.NoError(t, c.end(t, q, first.ID))
				} else {
					g.outcome <- c.outcome
				}
				want := 1
				if c.event == "done" {
					want = 2
				} else if c.event != "" {
					e.Log.Wait(t, c.event, 1)
				}
				done := e.Log.Wait(t, "done", want)
				require.Equal(t, second.ID, done[want-1].Job.ID)
				require.NoError(t, stop())
				require.Equal(t, []int{1, 4}, g.runs())
				s, err := q.Stats(t.Context())
				require.NoError(t, err)
				require.Zero(t, s.Depth()+s.Running)
				require.EqualValues(t, 2, s.Total.Enqueued)
				require.EqualValues(t, 2, s.Total.Duplicate)
				require.EqualValues(t, 2, s.Total.Done+s.Total.Discarded+s.Total.Cancelled+s.Total.Dead)
				require.Zero(t, s.Total.Retried+s.Total.Snoozed)
				if name == "fails" {
					require.EqualValues(t, 1, s.Total.Failed)
					require.EqualError(t, e.Log.Of("discarded")[0].Err, "no")
				}
				require.Zero(t, e.Redis.Exists(t.Context(), "pawl:{mail}:unique:sync:1").Val())
			})
		})
	}
}

// A run that a shutdown cut short comes again, and the newest one after it.
func TestAShutdownIsNoEndForTheOneBehind(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, g := e.Queue("mail"), newGate()
		push(t, q, 1)
		w := e.Worker("mail", pawl.WorkerConfig{DrainTimeout: time.Millisecond})
		pawl.Handle(w, g.handle)
		stop := e.Start(w)
		<-g.started
		push(t, q, 2)
		require.Error(t, stop(), "it was released")
		push(t, q, 3)
		w = e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, g.handle)
		e.Run(w, "done", 2)
		require.Equal(t, []int{1, 1, 3}, g.runs())
	})
}

// A crash is none either. The lease runs out, and the job comes again.
func TestACrashIsNoEndForTheOneBehind(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, g := e.Queue("mail"), newGate()
		first := push(t, q, 1)
		w := e.Worker("mail", pawl.WorkerConfig{VisibilityTimeout: 3 * time.Second})
		pawl.Handle(w, g.handle)
		stop := e.Start(w)
		<-g.started
		second := push(t, q, 2)
		// As if its worker had died: the lease is over, and another takes it.
		ids := e.Redis.ZRange(t.Context(), "pawl:{mail}:leases", 0, -1).Val()
		require.Len(t, ids, 1)
		g.outcome <- errors.New("never heard")
		e.Redis.HSet(t.Context(), "pawl:{mail}:runs", ids[0], "1-another|0||")
		e.Redis.ZAdd(t.Context(), "pawl:{mail}:leases", redis.Z{Score: float64(time.Now().Add(time.Second).UnixMilli()), Member: ids[0]})
		e.Pass(500 * time.Millisecond)
		info, err := q.Get(t.Context(), second.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.StateParked, info.State)
		done := e.Log.Wait(t, "done", 2)
		require.Equal(t, []pawl.ID{first.ID, second.ID}, []pawl.ID{done[0].Job.ID, done[1].Job.ID})
		require.NoError(t, stop())
		require.Equal(t, []int{1, 1, 2}, g.runs())
	})
}

// The holder vanishes without an end: a worker finds who waits behind nothing.
func TestAWorkerLetsGoWhatWaitsBehindNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, g := e.Queue("mail"), newGate()
		push(t, q, 1)
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, g.handle)
		stop := e.Start(w)
		<-g.started
		second := push(t, q, 2)
		for _, key := range []string{"jobs", "leases", "runs"} {
			require.NoError(t, e.Redis.Del(t.Context(), "pawl:{mail}:"+key).Err())
		}
		g.outcome <- nil
		e.Pass(time.Second)
		found, err := q.Check(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, found)
		start := time.Now()
		done := e.Log.Wait(t, "done", 1)
		require.Equal(t, second.ID, done[0].Job.ID)
		require.Less(t, time.Since(start), 2*time.Minute+10*time.Second)
		require.NoError(t, stop())
		require.Equal(t, []int{1, 2}, g.runs())
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Total.Healed)
	})
}

// Debounce: each enqueue puts the one job off, and the last one's arguments run.
func TestADelayThatIsReplacedIsADebounce(t *testing.T) {
	t.Parallel()
	for _, mode := range []pawl.OnDuplicate{pawl.ReplaceWaiting, pawl.RunLatestAfter} {
		bubble(t, func(t *testing.T, e *env) {
			q, g := e.Queue("mail"), newGate()
			g.outcome <- nil
			w := e.Worker("mail", pawl.WorkerConfig{})
			pawl.Handle(w, g.handle)
			e.Start(w)
			quiet := pawl.Unique{Key: "k", OnDuplicate: mode}
			var id pawl.ID
			for i := range 5 {
				got, err := q.Enqueue(t.Context(), note{i}, quiet, pawl.Delay(10*time.Second))
				require.NoError(t, err)
				require.Equal(t, i > 0, got.Replaced)
				if i > 0 {
					require.Equal(t, id, got.ID)
				}
				id = got.ID
				e.Pass(9 * time.Second)
			}
			require.Empty(t, g.runs())
			last := time.Now()
			done := e.Log.Wait(t, "done", 1)
			require.Equal(t, id, done[0].Job.ID)
			require.Equal(t, []int{4}, g.runs())
			require.WithinDuration(t, last.Add(time.Second), time.Now(), 100*time.Millisecond)
			require.Less(t, done[0].Wait, time.Second, "since it was due")
		})
	}
}

// A running job wins over ReplaceWaiting; one that waits for its retry is replaced.
func TestAReplacementOfWhatRunsAndOfWhatFailed(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, g := e.Queue("mail"), newGate()
		replace := pawl.Unique{Key: "k", OnDuplicate: pawl.ReplaceWaiting}
		first, err := q.Enqueue(t.Context(), note{1}, replace, pawl.MaxAttempts(2))
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, g.handle)
		stop := e.Start(w)
		<-g.started
		again, err := q.Enqueue(t.Context(), note{2}, replace)
		require.NoError(t, err)
		require.Equal(t, pawl.Enqueued{ID: first.ID, Queue: "mail", Duplicate: true}, again)
		g.outcome <- pawl.RetryAfter(time.Hour, errors.New("no"))
		e.Log.Wait(t, "retry", 1)
		again, err = q.Enqueue(t.Context(), note{3}, replace, pawl.MaxAttempts(7))
		require.NoError(t, err)
		require.Equal(t, pawl.Enqueued{ID: first.ID, Queue: "mail", Duplicate: true, Replaced: true}, again)
		done := e.Log.Wait(t, "done", 1)
		require.NoError(t, stop())
		require.Equal(t, []int{1, 3}, g.runs())
		job := done[0].Job
		require.Equal(t, first.ID, job.ID)
		require.Equal(t, 1, job.Attempt, "it is a new task")
		require.Equal(t, 7, job.MaxAttempts)
		require.Empty(t, job.LastError)
	})
}

// ExpireIn counts from when the id was made, and is looked at on lease, as ever.
func TestAParkedJobMayExpire(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, g := e.Queue("mail"), newGate()
		push(t, q, 1)
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, g.handle)
		stop := e.Start(w)
		<-g.started
		second := push(t, q, 2, pawl.ExpireIn(time.Minute))
		e.Pass(2 * time.Minute)
		g.outcome <- nil
		dead := e.Log.Wait(t, "dead", 1)
		require.Equal(t, second.ID, dead[0].Job.ID)
		require.NoError(t, stop())
		job, err := q.Dead().Get(t.Context(), second.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.ReasonExpired, job.Reason)
	})
}

func TestParkedJobsAreListedPurgedAndDestroyed(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, g := e.Queue("mail"), newGate()
		push(t, q, 1)
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, g.handle)
		stop := e.Start(w)
		<-g.started
		second := push(t, q, 2)
		for job, err := range q.List(t.Context(), pawl.StateParked, pawl.Filter{}) {
			require.NoError(t, err)
			require.Equal(t, second.ID, job.ID)
			require.Equal(t, pawl.StateParked, job.State)
		}
		n, err := q.Purge(t.Context(), pawl.StateDelayed, pawl.Filter{})
		require.NoError(t, err)
		require.Zero(t, n)
		n, err = q.Purge(t.Context(), pawl.StateParked, pawl.Filter{})
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		_, err = q.Get(t.Context(), second.ID)
		require.ErrorIs(t, err, pawl.ErrNotFound)
		third := push(t, q, 3)
		require.NotEqual(t, second.ID, third.ID)
		require.NoError(t, q.Cancel(t.Context(), third.ID))
		fourth := push(t, q, 4)
		require.ErrorIs(t, q.Reschedule(t.Context(), fourth.ID, time.Now().Add(time.Hour)), pawl.ErrState)
		require.ErrorIs(t, q.Destroy(t.Context()), pawl.ErrState, "one runs")
		g.outcome <- nil
		e.Log.Wait(t, "done", 2)
		require.NoError(t, stop())
		require.Equal(t, []int{1, 4}, g.runs())
		require.NoError(t, q.Destroy(t.Context()))
		require.Empty(t, e.Redis.Keys(t.Context(), "pawl:{mail}:unique:*").Val())
	})
}

func TestOfManyItemsTheLastOfAKeyRuns(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		items := pawl.Items([]note{{1}, {2}, {3}}, sync1)
		got, err := q.EnqueueMany(t.Context(), items)
		require.NoError(t, err)
		require.False(t, got[0].Duplicate)
		for _, g := range got[1:] {
			require.Equal(t, pawl.Enqueued{ID: got[0].ID, Queue: "mail", Duplicate: true, Replaced: true}, g)
		}
		g := newGate()
		g.outcome <- nil
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, g.handle)
		e.Run(w, "done", 1)
		require.Equal(t, []int{3}, g.runs())
	})
}
