package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// control is a call about jobs that wait or are dead, three of them, and what is
// to come of it however often it arrives.
type control struct {
	script string
	state  pawl.State
	call   func(t *testing.T, ctx context.Context, q *pawl.Queue, ids []pawl.ID)
	// newer undoes it or does something else in its lane: a late packet of the
	// call must change none of that.
	newer func(t *testing.T, ctx context.Context, q *pawl.Queue, ids []pawl.ID)
	want  pawl.Stats // but OldestReady
}

// enqueuedThree and diedThree are the counters before the call.
var (
	enqueuedThree = pawl.Counters{Enqueued: 3}
	diedThree     = pawl.Counters{Enqueued: 3, Started: 3, Failed: 3, Dead: 3}
)

func counted(c pawl.Counters, add func(*pawl.Counters)) pawl.Counters {
	add(&c)
	return c
}

func resume(t *testing.T, ctx context.Context, q *pawl.Queue, _ []pawl.ID) {
	t.Helper()
	require.NoError(t, q.Resume(ctx))
}

func pause(t *testing.T, ctx context.Context, q *pawl.Queue, _ []pawl.ID) {
	t.Helper()
	require.NoError(t, q.Pause(ctx, pawl.Forever))
}

var controls = map[string]control{
	"cancel": {"cancel", pawl.StateReady, func(t *testing.T, ctx context.Context, q *pawl.Queue, ids []pawl.ID) {
		require.NoError(t, q.Cancel(ctx, ids[0]))
	}, resume, pawl.Stats{Ready: 2, Total: counted(enqueuedThree, func(c *pawl.Counters) { c.Cancelled = 1 })}},

	"reschedule": {"reschedule", pawl.StateReady, func(t *testing.T, ctx context.Context, q *pawl.Queue, ids []pawl.ID) {
		require.NoError(t, q.Reschedule(ctx, ids[0], time.Now().Add(time.Hour)))
	}, resume, pawl.Stats{Ready: 2, Delayed: 1, Total: enqueuedThree}},

	"reschedule, and back": {"reschedule", pawl.StateReady, func(t *testing.T, ctx context.Context, q *pawl.Queue, ids []pawl.ID) {
		require.NoError(t, q.Reschedule(ctx, ids[0], time.Now().Add(time.Hour)))
	}, func(t *testing.T, ctx context.Context, q *pawl.Queue, ids []pawl.ID) {
		require.NoError(t, q.RunNow(ctx, ids[0]))
	}, pawl.Stats{Ready: 3, Total: enqueuedThree}},

	"run now, and back": {"reschedule", pawl.StateDelayed, func(t *testing.T, ctx context.Context, q *pawl.Queue, ids []pawl.ID) {
		require.NoError(t, q.RunNow(ctx, ids[0]))
	}, func(t *testing.T, ctx context.Context, q *pawl.Queue, ids []pawl.ID) {
		require.NoError(t, q.Reschedule(ctx, ids[0], time.Now().Add(time.Hour)))
	}, pawl.Stats{Delayed: 3, Total: enqueuedThree}},

	"pause, and resume": {"pause", pawl.StateReady, pause, resume, pawl.Stats{Ready: 3, Total: enqueuedThree}},
	"resume, and pause": {"pause", pawl.StateReady, resume, pause, pawl.Stats{Ready: 3, Paused: true, Total: enqueuedThree}},

	"purge of the ready": {"purge", pawl.StateReady, func(t *testing.T, ctx context.Context, q *pawl.Queue, _ []pawl.ID) {
		n, err := q.Purge(ctx, pawl.StateReady, pawl.Filter{})
		require.NoError(t, err)
		require.EqualValues(t, 3, n)
	}, resume, pawl.Stats{Total: counted(enqueuedThree, func(c *pawl.Counters) { c.Purged = 3 })}},

	"purge of the delayed": {"purge", pawl.StateDelayed, func(t *testing.T, ctx context.Context, q *pawl.Queue, _ []pawl.ID) {
		n, err := q.Purge(ctx, pawl.StateDelayed, pawl.Filter{})
		require.NoError(t, err)
		require.EqualValues(t, 3, n)
	}, resume, pawl.Stats{Total: counted(enqueuedThree, func(c *pawl.Counters) { c.Purged = 3 })}},

	"purge of the dead": {"delete", pawl.StateDead, func(t *testing.T, ctx context.Context, q *pawl.Queue, _ []pawl.ID) {
		n, err := q.Dead().Purge(ctx, pawl.DeadFilter{})
		require.NoError(t, err)
		require.Equal(t, 3, n)
	}, resume, pawl.Stats{Total: counted(diedThree, func(c *pawl.Counters) { c.Purged = 3 })}},

	"delete": {"delete", pawl.StateDead, func(t *testing.T, ctx context.Context, q *pawl.Queue, ids []pawl.ID) {
		n, err := q.Dead().Delete(ctx, ids[:2]...)
		require.NoError(t, err)
		require.Equal(t, 2, n)
	}, resume, pawl.Stats{Dead: 1, Total: counted(diedThree, func(c *pawl.Counters) { c.Purged = 2 })}},

	"redrive": {"redrive", pawl.StateDead, func(t *testing.T, ctx context.Context, q *pawl.Queue, ids []pawl.ID) {
		report, err := q.Dead().Redrive(ctx, ids[:2]...)
		require.NoError(t, err)
		require.Equal(t, pawl.RedriveReport{Matched: 2, Moved: 2}, report)
	}, resume, pawl.Stats{Ready: 2, Dead: 1, Total: counted(diedThree, func(c *pawl.Counters) { c.Redriven = 2 })}},

	"redrive of all, and purge": {"redrive", pawl.StateDead, func(t *testing.T, ctx context.Context, q *pawl.Queue, _ []pawl.ID) {
		report, err := q.Dead().RedriveAll(ctx, pawl.DeadFilter{}, pawl.Redrive{})
		require.NoError(t, err)
		require.Equal(t, pawl.RedriveReport{Matched: 3, Moved: 3}, report)
	}, func(t *testing.T, ctx context.Context, q *pawl.Queue, _ []pawl.ID) {
		n, err := q.Purge(ctx, pawl.StateReady, pawl.Filter{})
		require.NoError(t, err)
		require.EqualValues(t, 3, n)
	}, pawl.Stats{Total: counted(diedThree, func(c *pawl.Counters) { c.Redriven, c.Purged = 3, 3 })}},

	"redrive with repaired arguments": {"redrive", pawl.StateDead, func(t *testing.T, ctx context.Context, q *pawl.Queue, ids []pawl.ID) {
		require.NoError(t, q.Dead().RedriveWith(ctx, ids[0], note{7}))
	}, resume, pawl.Stats{Ready: 1, Dead: 2, Total: counted(diedThree, func(c *pawl.Counters) { c.Redriven = 1 })}},

	"destroy": {"destroy", pawl.StateReady, func(t *testing.T, ctx context.Context, q *pawl.Queue, _ []pawl.ID) {
		require.NoError(t, q.Destroy(ctx))
	}, func(t *testing.T, ctx context.Context, q *pawl.Queue, _ []pawl.ID) {
		_, err := q.Enqueue(ctx, note{}) // in a new queue of that name
		require.NoError(t, err)
	}, pawl.Stats{Ready: 1, Total: pawl.Counters{Enqueued: 1}}},

	"destroy, the unique keys": {"free", pawl.StateReady, func(t *testing.T, ctx context.Context, q *pawl.Queue, _ []pawl.ID) {
		require.NoError(t, q.Destroy(ctx))
	}, func(t *testing.T, ctx context.Context, q *pawl.Queue, _ []pawl.ID) {
		job, err := q.Enqueue(ctx, note{}, pawl.Unique{Key: "k"})
		require.NoError(t, err)
		require.False(t, job.Duplicate)
	}, pawl.Stats{Ready: 1, Total: pawl.Counters{Enqueued: 1}}},
}

// N3, case 9. The calls of operators travel as those of workers do.
func TestAControlCallWithALostAnswerHappensOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for verb, c := range controls {
		eachCut(t, server, verb, func(t *testing.T, f *faulty, fault redistest.Fault) {
			q, ids := f.three(t, c.state)
			fired := f.Proxy.On(c.script, 1, fault)
			ctx := within(t, time.Minute)
			c.call(t, ctx, q, ids)
			<-fired
			c.newer(t, ctx, q, ids)
			f.Proxy.Release()
			got, err := f.past.Queue(q.Name()).Stats(t.Context())
			require.NoError(t, err)
			got.OldestReady = 0
			require.Equal(t, c.want, got)
		})
	}
}

// three is a queue with three jobs in a state, put there past the proxy. The
// first holds a unique key.
func (f *faulty) three(t *testing.T, s pawl.State) (*pawl.Queue, []pawl.ID) {
	t.Helper()
	queue := freshQueue()
	var opts []pawl.Option
	if s == pawl.StateDelayed {
		opts = append(opts, pawl.Delay(time.Hour))
	}
	jobs := f.put(t, queue, 1, append(opts, pawl.Unique{Key: "k"})...)
	jobs = append(jobs, f.put(t, queue, 2, opts...)...)
	ids := make([]pawl.ID, len(jobs))
	for i, job := range jobs {
		ids[i] = job.ID
	}
	if s == pawl.StateDead {
		f.die(t, queue, len(jobs))
	}
	return f.Queue(queue), ids
}

// die has all jobs of a queue fail for good, past the proxy.
func (f *faulty) die(t *testing.T, queue string, jobs int) {
	t.Helper()
	w, err := pawl.NewWorker(f.past, pawl.WorkerConfig{Queues: pawl.Queues(queue)})
	require.NoError(t, err)
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return pawl.Permanent(errors.New("no")) })
	stop := f.Start(w)
	redistest.Eventually(t, "they are dead", func(ctx context.Context) bool {
		n, err := f.past.Queue(queue).Dead().Len(ctx)
		return err == nil && n == int64(jobs)
	})
	require.NoError(t, stop())
}

// N3.
func TestACancelOfARunningJobWithALostAnswerHappensOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	eachCut(t, server, "cancel", func(t *testing.T, f *faulty, fault redistest.Fault) {
		queue := freshQueue()
		job := f.put(t, queue, 1)[0]
		w := f.Worker(queue, pawl.WorkerConfig{VisibilityTimeout: 3 * time.Second})
		pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		stop := f.Start(w)
		f.Log.Wait(t, "started", 1)
		f.Proxy.On("cancel", 1, fault)
		require.NoError(t, f.Queue(queue).Cancel(within(t, time.Minute), job.ID))
		redistest.Eventually(t, "it ends", func(context.Context) bool { return f.Total(t, queue).Cancelled == 1 })
		require.NoError(t, stop())
		f.Proxy.Release()
		require.Equal(t, pawl.Counters{Enqueued: 1, Started: 1, Cancelled: 1}, f.Total(t, queue))
	})
}

type droppedHook struct{ ids chan pawl.ID }

func (h droppedHook) Dropped(_ context.Context, job pawl.DeadJob) { h.ids <- job.ID }

// N3.
func TestRetentionWithALostAnswerDropsAndTellsOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	eachCut(t, server, "delete", func(t *testing.T, f *faulty, fault redistest.Fault) {
		q, ids := f.three(t, pawl.StateDead)
		hook := droppedHook{make(chan pawl.ID, 10)}
		c := f.NewClient(pawl.Config{DeadRetention: time.Millisecond, Hooks: []pawl.Hook{hook}})
		w, err := pawl.NewWorker(c, pawl.WorkerConfig{Queues: pawl.Queues(q.Name())})
		require.NoError(t, err)
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		f.Proxy.On("delete", 1, fault)
		stop := f.Start(w)
		redistest.Eventually(t, "the hook is told", func(context.Context) bool { return len(hook.ids) >= len(ids) })
		require.NoError(t, stop())
		f.Proxy.Release()
		close(hook.ids)
		var told []pawl.ID
		for id := range hook.ids {
			told = append(told, id)
		}
		require.ElementsMatch(t, ids, told)
		require.Equal(t, counted(diedThree, func(c *pawl.Counters) { c.Dropped = 3 }), f.Total(t, q.Name()))
	})
}
