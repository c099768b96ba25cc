package pawl

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl/internal/jobid"
)

// DeadLetters is the dead-letter queue of a queue: one post-mortem per job that
// gave up. Safe for concurrent use. Its calls last as long as those of Queue, but
// that a walk (List, Groups, Purge, RedriveAll) goes on, page by page, until it is
// done or ctx ends, and Watch until ctx ends.
type DeadLetters struct{ q *queueState }

// Dead is the queue's dead-letter queue.
func (q *Queue) Dead() *DeadLetters { return &DeadLetters{q.queueState} }

// Len is how many jobs are dead; 0 for a queue that never had a job.
func (d *DeadLetters) Len(ctx context.Context) (int64, error) {
	if d.q.err != nil {
		return 0, d.q.wrap("count dead", d.q.err)
	}
	n, err := await(ctx, d.q.client.rdb, func(ctx context.Context) (int64, error) { return d.q.client.rdb.XLen(ctx, d.q.keys.dead).Result() })
	return n, d.q.wrap("count dead", err)
}

// Get is the post-mortem of one job, or ErrNotFound if the job is not dead.
func (d *DeadLetters) Get(ctx context.Context, id ID) (DeadJob, error) {
	found, err := d.q.inspect(ctx, id)
	if err == nil && found.state != StateDead {
		err = fmt.Errorf("%w: %s is not dead", ErrNotFound, id)
	}
	if err != nil {
		return DeadJob{}, d.q.wrap("get dead", err)
	}
	return deadJob(d.q, found.id, found.place, found.record), nil
}

// Delete removes dead jobs for good and returns how many. Ids that are not dead
// are skipped; those of a queue that was never used are ErrNotFound.
// Purge removes all that match. After an error the count is of what was removed
// for certain; ErrUnconfirmed, and up to 500 more may be.
func (d *DeadLetters) Delete(ctx context.Context, ids ...ID) (int, error) {
	if err := d.q.exist(ctx); err != nil {
		return 0, d.q.wrap("delete", err)
	}
	n := 0
	for len(ids) > 0 {
		var page []redis.XMessage
		for _, id := range ids[:min(len(ids), maxCallItems)] {
			if text, ok := jobid.Text(id); ok {
				page = append(page, redis.XMessage{Values: map[string]any{"i": text}})
			}
		}
		ids = ids[min(len(ids), maxCallItems):]
		marks, err := d.remove(ctx, "purged", 0, page)
		if err != nil {
			return n, d.q.wrap("delete", err)
		}
		n += strings.Count(marks, "k")
	}
	return n, nil
}

// Purge removes the dead jobs that match for good, of those that are dead when
// it is called, and returns how many; a job that is redriven meanwhile is left
// alone, even if it dies again. The zero filter removes all. Errors as Delete, and
// ErrInvalid for a filter that nothing can match.
func (d *DeadLetters) Purge(ctx context.Context, f DeadFilter) (int, error) {
	n := 0
	err := d.match(ctx, f, func(matching []deadEntry) (more bool, err error) {
		marks, err := d.remove(ctx, "purged", 0, messages(matching))
		n += strings.Count(marks, "k")
		return true, err
	})
	return n, d.q.wrap("purge dead", err)
}

// remove deletes the jobs of entries whose death is so long ago, and answers with
// the letters of the script delete. An entry without an ID stands for any death.
func (d *DeadLetters) remove(ctx context.Context, counter string, age time.Duration, page []redis.XMessage) (string, error) {
	if len(page) == 0 {
		return "", nil
	}
	args := []any{counter, ceilMillis(age)}
	for _, e := range page {
		id, _ := e.Values["i"].(string)
		args = append(args, id, e.ID)
	}
	k := &d.q.keys
	marks, err := d.q.call(ctx, scriptDelete, []string{k.dead, k.index, k.meta, k.minutes, laneKey, k.jobs, k.held}, args...)
	if err == nil && len(marks) != len(page) {
		return "", fmt.Errorf("%w: script delete answered %q for %d jobs", ErrUnconfirmed, marks, len(page))
	}
	return marks, err
}
