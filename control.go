package pawl

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlq/pawl/internal/record"
)

// Cancel ends a job. A waiting one is gone on return; with Retain it is kept, as cancelled. A running one has its
// context cancelled with ErrCancelled within a third of its visibility timeout;
// if its handler returns nil all the same, it is done; whatever else it returns,
// before it has heard of this or after, the job ends and OnCancelled tells.
//
// ErrNotFound: no such job, or it is over and not kept. ErrState: over and kept
// (Retain); or dead, see DeadLetters.Delete. ErrUnconfirmed: it was sent and not
// answered; call it again, and either may then mean that it was done. With any other
// error nothing was done.
func (q *Queue) Cancel(ctx context.Context, id ID) error {
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	found, err := q.inspect(ctx, id)
	if err != nil {
		return q.wrap("cancel", err)
	}
	k := &q.keys
	keys := k.living(k.index, k.meta, k.minutes, laneKey, k.wake, k.done, k.doneAt)
	unique, left := 0, ""
	// A job's unique key never changes, and its idempotency key only with its
	// arguments: reading them beforehand is safe.
	if rec, err := record.Decode([]byte(found.record)); err == nil {
		left = leftBy(rec, StateCancelled, found.now)
		if rec.Unique != nil {
			keys, unique = append(keys, k.unique(rec.Unique.Key)), 1
		}
		if idem := idempotencyOf(rec); idem != "" {
			keys = append(keys, k.idem(idem))
		}
	}
	word := "missing"
	if found.id != "" && found.state != StateDone {
		if word, err = q.call(ctx, scriptCancel, keys, found.id, unique, k.ended(), left); err != nil {
			return q.wrap("cancel", err)
		}
	}
	switch word {
	case "dead":
		return q.wrap("cancel", fmt.Errorf("%w: %s is dead; Dead().Delete removes it", ErrState, id))
	case "missing":
		return q.wrap("cancel", q.notThere(ctx, id))
	}
	return nil
}

// Reschedule moves a delayed or ready job to another time; one that is past
// means now, and leaves a job that is ready as it is. Of a job that was given
// back, or whose lease ran out, another time ends the lease; one that ran out
// counts as a crash. All else stays, ExpireIn too. Errors: ErrInvalid for a time that
// At would refuse; ErrNotFound, no such job; ErrState, it runs, is parked, is
// about to be cancelled, is dead, or over and kept (Retain); ErrFull. In each case the job is as it was.
func (q *Queue) Reschedule(ctx context.Context, id ID, at time.Time) error {
	if err := At(at).apply(&settings{}); err != nil {
		return q.wrap("reschedule", err)
	}
	return q.wrap("reschedule", q.reschedule(ctx, id, max(0, ceilTime(at))))
}

// RunNow makes a delayed job ready. One that is ready already stays as it is.
// Errors as Reschedule.
func (q *Queue) RunNow(ctx context.Context, id ID) error {
	return q.wrap("run now", q.reschedule(ctx, id, 0))
}

func (q *Queue) reschedule(ctx context.Context, id ID, ms int64) error {
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	found, err := q.inspect(ctx, id)
	if err != nil {
		return err
	}
	word := "missing"
	if found.id != "" && found.state != StateDone {
		body := found.record
		if rec, err := record.Decode([]byte(body)); err == nil {
			rec.LongHead = true // with a place for the due time
			body = string(rec.Append(nil))
		}
		k := &q.keys
		word, err = q.call(ctx, scriptReschedule, k.living(k.index, k.wake, laneKey), found.id, ms, body)
		if err != nil {
			return err
		}
	}
	switch word {
	case "ok":
		return nil
	case "missing":
		return q.notThere(ctx, id)
	case "running":
		return fmt.Errorf("%w: %s runs", ErrState, id)
	case "parked":
		return fmt.Errorf("%w: %s waits behind the job that holds its unique key, and runs when that is over", ErrState, id)
	case "cancelled":
		return fmt.Errorf("%w: %s was cancelled and ends with its next lease", ErrState, id)
	default:
		return fmt.Errorf("%w: %s is dead; Dead().Redrive sends it back", ErrState, id)
	}
}

// notThere is why a script did not find a live job: it is over, or there is none. It may
// have ended just now, so that it is looked for after the script.
func (q *queueState) notThere(ctx context.Context, id ID) error {
	switch found, err := q.inspect(ctx, id); {
	case err != nil:
		return err
	case found.state == StateDone:
		return fmt.Errorf("%w: %s is over; Purge removes what is kept of such jobs", ErrState, id)
	default:
		return fmt.Errorf("%w: %s", ErrNotFound, id)
	}
}
