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
// ranging is served again when it can. ErrInvalid for a position that is none,
// and ErrName, end it. It takes a connection of the pool while it waits.
func (d *DeadLetters) Watch(ctx context.Context, from string) iter.Seq2[DeadJob, error] {
	return func(yield func(DeadJob, error) bool) {
		switch {
		case d.q.err != nil:
			yield(DeadJob{}, d.q.wrap("watch dead", d.q.err))
			return
		case from != "" && !positionPattern.MatchString(from):
			yield(DeadJob{}, d.q.wrap("watch dead", invalidf("position %q is none: give the Position of a DeadJob, or nothing", from)))
			return
		}
		for at := from; ctx.Err() == nil; {
			page, err := d.deathsAfter(ctx, at)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				if !yield(DeadJob{}, d.q.wrap("watch dead", err)) {
					return
				}
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
	if at == "" {
		top, err := d.top(ctx)
		if top == "" {
			top = "0-0"
		}
		return deaths{at: top}, err
	}
	return await(ctx, func(ctx context.Context) (deaths, error) {
		streams, err := d.q.client.rdb.XRead(ctx, &redis.XReadArgs{
			Streams: []string{d.q.keys.dead, at}, Count: 16, Block: watchBlock}).Result()
		if err == redis.Nil || err == nil && len(streams) == 0 {
			return deaths{at: at}, nil
		}
		if err != nil {
			return deaths{at: at}, err
		}
		entries := streams[0].Messages
		return deaths{entries, entries[len(entries)-1].ID}, nil
	})
}
