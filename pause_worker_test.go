package pawl_test

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// idle starts n workers of a queue, each in a client of its own as in a process
// of its own, and tells how many handlers have begun.
func idle(t *testing.T, e *env, n int, queues ...string) (began *atomic.Int64) {
	t.Helper()
	began = &atomic.Int64{}
	for i := range n {
		for _, q := range queues {
			e.Queue(q)
		}
		w, err := pawl.NewWorker(e.NewClient(pawl.Config{}), pawl.WorkerConfig{Queues: pawl.Queues(queues...),
			Concurrency: 5, Name: fmt.Sprintf("w%02d", i)})
		require.NoError(t, err)
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { began.Add(1); return nil })
		e.Start(w)
	}
	return began
}

func TestAPausedQueueStartsNothingAndGoesOnByItself(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{100 * time.Millisecond, 7 * time.Second, time.Minute, 10 * time.Minute} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				q := e.Queue("q")
				put(t, q, 1)
				began := idle(t, e, 20, "q")
				e.Pass(time.Minute)
				require.EqualValues(t, 1, began.Load())
				require.NoError(t, q.Pause(t.Context(), d))
				end := time.Now().Add(d)
				s, err := q.Stats(t.Context())
				require.NoError(t, err)
				require.True(t, s.Paused)
				require.Equal(t, end.UnixMilli(), s.PausedUntil.UnixMilli())
				fill(t, e, 100, "q")
				e.Pass(time.Until(end) - time.Millisecond)
				require.EqualValues(t, 1, began.Load(), "nothing starts")
				e.Pass(2 * time.Second)
				require.EqualValues(t, 101, began.Load(), "all have run")
				s, err = q.Stats(t.Context())
				require.NoError(t, err)
				require.False(t, s.Paused)
				require.Zero(t, s.PausedUntil)
			})
		})
	}
}

// L6.
func TestAPauseOnARealServer(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		put(t, q, 1)
		began := idle(t, e, 20, "q")
		e.Log.Wait(t, "done", 1)
		require.NoError(t, q.Pause(t.Context(), 2*time.Second))
		end := time.Now().Add(2 * time.Second)
		fill(t, e, 100, "q")
		<-time.After(time.Until(end) - time.Second)
		require.EqualValues(t, 1, began.Load())
		events := e.Log.Wait(t, "done", 101)
		require.Len(t, events, 101)
		require.False(t, time.Now().Before(end.Add(-time.Millisecond)))
	})
}

// L6. Workers block while the queue is paused.
func TestAResumeIsHeardAtOnce(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{time.Hour, pawl.Forever, 0} {
		bubble(t, func(t *testing.T, e *env) {
			q := e.Queue("q")
			put(t, q, 1)
			began := idle(t, e, 20, "q")
			e.Pass(time.Minute)
			require.NoError(t, q.Pause(t.Context(), d))
			s, err := q.Stats(t.Context())
			require.NoError(t, err)
			require.True(t, s.Paused)
			require.Equal(t, d <= 0, s.PausedUntil.IsZero())
			fill(t, e, 100, "q")
			e.Pass(time.Minute)
			require.EqualValues(t, 1, began.Load())
			require.NoError(t, q.Resume(t.Context()))
			e.Pass(10 * time.Millisecond)
			require.EqualValues(t, 101, began.Load())
			require.NoError(t, q.Resume(t.Context()), "it is not paused: nothing to do")
		})
	}
}

// A pause of a paused queue puts its end in the place of the old one.
func TestAPauseOfAPausedQueue(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string][2]time.Duration{
		"shorter": {time.Hour, 3 * time.Second}, "much shorter": {pawl.Forever, time.Minute}, "longer": {3 * time.Second, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				q := e.Queue("q")
				put(t, q, 1)
				began := idle(t, e, 20, "q")
				e.Pass(time.Minute)
				require.NoError(t, q.Pause(t.Context(), ends[0]))
				fill(t, e, 100, "q")
				e.Pass(time.Second)
				require.NoError(t, q.Pause(t.Context(), ends[1]))
				e.Pass(ends[1] - time.Millisecond)
				require.EqualValues(t, 1, began.Load())
				e.Pass(10 * time.Millisecond)
				require.EqualValues(t, 101, began.Load())
			})
		})
	}
}

func TestAPauseRefusesWhatIsNoTime(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		put(t, q, 1)
		for _, d := range []time.Duration{-2, -time.Hour, math.MinInt64, math.MaxInt64, 101 * 365 * 24 * time.Hour} {
			require.ErrorIs(t, q.Pause(t.Context(), d), pawl.ErrInvalid, "%v", d)
		}
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.False(t, s.Paused)
		require.NoError(t, q.Pause(t.Context(), 1), "rounded up")
	})
}

// What runs goes on, is settled, and retried; other queues are served.
func TestAPauseLeavesRunningJobsAndOtherQueuesAlone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		put(t, q, 1)
		put(t, q, 2)
		w := e.Worker("", pawl.WorkerConfig{Queues: pawl.Queues("q", "other"), VisibilityTimeout: 9 * time.Second,
			Backoff: pawl.Backoff{Base: time.Second, Jitter: pawl.JitterNone}})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			<-time.After(20 * time.Second)
			if job.Args.N == 2 && job.Attempt == 1 {
				return context.DeadlineExceeded
			}
			return nil
		})
		e.Start(w)
		e.Log.Wait(t, "started", 2)
		require.NoError(t, q.Pause(t.Context(), time.Minute))
		end := time.Now().Add(time.Minute)
		put(t, e.Queue("other"), 3)
		e.Pass(45 * time.Second)
		require.Len(t, e.Log.Of("done"), 2, "the first, and that of the other queue")
		require.Len(t, e.Log.Of("retry"), 1)
		require.Len(t, e.Log.Of("started"), 3)
		e.Log.Wait(t, "done", 3)
		require.WithinDuration(t, end.Add(20*time.Second), time.Now(), time.Second)
		require.Empty(t, e.Log.Of("lost"))
	})
}

// Workers of a paused queue ask no more often than those of an idle one.
func TestAPauseDoesNotMakeWorkersSpin(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		put(t, q, 1)
		idle(t, e, 20, "q")
		e.Pass(time.Minute)
		asked := func() int {
			before := e.Mini.CommandCount()
			e.Pass(5 * time.Minute)
			return e.Mini.CommandCount() - before
		}
		whileIdle := asked()
		require.NoError(t, q.Pause(t.Context(), 2*time.Hour))
		fill(t, e, 100, "q")
		whilePaused := asked()
		require.Less(t, whilePaused, whileIdle+whileIdle/10+100, "idle: %d", whileIdle)
	})
}

func TestAPauseWithALostAnswerIsOne(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 100*time.Millisecond)
	q := f.Queue("q")
	put(t, q, 1)
	for _, fault := range cuts {
		f.Proxy.Clear()
		f.Proxy.On("pause", 1, fault)
		require.NoError(t, q.Pause(t.Context(), time.Hour))
		require.NoError(t, q.Resume(t.Context()))
		f.Proxy.Release() // a late pause must not undo the resume
		s, err := f.past.Queue("q").Stats(t.Context())
		require.NoError(t, err)
		require.False(t, s.Paused)
	}
}
