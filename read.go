package pawl

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// read calls a script that writes nothing.
func (q *queueState) read(ctx context.Context, s *script, keys []string, args ...any) ([]any, error) {
	reply, err := await(ctx, q.client.rdb, func(ctx context.Context) (any, error) {
		c := &call{script: s, keys: keys, args: args}
		attempt(ctx, q.client.rdb, c)
		return c.reply, c.err
	})
	if err != nil {
		return nil, err
	}
	parts, ok := reply.([]any)
	if !ok { // and would not be if it were asked again
		return nil, fmt.Errorf("script %s answered %T", s.name, reply)
	}
	return parts, nil
}

// await runs a call that only reads, and returns when ctx ends (after 5 s if it
// has no deadline), since go-redis does not heed a context while it reads. rdb
// is the client that it goes through, or nil.
func await[T any](ctx context.Context, rdb redis.UniversalClient, fn func(context.Context) (T, error)) (T, error) {
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	var last atomic.Pointer[error] // why it takes so long
	go func() {
		for n := 0; ; n++ {
			v, err := fn(context.WithoutCancel(ctx))
			last.Store(&err)
			remap(rdb, err)
			if cl := classify(err); cl != classRefused && cl != classUnknown || ctx.Err() != nil {
				done <- result{v, err}
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(retryPause(n)):
			}
		}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var zero T
		if err := last.Load(); err != nil && *err != nil {
			return zero, fmt.Errorf("%w: %w", context.Cause(ctx), *err)
		}
		return zero, context.Cause(ctx)
	}
}

// serverTime is the clock by which pawl goes.
func (q *queueState) serverTime(ctx context.Context) (time.Time, error) {
	return await(ctx, q.client.rdb, func(ctx context.Context) (time.Time, error) { return q.client.rdb.Time(ctx).Result() })
}
