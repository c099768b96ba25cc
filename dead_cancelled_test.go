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
	soon := func(err error) func(context.Context) error {
		return func(context.Context) error { <-time.After(time.Second); return err }
	}
	for name, c := range map[string]struct {
		handler        func(ctx context.Context) error
		cut            bool // the worker is stopped at once, and another comes
		done, released int
	}{
		"its handler returns what its context says": {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, false, 0, 0},
		"its handler returns another error":         {func(ctx context.Context) error { <-ctx.Done(); return pawl.Permanent(failed) }, false, 0, 0},
		"its handler panics":                        {func(ctx context.Context) error { <-ctx.Done(); panic("no") }, false, 0, 0},
		"its attempt failed before it heard of it":  {soon(failed), false, 0, 0},
		"it failed for good before it heard of it":  {soon(pawl.Permanent(failed)), false, 0, 0},
		"it gave itself up before it heard of it":   {soon(pawl.Discard(failed)), false, 0, 0},
		"it was done before it heard of it":         {soon(nil), false, 1, 0},
		"its handler is done all the same":          {func(ctx context.Context) error { <-ctx.Done(); return nil }, false, 1, 0},
		"it is leased by another worker, unrun":     {func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, true, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				hook := &cancellations{}
				client := e.NewClient(pawl.Config{Hooks: []pawl.Hook{hook}})
				q := e.Queue("mail")
				job, err := q.Enqueue(t.Context(), note{1}, pawl.Unique{Key: "k"})
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
				require.Empty(t, append(e.Log.Of("dead"), e.Log.Of("discarded")...))
				require.Zero(t, s.Total.Failed+s.Total.Dead+s.Total.Discarded)
				again, err := q.Enqueue(t.Context(), note{1}, pawl.Unique{Key: "k"}, pawl.Delay(time.Hour))
				require.NoError(t, err)
				require.False(t, again.Duplicate, "its key is free")
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

// What would end a job for good is not looked at once it is to be cancelled.
func TestAJobThatWouldDieAfterItsCancelIsCancelled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts []pawl.Option
		stop bool // its worker is stopped before its handler returns
	}{
		"its last attempt failed":                     {[]pawl.Option{pawl.MaxAttempts(1)}, false},
		"it expired before it could be tried again":   {[]pawl.Option{pawl.ExpireIn(2 * time.Second)}, false},
		"it may run at most once and its worker ends": {[]pawl.Option{pawl.MaxAttempts(1), pawl.MaxCrashes(1)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				q := e.Queue("mail")
				job, err := q.Enqueue(t.Context(), note{1}, c.opts...)
				require.NoError(t, err)
				w := e.Worker("mail", pawl.WorkerConfig{VisibilityTimeout: time.Hour, DrainTimeout: time.Second})
				pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
					select {
					case <-ctx.Done():
					case <-time.After(5 * time.Second):
					}
					return errors.New("failed")
				})
				stop := e.Start(w)
				e.Log.Wait(t, "started", 1)
				require.NoError(t, q.Cancel(t.Context(), job.ID))
				if c.stop {
					require.NoError(t, stop())
				}
				e.Pass(time.Minute)
				s, err := q.Stats(t.Context())
				require.NoError(t, err)
				require.Equal(t, pawl.Counters{Enqueued: 1, Started: 1, Cancelled: 1}, s.Total)
				require.Zero(t, s.Dead)
			})
		})
	}
}
