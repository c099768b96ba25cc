package pawl

import (
	"context"
	"iter"
	"time"

	"github.com/redis/go-redis/v9"
)

// watchBlock is for how long one read of a Watch waits for a death.
const watchBlock = 2 * time.Second

// Watch yields jobs as they die, on any worker, until ctx ends: an alerting
// system can read the queue as a stream. from is the DeadJob.Position after which
// to begin, so that a reader who stores it misses none; "" is now. What is
// redriven, deleted or dropped before the reader comes is skipped. The queue need
// not exist yet.
//
// While Redis cannot be read an error is yielded every 5 s, and who goes on
// ranging is served again when it can, from where it was. ErrInvalid for a
// position that is none, and ErrName, end it; ctx ends it without an error. It
// takes a connection of the pool while it waits, and gives it back within 2 s.
func (d *DeadLetters) Watch(ctx context.Context, from string) iter.Seq2[DeadJob, error] {
	return func(yield func(DeadJob, error) bool) {
		_, _, valid := splitPosition(from)
		switch {
		case d.q.err != nil:
			yield(DeadJob{}, d.q.wrap("watch dead", d.q.err))
			return
		case from != "" && !valid:
			yield(DeadJob{}, d.q.wrap("watch dead", invalidf("position %q is none: give the Position of a DeadJob, or nothing", from)))
			return
		}
		for at := from; ctx.Err() == nil; {
			began := time.Now()
			page, err := d.deathsAfter(ctx, at)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				if !yield(DeadJob{}, d.q.wrap("watch dead", err)) {
					return
				}
				// Some errors come at once, such as that of a missing right.
				_ = sleep(ctx, max(0, enqueueTimeout-time.Since(began)))
				continue
			}
			at = page.at
			for _, e := range page.entries {
				if ctx.Err() != nil || !yield(d.entry(e), nil) {
					return
				}
			}
		}
	}
}

// deaths are entries, and the position to read on from.
type deaths struct {
	entries []redis.XMessage
	at      string
}

// deathsAfter waits for entries after a position, for a little while. The
// position "" is the end of the stream as it is now.
func (d *DeadLetters) deathsAfter(ctx context.Context, at string) (deaths, error) {
	// Not as long as the reader's context, or it would not hear of an outage.
	ctx, cancel := context.WithTimeout(ctx, enqueueTimeout)
	defer cancel()
	if at == "" {
		top, err := d.top(ctx)
		if top == "" {
			top = "0-0"
		}
		return deaths{at: top}, err
	}
	entries, err := d.page(ctx, "("+at, "+")
	if err == nil && len(entries) == 0 {
		entries, err = d.awaitDeath(ctx, at)
	}
	if len(entries) > 0 {
		at = entries[len(entries)-1].ID
	}
	return deaths{entries, at}, err
}

// awaitDeath waits for one entry, since no count of them bounds their bytes.
func (d *DeadLetters) awaitDeath(ctx context.Context, at string) ([]redis.XMessage, error) {
	return await(ctx, d.q.client.rdb, func(ctx context.Context) ([]redis.XMessage, error) {
		streams, err := d.q.client.rdb.XRead(ctx, &redis.XReadArgs{
			Streams: []string{d.q.keys.dead, at}, Count: 1, Block: watchBlock}).Result()
		if err == redis.Nil || err == nil && len(streams) == 0 {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return streams[0].Messages, nil
	})
}
