package pawl_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// lookers counts the calls that look for jobs that have ended, and the ids in them.
type lookers struct{ calls, ids atomic.Int64 }

func (l *lookers) DialHook(next redis.DialHook) redis.DialHook { return next }
func (l *lookers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		// The script over alone has both, in this order.
		if args := cmd.Args(); len(args) > 10 && slices.Contains(args[8:10], any("pawl:{mail}:done")) {
			l.calls.Add(1)
			l.ids.Add(int64(len(args) - 10))
		}
		return next(ctx, cmd)
	}
}
func (l *lookers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// unheard waits until the client listens to nothing any more.
func unheard(t *testing.T, e *env) {
	t.Helper()
	e.Pass(time.Second)
	require.Empty(t, e.Redis.PubSubChannels(t.Context(), "*").Val())
}

// The end of a job with Retain is heard; another is seen within the 2 s of a sweep.
func TestAWaitEndsSoonAfterItsJob(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		gate := make(chan struct{})
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error {
			<-gate
			return nil
		})
		e.Start(w)
		for _, c := range []struct {
			opts []pawl.Option
			most time.Duration
		}{{[]pawl.Option{retained}, 50 * time.Millisecond}, {nil, 2100 * time.Millisecond}} {
			for range 5 {
				job, err := q.Enqueue(t.Context(), note{}, c.opts...)
				require.NoError(t, err)
				var waited time.Time
				var waiting sync.WaitGroup
				waiting.Go(func() {
					_, err := q.Wait(t.Context(), job.ID)
					if c.opts == nil {
						require.ErrorIs(t, err, pawl.ErrNotFound)
					} else {
						require.NoError(t, err)
					}
					waited = time.Now()
				})
				e.Pass(5*time.Second + 700*time.Millisecond)
				ended := time.Now()
				gate <- struct{}{}
				waiting.Wait()
				require.LessOrEqual(t, waited.Sub(ended), c.most)
			}
		}
		unheard(t, e)
	})
}

// Its context ends a wait at once, whatever Redis does, and says why.
func TestAWaitIsBoundedByItsContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		job, err := q.Enqueue(t.Context(), note{}, pawl.Delay(time.Hour))
		require.NoError(t, err)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		_, err = q.Wait(ctx, job.ID)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 10*time.Minute, time.Since(began), "no default cuts it short")

		reason := errors.New("closing time")
		over, end := context.WithCancelCause(t.Context())
		end(reason)
		_, err = q.Wait(over, job.ID)
		require.ErrorIs(t, err, reason)

		later, end := context.WithCancelCause(t.Context())
		var waiting sync.WaitGroup
		waiting.Go(func() {
			_, err := q.Wait(later, job.ID)
			require.ErrorIs(t, err, reason)
		})
		e.Pass(time.Second)
		end(reason)
		waiting.Wait()
		unheard(t, e)
	})
}

// Any number of waits, on one job or on many, that end at the same time by their
// contexts leave nothing behind: the bubble would not end.
func TestWaitsThatAreCancelledTogetherLeaveNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		fill(t, e, 500, "mail")
		var ids []pawl.ID
		for info, err := range q.List(t.Context(), pawl.StateReady, pawl.Filter{}) {
			require.NoError(t, err)
			ids = append(ids, info.ID)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for i := range 1000 {
			waiting.Go(func() {
				_, err := q.Wait(ctx, ids[i%len(ids)])
				require.ErrorIs(t, err, context.Canceled)
			})
		}
		e.Pass(3 * time.Second)
		cancel()
		waiting.Wait()
		unheard(t, e)
		for range 1000 {
			waiting.Go(func() {
				_, err := q.Wait(ctx, ids[0])
				require.ErrorIs(t, err, context.Canceled)
			})
		}
		waiting.Wait()
		unheard(t, e)
	})
}

// Two who wait for one job share a look, and the one who leaves does not take the
// other along.
func TestTwoWaitForOneJob(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		id, free := held(t, e, pawl.WorkerConfig{}, func(context.Context, *pawl.Job[note]) {}, retained)
		soon, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		waiting.Go(func() {
			_, err := q.Wait(soon, id)
			require.ErrorIs(t, err, context.Canceled)
		})
		infos := make([]pawl.JobInfo, 2)
		for i := range infos {
			waiting.Go(func() {
				var err error
				infos[i], err = q.Wait(t.Context(), id)
				require.NoError(t, err)
			})
		}
		e.Pass(time.Second)
		cancel()
		e.Pass(time.Second)
		free(nil)
		waiting.Wait()
		require.Equal(t, infos[0].ID, infos[1].ID)
		infos[0].Payload[0] = '!'
		require.NotEqual(t, infos[0].Payload, infos[1].Payload, "each has a copy of its own")
	})
}

// Waits on several queues share one connection; who waits for one job after another
// does not subscribe each time.
func TestWaitsShareAConnection(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for _, name := range []string{"a", "b", "c"} {
			job, err := e.Queue(name).Enqueue(ctx, note{})
			require.NoError(t, err)
			waiting.Go(func() { _, _ = e.Queue(name).Wait(ctx, job.ID) })
		}
		e.Pass(time.Second)
		require.Len(t, e.Redis.PubSubChannels(ctx, "*").Val(), 3)
		require.EqualValues(t, 1, e.Redis.PoolStats().PubSubStats.Active)
		cancel()
		waiting.Wait()
		unheard(t, e)
		require.Zero(t, e.Redis.PoolStats().PubSubStats.Active)

		created := e.Redis.PoolStats().PubSubStats.Created
		q := e.Queue("mail")
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Start(w)
		for range 20 {
			job, err := q.Enqueue(t.Context(), note{}, retained)
			require.NoError(t, err)
			_, err = q.Wait(t.Context(), job.ID)
			require.NoError(t, err)
		}
		require.EqualValues(t, 1, e.Redis.PoolStats().PubSubStats.Created-created)
	})
}

// What is looked for again and again is in few calls.
func TestManyWaitsCostFewCalls(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		const jobs = 500
		q := e.Queue("mail")
		enqueued, err := q.EnqueueMany(t.Context(), pawl.Items(make([]note, jobs), pawl.Delay(time.Hour)))
		require.NoError(t, err)
		var looks lookers
		e.Redis.AddHook(&looks)
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for _, job := range enqueued {
			waiting.Go(func() { _, _ = q.Wait(ctx, job.ID) })
		}
		e.Pass(5 * time.Second)
		require.GreaterOrEqual(t, looks.ids.Load(), int64(2*jobs))
		require.Less(t, looks.calls.Load(), int64(5*jobs/100))
		before := looks.calls.Load()
		e.Pass(20 * time.Second)
		require.InDelta(t, 20/2*jobs/100, looks.calls.Load()-before, 2*jobs/100)
		cancel()
		waiting.Wait()
	})
}
