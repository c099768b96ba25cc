package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// Each job that is seen is replaced by another one, as an edit of its payload does.
func TestAWalkEndsThoughItsBodyEnqueues(t *testing.T) {
	t.Parallel()
	for _, s := range []pawl.State{pawl.StateReady, pawl.StateDelayed} {
		contract(t, func(t *testing.T, e *env) {
			q := e.Queue("q")
			var opts []pawl.Option
			if s == pawl.StateDelayed {
				opts = append(opts, pawl.Delay(time.Hour))
			}
			items := make([]note, 300)
			_, err := q.EnqueueMany(t.Context(), pawl.Items(items, opts...))
			require.NoError(t, err)
			n := 0
			for j, err := range q.List(t.Context(), s, pawl.Filter{}) {
				require.NoError(t, err)
				require.NoError(t, q.Cancel(t.Context(), j.ID))
				_, err = q.EnqueueRaw(t.Context(), j.Kind, j.Payload, opts...)
				require.NoError(t, err)
				n++
				require.LessOrEqual(t, n, 300)
			}
			require.Equal(t, 300, n)
		})
	}
}

// A listed state is that of the moment when the page was read.
func TestWhatHasComeDueIsNotListedAsDelayed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		for i := range 600 {
			_, err := q.Enqueue(t.Context(), note{i}, pawl.Delay(time.Minute+time.Duration(i/300)*time.Hour))
			require.NoError(t, err)
		}
		n := 0
		for j, err := range q.List(t.Context(), pawl.StateDelayed, pawl.Filter{}) {
			require.NoError(t, err)
			if n++; n == 1 {
				e.Pass(2 * time.Minute) // after the first page, of 250
			}
			if n > 250 {
				require.Greater(t, time.Until(j.DueAt), time.Duration(0))
			}
		}
		require.Equal(t, 550, n)
	})
}

// A mistake that was not mended costs as many jobs as StopAfter says.
func TestStopAfterCostsNoMoreThanItSays(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		_, err := q.EnqueueMany(t.Context(), pawl.Items(make([]note, 60)))
		require.NoError(t, err)
		var runs atomic.Int64
		handle := func(w *pawl.Worker) {
			pawl.Handle(w, func(context.Context, *pawl.Job[note]) error {
				runs.Add(1)
				<-time.After(2 * time.Second)
				return pawl.Permanent(errors.New("still broken"))
			})
		}
		first := e.Worker("q", pawl.WorkerConfig{Concurrency: 60})
		handle(first)
		e.Run(first, "dead", 60)
		runs.Store(0)
		second := e.Worker("q", pawl.WorkerConfig{Concurrency: 1})
		handle(second)
		stop := e.Start(second)
		report, err := q.Dead().RedriveAll(t.Context(), pawl.DeadFilter{}, pawl.Redrive{StopAfter: 10})
		require.NoError(t, err)
		require.Equal(t, 10, report.DiedAgain)
		require.True(t, report.Stopped)
		e.Pass(time.Minute)
		require.NoError(t, stop())
		require.EqualValues(t, 10, runs.Load())
	})
}

func TestTimesBeyondTheYear9999DoNotWrap(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		put(t, q, 1)
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return pawl.Permanent(errors.New("no")) })
		e.Run(w, "dead", 1)
		last := time.Unix(1<<63-62135596801, 999999999)
		n, err := q.Dead().Purge(t.Context(), pawl.DeadFilter{Since: last})
		require.NoError(t, err)
		require.Zero(t, n)
		n, err = q.Dead().Purge(t.Context(), pawl.DeadFilter{Until: last})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		minutes, err := q.Minutes(t.Context(), last, time.Time{})
		require.NoError(t, err)
		require.Empty(t, minutes)
	})
}

func TestACorruptJobGoesBackAsTheBytesItWas(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		raw := "\x01\x20" + strings.Repeat("A", 30)
		id := fmt.Sprintf("%d-9223372036854775809", time.Now().UnixMicro())
		require.NoError(t, e.Redis.XAdd(t.Context(), &redis.XAddArgs{Stream: "pawl:{q}:jobs", ID: id, Values: []any{"r", raw}}).Err())
		for n := range 2 {
			w := e.Worker("q", pawl.WorkerConfig{})
			pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
			e.Run(w, "dead", n+1)
			for d, err := range q.Dead().List(t.Context(), pawl.DeadFilter{}) {
				require.NoError(t, err)
				require.Equal(t, raw, string(d.Payload))
				if n == 0 {
					_, err = q.Dead().Redrive(t.Context(), d.ID)
					require.NoError(t, err)
				}
			}
		}
	})
}

// An empty answer would hide a slip of the pen.
func TestAFilterThatNothingCanMatchIsInvalid(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ctx, q := t.Context(), e.Queue("q")
		put(t, q, 1)
		now := time.Now()
		for _, f := range []pawl.DeadFilter{{Reason: "permenant"}, {Since: now, Until: now.Add(-1)}} {
			for _, err := range q.Dead().List(ctx, f) {
				require.ErrorIs(t, err, pawl.ErrInvalid)
			}
			_, err := q.Dead().Purge(ctx, f)
			require.ErrorIs(t, err, pawl.ErrInvalid)
			_, err = q.Dead().RedriveAll(ctx, f, pawl.Redrive{})
			require.ErrorIs(t, err, pawl.ErrInvalid)
		}
		f := pawl.Filter{Since: now, Until: now.Add(-1)}
		for _, err := range q.List(ctx, pawl.StateReady, f) {
			require.ErrorIs(t, err, pawl.ErrInvalid)
		}
		_, err := q.Purge(ctx, pawl.StateReady, f)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		n, err := q.Purge(ctx, pawl.StateReady, pawl.Filter{Since: now.Add(time.Hour), Until: now.Add(time.Hour)})
		require.NoError(t, err, "nothing is in it, but it is a span")
		require.Zero(t, n)
	})
}

func TestACheckOfAQueueThatNeverWasIsNotFound(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		_, err := e.Client.Queue("typo").Check(t.Context())
		require.ErrorIs(t, err, pawl.ErrNotFound)
		put(t, e.Queue("q"), 1)
		found, err := e.Client.Queue("q").Check(t.Context())
		require.NoError(t, err)
		require.Empty(t, found)
	})
}
