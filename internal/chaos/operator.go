package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/pawlq/pawl"
)

// operator is what a producer process does beside its enqueues: it cancels, runs
// at once, redrives and purges.
type operator struct {
	name   string
	queues []*pawl.Queue
	wide   bool
	slow   bool // it is there for long
	out    *Writer
	random *rand.Rand

	mu    sync.Mutex
	calls int
	known []target // jobs that it enqueued, the last ones
}

// target is a job that an operator may meddle with.
type target struct {
	queue *pawl.Queue
	id    pawl.ID
}

func (o *operator) remember(t target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known = append(o.known, t)
	o.known = o.known[max(0, len(o.known)-40):]
}

// classify says what an error leaves behind, by what the library promises.
func classify(err error) (Type, string) {
	switch {
	case err == nil:
		return OK, ""
	case errors.Is(err, pawl.ErrUnconfirmed):
		return Unknown, "unconfirmed"
	case errors.Is(err, pawl.ErrDuplicate):
		return Fail, "duplicate"
	case errors.Is(err, pawl.ErrFull):
		return Fail, "full"
	case errors.Is(err, pawl.ErrNotFound):
		return Fail, "not found"
	case errors.Is(err, pawl.ErrState):
		return Fail, "state"
	default:
		return Fail, fmt.Sprintf("%.80s", err)
	}
}

func (o *operator) operate(ctx context.Context) {
	unit := time.Millisecond
	if o.slow {
		unit *= 5
	}
	for wait(ctx, time.Duration(10+o.random.IntN(40))*unit) == nil {
		q := o.queues[o.random.IntN(len(o.queues))]
		if o.wide && o.random.IntN(20) == 0 {
			o.sweep(ctx, q)
			continue
		}
		switch n := o.random.IntN(20); {
		case n < 5:
			o.one(ctx, Cancel, (*pawl.Queue).Cancel)
		case n < 8:
			o.one(ctx, RunNow, (*pawl.Queue).RunNow)
		case n < 18:
			o.redrive(ctx, q)
		case n == 18:
			o.purge(ctx, q, pawl.StateDelayed)
		default:
			o.purge(ctx, q, pawl.StateDead)
		}
	}
}

// sweep is a call that concerns all of a queue: a redrive of all its dead, or a
// pause, which is ended early half of the time.
func (o *operator) sweep(ctx context.Context, q *pawl.Queue) {
	if o.random.IntN(3) == 0 {
		o.call(ctx, Event{Op: Redrive, Queue: q.Name()}, func(ctx context.Context) (int64, error) {
			report, err := q.Dead().RedriveAll(ctx, pawl.DeadFilter{}, pawl.Redrive{})
			return int64(report.Moved), open(err)
		})
		return
	}
	d := time.Duration(100+o.random.IntN(400)) * time.Millisecond
	o.call(ctx, Event{Op: Pause, Queue: q.Name(), Delay: d.Milliseconds()}, func(ctx context.Context) (int64, error) { return 0, q.Pause(ctx, d) })
	if o.random.IntN(2) == 0 && wait(ctx, d/2) == nil {
		o.call(ctx, Event{Op: Resume, Queue: q.Name()}, func(ctx context.Context) (int64, error) { return 0, q.Resume(ctx) })
	}
}

// open is the error of a call in several steps: some of it may have been done.
func open(err error) error {
	if err != nil && !errors.Is(err, pawl.ErrNotFound) {
		err = fmt.Errorf("%w: %w", pawl.ErrUnconfirmed, err)
	}
	return err
}

func (o *operator) ref() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls++
	return fmt.Sprintf("%s-call-%d", o.name, o.calls)
}

// call writes a call of the operator down, before and after.
func (o *operator) call(ctx context.Context, e Event, do func(context.Context) (int64, error)) {
	e.Type, e.Ref = Invoke, o.ref()
	o.out.Write(e)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var err error
	e.Count, err = do(ctx)
	class := e.Class
	if e.Type, e.Class = classify(err); err == nil {
		e.Class = class
	}
	o.out.Write(e)
}

func (o *operator) one(ctx context.Context, op Op, do func(*pawl.Queue, context.Context, pawl.ID) error) {
	o.mu.Lock()
	known := append([]target(nil), o.known...)
	o.mu.Unlock()
	if len(known) == 0 {
		return
	}
	t := known[o.random.IntN(len(known))]
	o.call(ctx, Event{Op: op, Job: t.id.String()}, func(ctx context.Context) (int64, error) { return 0, do(t.queue, ctx, t.id) })
}

// errRefused: a redrive that was answered moved nothing.
var errRefused = errors.New("refused: the unique key is taken")

// redrive sends one dead job back; half of the time it leaves the dead alone.
func (o *operator) redrive(ctx context.Context, q *pawl.Queue) {
	var ids []uuid.UUID
	for job, err := range q.Dead().List(ctx, pawl.DeadFilter{Limit: 20}) {
		if err != nil {
			return
		}
		ids = append(ids, job.ID)
	}
	if len(ids) == 0 {
		return
	}
	id := ids[o.random.IntN(len(ids))]
	o.call(ctx, Event{Op: Redrive, Job: id.String()}, func(ctx context.Context) (int64, error) {
		report, err := q.Dead().Redrive(ctx, id)
		if err == nil && report.Moved == 0 {
			err = errRefused
		}
		return int64(report.Moved), err
	})
}

// purge removes scrap. An error leaves the count open: some may be gone.
func (o *operator) purge(ctx context.Context, q *pawl.Queue, s pawl.State) {
	o.call(ctx, Event{Op: Purge, Class: string(s)}, func(ctx context.Context) (int64, error) {
		n, err := q.Purge(ctx, s, pawl.Filter{Kind: Scrap{}.Kind()})
		return n, open(err)
	})
}
