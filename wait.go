package pawl

import (
	"context"
	"fmt"

	"github.com/pawlq/pawl/internal/jobid"
)

// JobError is what Wait returns of a job that was not done.
type JobError struct {
	ID     ID
	State  State      // StateDead, StateCancelled or StateDiscarded
	Reason DeadReason // of a dead job; else ""
	Text   string     // the error of a dead job's last attempt, cut at 4 KiB; else ""
}

func (e *JobError) Error() string {
	if e.State == StateDead {
		return fmt.Sprintf("pawl: job %s is dead, %s: %s", e.ID, e.Reason, e.Text)
	}
	return fmt.Sprintf("pawl: job %s was %s", e.ID, e.State)
}

// Wait returns when the job has ended, at once if it has already: with nil if it is
// done, with a *JobError if it is dead, cancelled or discarded. Its JobInfo is as
// Get's, in both cases. It waits for as long as ctx lets it, for ever if that
// never ends: there is no timeout of its own. What follows the job (Then) is another
// job, which it does not wait for.
//
// A job that is done, cancelled or discarded is found only if it was enqueued with
// Retain, and until that time is over; a dead one is, until it is redriven or
// deleted. Errors else: ErrNotFound, at once or as soon as it is seen, for a job
// that is gone or never was; why ctx ended, and with it what Redis said last if
// that did not answer; Redis's own if it refuses for good.
//
// Any number of waits cost one goroutine and one connection of the pool a queue, and
// two goroutines and one subscribed connection a Client, for as long as somebody
// waits. The end of a job with Retain is told at once; others are looked for every 2
// s, less often if there are thousands, and so are all if SUBSCRIBE is refused.
func (q *Queue) Wait(ctx context.Context, id ID) (JobInfo, error) {
	info, err := q.wait(ctx, id)
	return info, q.wrap("wait", err)
}

func (q *queueState) wait(ctx context.Context, id ID) (JobInfo, error) {
	if q.err != nil {
		return JobInfo{}, q.err
	}
	text, ok := jobid.Text(id)
	if !ok {
		return JobInfo{}, fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	end, err := q.lobby.wait(ctx, text)
	if err == nil && end.state == "" {
		err = fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	if err != nil {
		return JobInfo{}, err
	}
	info := end.info(q)
	switch info.State {
	case StateDone:
		return info, nil
	case StateDead:
		dead := deadJob(q, end.id, end.place, end.record)
		return info, &JobError{ID: id, State: info.State, Reason: dead.Reason, Text: dead.Error}
	default:
		return info, &JobError{ID: id, State: info.State}
	}
}

// Await is Wait for the result of a job, decoded by Config.Codec under the job's
// kind. Errors as Wait's; ErrState if the job is done and has no result, because its
// handler gave none, or did not run (Idempotency); the codec's if the result does
// not fit R.
func Await[R any](ctx context.Context, q *Queue, id ID) (R, error) {
	var result, none R
	info, err := q.wait(ctx, id)
	switch {
	case err != nil:
	case info.Result == nil:
		err = fmt.Errorf("%w: job %s is done and has no result", ErrState, id)
	default:
		if err = q.client.codec.Decode(info.Kind, info.Result, &result); err != nil {
			err = fmt.Errorf("the result of job %s does not fit %T: %w", id, result, err)
		}
	}
	if err != nil {
		return none, q.wrap("await", err)
	}
	return result, nil
}
