package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// watchdog ends a context when Redis has been silent for too long. A timeout of a whole
// command would not do: a purge of a million jobs may take long, and a Redis that died in
// the middle of it should be noticed at once.
type watchdog struct {
	patience time.Duration

	mu      sync.Mutex
	waiting int       // commands under way
	since   time.Time // of the first one after the last answer; zero if none is awaited
	refused error     // what the server has said since, which is not taken for an answer
}

// watch adds a watchdog to a client. It ends with stop.
func watch(ctx context.Context, rdb redis.UniversalClient, patience time.Duration) (watched context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{patience: patience}
	rdb.AddHook(w)
	go func() {
		tick := time.NewTicker(max(patience/50, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if cause := w.barks(); cause != nil {
					cancel(cause)
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// barks is an errSilent if that is so, with what the server has said instead of an answer.
func (w *watchdog) barks() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.since.IsZero() || time.Since(w.since) < w.patience:
		return nil
	case w.refused != nil:
		return fmt.Errorf("%w: %w", errSilent, w.refused)
	}
	return errSilent
}

func (w *watchdog) began() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting++
	if w.since.IsZero() {
		w.since = time.Now()
	}
}

// ended notes an answer. After an error that may pass pawl sends the call again: until
// that is answered it counts as silence.
func (w *watchdog) ended(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting--
	var reply redis.Error
	if err != nil && !errors.Is(err, redis.Nil) && !redis.HasErrorPrefix(err, "NOSCRIPT") {
		if errors.As(err, &reply) {
			w.refused = err
		}
		return
	}
	w.since, w.refused = time.Time{}, nil
	if w.waiting > 0 {
		w.since = time.Now()
	}
}

// DialHook is one of redis.Hook.
func (w *watchdog) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook is one of redis.Hook.
func (w *watchdog) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		w.began()
		err := next(ctx, cmd)
		w.ended(err)
		return err
	}
}

// ProcessPipelineHook is one of redis.Hook.
func (w *watchdog) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		w.began()
		err := next(ctx, cmds)
		w.ended(err)
		return err
	}
}
