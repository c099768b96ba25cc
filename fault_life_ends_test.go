package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// uniqueEnds are the ends of a job, and what is none: how it comes to it, given
// the job's id; and whether its unique key is free then.
var uniqueEnds = map[string]struct {
	handler func(context.Context, *pawl.Job[note]) error // nil: no worker
	opts    []pawl.Option
	then    func(ctx context.Context, e *env, id pawl.ID) error
	free    bool
}{
	"waits":     {},
	"is done":   {handler: answers(nil), free: true},
	"is dead":   {handler: answers(pawl.Permanent(errors.New("no"))), free: true},
	"discarded": {handler: answers(pawl.Discard(errors.New("no"))), free: true},
	"retried":   {handler: answers(pawl.RetryAfter(time.Hour, errors.New("no")))},
	"snoozed":   {handler: answers(pawl.Snooze(time.Hour))},
	"runs":      {handler: forever},
	"expired before it ran": {handler: answers(nil), opts: []pawl.Option{pawl.ExpireIn(time.Second)}, free: true,
		then: func(context.Context, *env, pawl.ID) error { return nil }},
	"cancelled as it waited": {free: true, then: func(ctx context.Context, e *env, id pawl.ID) error { return e.Queue("mail").Cancel(ctx, id) }},
	"cancelled as it ran":    {handler: forever, free: true, then: func(ctx context.Context, e *env, id pawl.ID) error { return e.Queue("mail").Cancel(ctx, id) }},
	"purged": {free: true, then: func(ctx context.Context, e *env, _ pawl.ID) error {
		_, err := e.Queue("mail").Purge(ctx, pawl.StateReady, pawl.Filter{})
		return err
	}},
	"dead and deleted": {handler: answers(pawl.Permanent(errors.New("no"))), free: true, then: func(ctx context.Context, e *env, id pawl.ID) error {
		_, err := e.Queue("mail").Dead().Delete(ctx, id)
		return err
	}},
	"dead and purged": {handler: answers(pawl.Permanent(errors.New("no"))), free: true, then: func(ctx context.Context, e *env, _ pawl.ID) error {
		_, err := e.Queue("mail").Dead().Purge(ctx, pawl.DeadFilter{})
		return err
	}},
	"dead and redriven": {handler: answers(pawl.Permanent(errors.New("no"))), then: func(ctx context.Context, e *env, id pawl.ID) error {
		report, err := e.Queue("mail").Dead().Redrive(ctx, id)
		require.Equal(e.t, 1, report.Moved)
		return err
	}},
	"destroyed": {free: true, then: func(ctx context.Context, e *env, _ pawl.ID) error { return e.Queue("mail").Destroy(ctx) }},
}

func answers(err error) func(context.Context, *pawl.Job[note]) error {
	return func(context.Context, *pawl.Job[note]) error { return err }
}

func forever(ctx context.Context, _ *pawl.Job[note]) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// L3, cases 17 and 19. Each end of a job frees its unique key in the same step, what
// is no end keeps it, and a key that has passed to another job stays that one's.
func TestAUniqueKeyIsFreeAtEachEndAndNotBefore(t *testing.T) {
	t.Parallel()
	for name, end := range uniqueEnds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				q, ctx := e.Queue("mail"), t.Context()
				unique := pawl.Unique{Key: "k"}
				job, err := q.Enqueue(ctx, note{1}, append(end.opts, unique)...)
				require.NoError(t, err)
				if len(end.opts) > 0 {
					e.Pass(2 * time.Second)
				}
				stop := func() error { return nil }
				if end.handler != nil {
					w := e.Worker("mail", pawl.WorkerConfig{VisibilityTimeout: 10 * time.Second})
					pawl.Handle(w, end.handler)
					stop = e.Start(w)
					e.Pass(2 * time.Second)
				}
				if end.then != nil {
					if end.handler != nil && name != "cancelled as it ran" {
						require.NoError(t, stop()) // or it would take what is redriven
					}
					require.NoError(t, end.then(ctx, e, job.ID))
					if name == "cancelled as it ran" {
						e.Pass(10 * time.Second)
					}
				}
				holder := e.Redis.Get(ctx, "pawl:{mail}:unique:k").Val()
				require.Equal(t, end.free, holder == "", holder)
				_ = stop()
				next, err := q.Enqueue(ctx, note{2}, unique, pawl.Delay(24*time.Hour))
				require.NoError(t, err)
				require.Equal(t, !end.free, next.Duplicate)
				if end.free {
					require.NotEqual(t, job.ID, next.ID)
				} else {
					require.Equal(t, job.ID, next.ID)
				}
				s, err := q.Stats(ctx)
				require.NoError(t, err)
				require.Zero(t, s.Total.Healed, "no key was left behind")
			})
		})
	}
}
