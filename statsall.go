package pawl

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// statsAtOnce is how many looks a server has under way: it takes some 0.02 ms for each,
// and the rest is the way there and back.
const statsAtOnce = 16

// Stats looks at many queues, each in a moment of its own and by a round trip, of which
// 16 are under way at once. Without names it looks at all that Queues lists.
//
// What could be looked at is in the map, by name, after an error too: of a cluster
// whose masters are not all there, the queues of the others. The error then says how
// many are missing, and wraps that of one of them. It waits no longer than ctx, or 5 s
// if that has no deadline, and until then asks those again whose server did not answer.
// A name that is not valid is ErrName, and nothing is sent; nor is anything if ctx has
// ended.
func (c *Client) Stats(ctx context.Context, names ...string) (map[string]Stats, error) {
	if c == nil || c.rdb == nil {
		return nil, fmt.Errorf("pawl: stats: %w", invalidf("the client is nil: make one with New"))
	}
	for _, name := range names {
		if err := checkName(name); err != nil {
			return nil, fmt.Errorf("pawl: stats: %w", err)
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("pawl: stats: %w", context.Cause(ctx))
	}
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	if len(names) == 0 {
		listed, err := c.Queues(ctx)
		if err != nil {
			return nil, err
		}
		names = slices.DeleteFunc(listed, func(name string) bool { return checkName(name) != nil }) // somebody else's
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	l := &looks{client: c, found: map[string]Stats{}, failed: map[string]error{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.all(context.WithoutCancel(ctx), ctx.Done(), names)
	}()
	select {
	case <-done:
	case <-ctx.Done(): // which go-redis does not heed while it reads
	}
	return l.found, l.close(ctx, names)
}

// looks are those that a call of Stats has under way.
type looks struct {
	client *Client

	mu     sync.Mutex
	closed bool // the caller has the map: what comes in late is dropped
	found  map[string]Stats
	failed map[string]error // why a queue has no stats
}

// all looks at each queue, and again where no server answered, until over is closed.
func (l *looks) all(ctx context.Context, over <-chan struct{}, names []string) {
	for n := 0; len(names) > 0; n++ {
		if n > 0 {
			select {
			case <-over:
				return
			case <-time.After(retryPause(n - 1)):
			}
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		var again []string
		for rdb, some := range l.servers(ctx, names, n == 0) {
			slots := make(chan struct{}, statsAtOnce)
			for _, name := range some {
				wg.Go(func() {
					select {
					case slots <- struct{}{}:
					case <-over: // or the many would wait here for those that a dead server holds
						return
					}
					defer func() { <-slots }()
					if l.isClosed() || l.look(ctx, rdb, name) {
						return
					}
					mu.Lock()
					defer mu.Unlock()
					again = append(again, name)
				})
			}
		}
		wg.Wait()
		names = again
	}
}

// servers says whom to ask. Of a cluster that is each master by itself at first, so that
// one that is away keeps nobody waiting for the others. A slot that moves is for the
// cluster's client to follow.
func (l *looks) servers(ctx context.Context, names []string, direct bool) map[redis.UniversalClient][]string {
	masters, many := l.client.rdb.(cluster)
	by := map[redis.UniversalClient][]string{}
	for _, name := range names {
		rdb := l.client.rdb
		if many && direct {
			keys := newKeyspace(l.client.namespace, name)
			master, err := masters.MasterForKey(ctx, keys.meta)
			if direct = err == nil; direct { // else nobody knows the masters, and each name would ask again
				rdb = master
			}
		}
		by[rdb] = append(by[rdb], name)
	}
	return by
}

// look looks at a queue, and reports whether there was an answer.
func (l *looks) look(ctx context.Context, rdb redis.UniversalClient, name string) bool {
	keys := newKeyspace(l.client.namespace, name)
	c := &call{script: scriptStats, keys: keys.stats(), args: []any{canaryName}}
	attempt(ctx, rdb, c)
	s, err := c.stats()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
	case err == nil:
		l.found[name] = s
	default:
		l.failed[name] = err
	}
	cl := classify(c.err)
	return cl != classRefused && cl != classUnknown
}

func (l *looks) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// stats is what an attempt of the script stats has brought.
func (c *call) stats() (Stats, error) {
	if c.err != nil {
		return Stats{}, c.err
	}
	parts, ok := c.reply.([]any)
	if !ok {
		return Stats{}, fmt.Errorf("script stats answered %T", c.reply)
	}
	return readStats(parts)
}

// close is the error of what is missing. What comes in later is too late.
func (l *looks) close(ctx context.Context, names []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, ok := l.found[name]; return ok })
	if len(missing) == 0 {
		return nil
	}
	err, cause := l.failed[missing[0]], context.Cause(ctx)
	switch {
	case err == nil:
		err = cause
	case cause != nil:
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return fmt.Errorf("pawl: stats of %d queues of %d, %s first: %w", len(missing), len(names), missing[0], err)
}
