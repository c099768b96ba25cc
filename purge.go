package pawl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Purge removes the jobs of one state that match, ready, delayed, parked, dead or done,
// for good, without a post-mortem, and returns how many. Of StateDone are all that are
// over and kept (Retain). A job is removed only if it
// is still in that state when its turn comes; what comes into it meanwhile may
// or may not be removed. Running jobs are ended by Cancel. Its hooks are none,
// its counter Purged, but for jobs that are over: those have been counted.
//
// It works in steps of up to 500 jobs, each whole, until it is done or ctx ends;
// the jobs of the steps before an error are gone, and counted. Errors:
// ErrInvalid, StateRunning, another state or a filter that nothing can match; ErrNotFound if the
// queue was never used; ErrUnconfirmed, and up to 500 jobs more may be gone.
func (q *Queue) Purge(ctx context.Context, s State, f Filter) (int64, error) {
	if s == StateRunning {
		return 0, q.wrap("purge", invalidf("running jobs are not purged: end each by Cancel"))
	}
	n := int64(0)
	err := q.walk(ctx, s, f, func(page []JobInfo) (more bool, err error) {
		var matching []JobInfo
		for _, info := range page {
			if f.matches(&info.RawJob) && (f.Limit <= 0 || n+int64(len(matching)) < int64(f.Limit)) {
				matching = append(matching, info)
			}
		}
		gone, err := q.erase(ctx, s, matching)
		n += int64(gone)
		return f.Limit <= 0 || n < int64(f.Limit), err
	})
	return n, q.wrap("purge", err)
}

// erase removes jobs that were seen in a state, and returns how many.
func (q *queueState) erase(ctx context.Context, s State, jobs []JobInfo) (int, error) {
	if len(jobs) == 0 {
		return 0, nil
	}
	if s == StateDead {
		page := make([]redis.XMessage, len(jobs))
		for i, j := range jobs {
			page[i] = redis.XMessage{ID: j.place, Values: map[string]any{"i": j.text}}
		}
		marks, err := (&DeadLetters{q}).remove(ctx, "purged", 0, page)
		return strings.Count(marks, "k"), err
	}
	k := &q.keys
	if s == StateDone {
		return q.forget(ctx, jobs)
	}
	keys := k.living(k.meta, k.minutes, laneKey, k.wake)
	fixed := len(keys)
	args := []any{string(s)}
	for _, j := range jobs {
		var places any
		keys, places = k.heldBy(keys, fixed, j.Unique, j.Idempotency)
		args = append(args, j.text, places)
	}
	marks, err := q.call(ctx, scriptPurge, keys, args...)
	return strings.Count(marks, "k"), err
}

// Destroy deletes the queue and everything in it, the dead and the counters
// included, in one step; then the unique and idempotency keys that are left,
// windows too. What a worker of it does next it does to a new queue of that name,
// and an enqueue makes one. It takes the queue off the list of Client.Queues, to
// which a worker that still serves it adds it again with its next beat.
//
// The last part looks at every key of the server, as Check does. Errors:
// ErrState while jobs run, and nothing was deleted; ErrNotFound if the queue
// was never used. Any other: it may be deleted in part; call it again until it is
// ErrNotFound.
func (q *Queue) Destroy(ctx context.Context) error {
	return q.wrap("destroy", q.destroy(ctx))
}

func (q *Queue) destroy(ctx context.Context) error {
	if q.err != nil {
		return q.err
	}
	k := &q.keys
	word, err := q.call(ctx, scriptDestroy, append(k.living(k.dead, k.index, k.meta, k.minutes, k.wake, laneKey), k.workers, k.info,
		k.done, k.doneAt, k.schedules, k.scheduleTimes, k.scheduleStates))
	switch {
	case err != nil:
		return err
	case word == "running":
		return fmt.Errorf("%w: jobs run: wait for them, or cancel each", ErrState)
	}
	left, err := q.freeKeys(ctx)
	if err != nil {
		return err
	}
	_, err = await(ctx, q.client.rdb, func(ctx context.Context) (int64, error) {
		return q.client.rdb.SRem(ctx, queuesKey(q.client.namespace), q.name).Result()
	})
	q.listAt.Store(0)
	if err == nil && word == "missing" && left == 0 {
		err = q.missing()
	}
	return err
}

// freeKeys deletes the unique and idempotency keys whose jobs are gone, and returns
// how many.
func (q *queueState) freeKeys(ctx context.Context) (n int, err error) {
	node, err := nodeOf(ctx, q)
	if err != nil {
		return 0, err
	}
	for cursor := uint64(0); ; {
		type page struct {
			keys []string
			next uint64
		}
		p, err := await(ctx, q.client.rdb, func(ctx context.Context) (page, error) {
			keys, next, err := node.Scan(ctx, cursor, q.keys.prefix+"*", 1000).Result()
			keys = slices.DeleteFunc(keys, func(key string) bool {
				return !strings.HasPrefix(key, q.keys.unique("")) && !strings.HasPrefix(key, q.keys.idem(""))
			})
			return page{keys, next}, err
		})
		if err != nil {
			return n, err
		}
		for keys := p.keys; len(keys) > 0; {
			some := keys[:min(len(keys), maxCallItems)]
			keys = keys[len(some):]
			marks, err := q.call(ctx, scriptFree, append([]string{q.keys.jobs, q.keys.held, laneKey}, some...))
			if err != nil {
				return n, err
			}
			n += strings.Count(marks, "k")
		}
		if cursor = p.next; cursor == 0 {
			return n, nil
		}
	}
}
