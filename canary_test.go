package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

func TestACanaryGoesThroughTheQueue(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		stats := func() pawl.Stats {
			s, err := q.Stats(ctx)
			require.NoError(t, err)
			return s
		}
		require.NoError(t, q.Canary(ctx, 0), "there is none")
		require.NoError(t, q.Canary(ctx, 10*time.Second))
		require.NoError(t, q.Canary(ctx, 10*time.Second))
		e.Pass(time.Hour)
		require.Zero(t, stats().LastCanary, "nobody serves the queue")
		var stops []func() error
		for range 2 {
			stops = append(stops, e.Start(e.process(t, "mail", func(context.Context, *pawl.Job[note]) error { return nil })))
		}
		e.Pass(time.Minute)
		require.Less(t, time.Since(stats().LastCanary), 11*time.Second)
		s := stats()
		require.Equal(t, s.Total.Enqueued, s.Total.Done)
		require.InDelta(t, 7, s.Total.Done, 1)
		require.EqualValues(t, s.Total.Done, len(e.Log.Of("done")))
		require.Equal(t, "pawl:canary", e.Log.Of("done")[0].Job.Kind)
		require.Zero(t, s.Depth()+s.Running+s.Dead)
		infos, err := q.Schedules(ctx)
		require.NoError(t, err)
		require.Empty(t, infos)
		for _, stop := range stops {
			require.NoError(t, stop())
		}
		last := stats().LastCanary
		e.Pass(time.Hour)
		require.Equal(t, last, stats().LastCanary, "the alert's time has come")
		require.Zero(t, stats().Depth(), "and no canaries pile up")
		require.NoError(t, q.Canary(ctx, 0))
		require.NoError(t, q.Canary(ctx, 0))
		e.Start(e.process(t, "mail", func(context.Context, *pawl.Job[note]) error { return nil }))
		e.Pass(time.Minute)
		require.Equal(t, last, stats().LastCanary)
	})
}

// A paused queue keeps one canary, and no more.
func TestACanaryOfAPausedQueue(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		e.Start(e.process(t, "mail", func(context.Context, *pawl.Job[note]) error { return nil }))
		require.NoError(t, q.Canary(ctx, time.Second))
		e.Pass(time.Minute)
		require.NoError(t, q.Pause(ctx, pawl.Forever))
		e.Pass(time.Minute)
		s, err := q.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Depth())
		require.Greater(t, time.Since(s.LastCanary), 50*time.Second)
		require.NoError(t, q.Resume(ctx))
		e.Pass(2 * time.Second)
		s, err = q.Stats(ctx)
		require.NoError(t, err)
		require.Less(t, time.Since(s.LastCanary), 3*time.Second)
		require.NoError(t, q.Canary(ctx, 0))
	})
}

// The kind is nobody else's.
func TestTheCanarysKindIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[mistyped]) error { return nil })
		require.ErrorIs(t, w.Run(t.Context()), pawl.ErrInvalid)
		_, err := e.Queue("mail").EnqueueRaw(t.Context(), "pawl:canary", nil)
		require.ErrorIs(t, err, pawl.ErrInvalid)
	})
}

// On a real server, and with the rights of docs/security.md.
func TestACanaryOnARealServer(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		require.NoError(t, q.Canary(t.Context(), time.Second))
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		stop := e.Start(w)
		e.Log.Wait(t, "done", 2)
		require.NoError(t, q.Canary(t.Context(), 0))
		require.NoError(t, stop())
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), s.LastCanary, 10*time.Second)
	})
}
