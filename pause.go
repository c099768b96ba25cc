package pawl

import (
	"context"
	"fmt"
	"time"
)

// Forever switches a bound off where zero means "the default", as in
// Config.DeadRetention, and pauses a queue until it is resumed.
const Forever time.Duration = -1

// pausedForever is the ms that stand for a pause without an end.
const pausedForever = lastMilli

// Pause stops leasing, here and in every worker, from the moment it returns;
// running jobs go on, what was leased in the moment before among them. After d,
// rounded up to a millisecond, leasing goes on by itself; with Forever, or 0,
// when Resume is called. A pause of a paused queue puts the new end in the place
// of the old one, be it earlier or later. Jobs can be enqueued meanwhile, and
// ExpireIn is counted on.
//
// Errors: ErrInvalid for another negative d or one above 100 years; ErrNotFound
// if this queue was never used, so that a slip of the pen
// does not pass for a pause; ErrUnconfirmed, and it may be paused.
func (q *Queue) Pause(ctx context.Context, d time.Duration) error {
	ms := ceilMillis(d)
	switch {
	case d == 0 || d == Forever:
		ms = -1
	case d < 0 || d > maxWait:
		return q.wrap("pause", invalidf("a pause of %v: give a time above 0 and of at most 100 years, or Forever, which is 0 too", d))
	}
	return q.wrap("pause", q.setPause(ctx, ms))
}

// Resume ends a pause at once. Of a queue that is not paused it changes nothing.
// Errors: ErrNotFound as Pause; ErrUnconfirmed, and it may be resumed.
func (q *Queue) Resume(ctx context.Context) error {
	return q.wrap("resume", q.setPause(ctx, 0))
}

func (q *Queue) setPause(ctx context.Context, ms int64) error {
	if q.err != nil {
		return q.err
	}
	k := &q.keys
	word, err := q.call(ctx, scriptPause, []string{k.meta, k.wake, laneKey, k.jobs, k.held, k.dead, k.workers, k.schedules}, ms)
	if err == nil && word == "missing" {
		err = q.missing()
	}
	return err
}

// missing is the error of a call to a queue that nobody has used.
func (q *queueState) missing() error {
	return fmt.Errorf("%w: queue %q never had a job, a worker or a schedule, or was destroyed", ErrNotFound, q.name)
}

// exist is nil if the queue has ever had a job, a worker or a schedule.
func (q *queueState) exist(ctx context.Context) error {
	if q.err != nil {
		return q.err
	}
	k := &q.keys
	n, err := await(ctx, q.client.rdb, func(ctx context.Context) (int64, error) {
		return q.client.rdb.Exists(ctx, k.meta, k.jobs, k.held, k.dead, k.workers, k.schedules).Result()
	})
	if err == nil && n == 0 {
		err = q.missing()
	}
	return err
}
