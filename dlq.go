package pawl

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// DeadLetters is the dead-letter queue of a queue: one post-mortem per job that
// gave up. Safe for concurrent use.
type DeadLetters struct{ q *queueState }

// Dead is the queue's dead-letter queue.
func (q *Queue) Dead() *DeadLetters { return &DeadLetters{q.queueState} }

// RedriveReport counts what a redrive did.
type RedriveReport struct {
	Matched, Moved int
	// Refused: a live job, Holder, holds the unique key. The dead job stays.
	Refused []RefusedRedrive
}

// RefusedRedrive is a dead job whose unique key another job holds.
type RefusedRedrive struct{ ID, Holder ID }

// Len is how many jobs are dead.
func (d *DeadLetters) Len(ctx context.Context) (int64, error) {
	if d.q.err != nil {
		return 0, d.q.wrap("count dead", d.q.err)
	}
	n, err := await(ctx, func(ctx context.Context) (int64, error) { return d.q.client.rdb.XLen(ctx, d.q.keys.dead).Result() })
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

// Redrive sends jobs back to ready with fresh attempts and crashes. Id, history
// and idempotency key stay, and a unique key is taken again, or the job is
// Refused. The ids that are not dead are named in an error that wraps
// ErrNotFound; the others were moved all the same. Redriving twice moves once.
func (d *DeadLetters) Redrive(ctx context.Context, ids ...ID) (RedriveReport, error) {
	report := RedriveReport{}
	if d.q.err != nil {
		return report, d.q.wrap("redrive", d.q.err)
	}
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	var missing []string
	for _, id := range ids {
		word, err := d.redrive(ctx, id)
		if err != nil {
			return report, d.q.wrap("redrive", err)
		}
		switch word {
		case "missing":
			missing = append(missing, id.String())
			continue
		case "ok":
			report.Moved++
		default:
			holder, _ := jobid.FromText(word)
			report.Refused = append(report.Refused, RefusedRedrive{id, holder})
		}
		report.Matched++
	}
	if len(missing) > 0 {
		return report, d.q.wrap("redrive", fmt.Errorf("%w among the dead: %s", ErrNotFound, strings.Join(missing, ", ")))
	}
	return report, nil
}

// redrive moves one job and returns the script's word for it. A job that was
// redriven and died again since it was read is read again.
func (d *DeadLetters) redrive(ctx context.Context, id ID) (string, error) {
	k := &d.q.keys
	for {
		found, err := d.q.inspect(ctx, id)
		if err != nil || found.state != StateDead {
			return "missing", err
		}
		rec, err := record.Decode([]byte(found.record))
		if err != nil {
			return "", fmt.Errorf("%w: %s: its post-mortem cannot be read: %w", ErrState, id, err)
		}
		body := revived(rec, found.now).Append(nil)
		if rec.Dead != nil && rec.Dead.Reason == string(ReasonCorrupt) {
			body = rec.Payload // as it was: whoever knows its layout may read it
		}
		keys := []string{k.jobs, k.held, k.due, k.prio, k.runs, k.dead, k.index, k.meta, k.wake, laneKey}
		how := ""
		if u := rec.Unique; u != nil {
			mode, till := 'd', int64(0)
			if UniqueUntil(u.Until) == UntilStarted {
				mode = 's'
			}
			if u.For > 0 {
				till = ceilTime(jobid.Time(id).Add(u.For))
			}
			keys = append(keys, k.unique(u.Key))
			how = fmt.Sprintf("1 %c %d", mode, till)
		}
		word, err := d.q.call(ctx, scriptRedrive, keys, found.id, found.place, body, how)
		if err != nil || word != "changed" {
			return word, err
		}
	}
}

// Delete removes dead jobs for good and returns how many. Ids that are not dead
// are skipped.
func (d *DeadLetters) Delete(ctx context.Context, ids ...ID) (int, error) {
	if d.q.err != nil {
		return 0, d.q.wrap("delete", d.q.err)
	}
	k, n := &d.q.keys, 0
	for len(ids) > 0 {
		var args []any
		for _, id := range ids[:min(len(ids), maxCallItems)] {
			if text, ok := jobid.Text(id); ok {
				args = append(args, text)
			}
		}
		ids = ids[min(len(ids), maxCallItems):]
		if len(args) == 0 {
			continue
		}
		marks, err := d.q.call(ctx, scriptDelete, []string{k.dead, k.index, k.meta, laneKey}, args...)
		if err != nil {
			return n, d.q.wrap("delete", err)
		}
		n += strings.Count(marks, "k")
	}
	return n, nil
}

// await runs a call that only reads, and returns when ctx ends (after 5 s if it
// has no deadline), since go-redis does not heed a context while it reads.
func await[T any](ctx context.Context, fn func(context.Context) (T, error)) (T, error) {
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
