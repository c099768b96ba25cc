package pawl_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// cancellations is a hook that keeps what was cancelled.
type cancellations struct {
	mu     sync.Mutex
	events []pawl.Event
}

func (c *cancellations) Cancelled(_ context.Context, e pawl.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
}

func (c *cancellations) all() []pawl.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]pawl.Event(nil), c.events...)
}

func TestOnCancelledIsToldOnceOfAJobThatEndsByIt(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		handler        func(ctx context.Context) error
		cut            bool // the worker is stopped at once, and another comes
		done, released int
	}{
		"its handler returns what its context says": {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, false, 0, 0},
		"its handler returns another error":         {func(ctx context.Context) error { <-ctx.Done(); return pawl.Permanent(failed) }, false, 0, 0},
		"its handler panics":                        {func(ctx context.Context) error { <-ctx.Done(); panic("no") }, false, 0, 0},
		"its attempt failed before it heard of it":  {func(context.Context) error { <-time.After(time.Second); return failed }, false, 0, 0},
		"its handler is done all the same":          {func(ctx context.Context) error { <-ctx.Done(); return nil }, false, 1, 0},
		"it is leased by another worker, unrun":     {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, true, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				hook := &cancellations{}
				client := e.NewClient(pawl.Config{Hooks: []pawl.Hook{hook}})
				q := e.Queue("mail")
				job, err := q.Enqueue(t.Context(), note{1})
				require.NoError(t, err)
				start := func() (stop func() error) {
					w, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("mail"), DrainTimeout: time.Millisecond})
					require.NoError(t, err)
					pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error { return c.handler(ctx) })
					return e.Start(w)
				}
				stop := start()
				e.Log.Wait(t, "started", 1)
				require.NoError(t, q.Cancel(t.Context(), job.ID))
				if c.cut {
					_ = stop()
					require.Empty(t, hook.all())
					start()
				}
				e.Pass(time.Minute)
				_, err = q.Get(t.Context(), job.ID)
				require.ErrorIs(t, err, pawl.ErrNotFound)
				s, err := q.Stats(t.Context())
				require.NoError(t, err)
				require.Len(t, e.Log.Of("done"), c.done)
				require.Len(t, e.Log.Of("released"), c.released)
				require.Len(t, e.Log.Of("started"), 1)
				require.Empty(t, e.Log.Of("dead"))
				events := hook.all()
				require.Len(t, events, 1-c.done)
				require.EqualValues(t, 1-c.done, s.Total.Cancelled)
				for _, event := range events {
					require.Equal(t, job.ID, event.Job.ID)
					require.ErrorIs(t, event.Err, pawl.ErrCancelled)
				}
			})
		})
	}
}

func TestOnCancelledIsNotToldOfAJobThatWaited(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		hook := &cancellations{}
		client := e.NewClient(pawl.Config{Hooks: []pawl.Hook{hook}})
		job, err := client.Queue("mail").Enqueue(t.Context(), note{1})
		require.NoError(t, err)
		require.NoError(t, client.Queue("mail").Cancel(t.Context(), job.ID))
		w, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("mail")})
		require.NoError(t, err)
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Start(w)
		e.Pass(time.Minute)
		require.Empty(t, hook.all())
	})
}
