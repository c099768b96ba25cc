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

// callTimeout is how long a producer waits for an answer: shorter than some
// faults, so that some calls stay unknown.
const callTimeout = 1500 * time.Millisecond

// producers is how many callers enqueue at once: their calls share round trips.
const producers = 4

// produce enqueues the jobs, and has an operator meddle with them meanwhile.
func produce(ctx context.Context, cfg childConfig, q *pawl.Queue, out *Writer) {
	o := &operator{name: cfg.Name, q: q, out: out, random: rand.New(rand.NewPCG(cfg.Seed, 1<<32))}
	operating, stop := context.WithCancel(ctx)
	var operators, callers sync.WaitGroup
	operators.Go(func() { o.operate(operating) })
	for i := range producers {
		n := cfg.Jobs / producers
		if i < cfg.Jobs%producers {
			n++
		}
		random := rand.New(rand.NewPCG(cfg.Seed, uint64(i)))
		next := time.Now()
		callers.Go(func() {
			for k := range n {
				// By the clock, so that what an outage held up is caught up with.
				next = next.Add(time.Duration(random.IntN(2*cfg.Pace*producers+1)) * time.Millisecond)
				if wait(ctx, time.Until(next)) != nil {
					return
				}
				d := newDraft(random, fmt.Sprintf("%s-%d-%d", cfg.Name, i, k), cfg)
				o.enqueue(ctx, d)
			}
		})
	}
	callers.Wait()
	_ = wait(ctx, time.Second) // the last deaths are to be redriven too
	stop()
	operators.Wait()
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// operator is what a producer process does beside its enqueues: it cancels, runs
// at once, redrives and purges.
type operator struct {
	name   string
	q      *pawl.Queue
	out    *Writer
	random *rand.Rand

	mu    sync.Mutex
	calls int
	known []pawl.ID // of jobs that it enqueued, the last ones
}

func (o *operator) enqueue(ctx context.Context, d draft) {
	o.out.Write(d.invoke)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	job, err := o.q.Enqueue(ctx, d.args, d.options...)
	e := Event{Op: Enqueue, Ref: d.invoke.Ref, Duplicate: job.Duplicate}
	if job.ID != (pawl.ID{}) {
		e.Job = job.ID.String()
	}
	e.Type, e.Class = classify(err)
	if errors.Is(err, pawl.ErrDuplicate) {
		e.Job = "" // the holder's
	}
	o.out.Write(e)
	if err == nil && !job.Duplicate {
		o.mu.Lock()
		o.known = append(o.known, job.ID)
		o.known = o.known[max(0, len(o.known)-40):]
		o.mu.Unlock()
	}
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
	for wait(ctx, time.Duration(10+o.random.IntN(40))*time.Millisecond) == nil {
		switch n := o.random.IntN(20); {
		case n < 5:
			o.one(ctx, Cancel, o.q.Cancel)
		case n < 8:
			o.one(ctx, RunNow, o.q.RunNow)
		case n < 18:
			o.redrive(ctx)
		case n == 18:
			o.purge(ctx, pawl.StateDelayed)
		default:
			o.purge(ctx, pawl.StateDead)
		}
	}
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

func (o *operator) one(ctx context.Context, op Op, do func(context.Context, pawl.ID) error) {
	o.mu.Lock()
	known := append([]pawl.ID(nil), o.known...)
	o.mu.Unlock()
	if len(known) == 0 {
		return
	}
	id := known[o.random.IntN(len(known))]
	o.call(ctx, Event{Op: op, Job: id.String()}, func(ctx context.Context) (int64, error) { return 0, do(ctx, id) })
}

// errRefused: a redrive that was answered moved nothing.
var errRefused = errors.New("refused: the unique key is taken")

// redrive sends one dead job back; half of the time it leaves the dead alone.
func (o *operator) redrive(ctx context.Context) {
	var ids []uuid.UUID
	for job, err := range o.q.Dead().List(ctx, pawl.DeadFilter{Limit: 20}) {
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
		report, err := o.q.Dead().Redrive(ctx, id)
		if err == nil && report.Moved == 0 {
			err = errRefused
		}
		return int64(report.Moved), err
	})
}

// purge removes scrap. An error leaves the count open: some may be gone.
func (o *operator) purge(ctx context.Context, s pawl.State) {
	o.call(ctx, Event{Op: Purge, Class: string(s)}, func(ctx context.Context) (int64, error) {
		n, err := o.q.Purge(ctx, s, pawl.Filter{Kind: Scrap{}.Kind()})
		if err != nil && !errors.Is(err, pawl.ErrNotFound) {
			err = fmt.Errorf("%w: %w", pawl.ErrUnconfirmed, err)
		}
		return n, err
	})
}
