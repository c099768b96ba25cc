package pawl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// What a handler wants to follow its run: RawJob.Then and RawJob.ThenOn.

const (
	// maxStaged is how many follow-ups of each kind a run may have: with those of its
	// record they fit into one call.
	maxStaged = maxCallRuns
	// thenOnFor is how long a run knows what an earlier run of its job has handed on.
	thenOnFor = 24 * time.Hour
)

// onward is a follow-up in another queue.
type onward struct {
	queue *queueState
	item  *item
}

// Then stages a follow-up in the same queue. It is enqueued if, and only if, this run is
// acknowledged as done, and in the script that does it: not if the handler returns an error, if
// the lease was lost, or if the worker dies before. Options are those of Enqueue; see
// the option Then for what they mean here.
//
// The arguments are encoded, and Config.Inject is asked with the handler's context, by
// this call. There is nobody to return an error to: if anything is wrong, ErrInvalid or
// ErrTooLarge, the run has failed when the handler returns nil, and the job is dead, reason
// "permanent", as no retry would cure it. So it is with more than 250 calls in a run, or
// with more than 1 MiB in several.
//
// Of a run that does not succeed all that was staged is dropped. A literal does nothing.
func (j *RawJob) Then(args Args, opts ...Option) {
	if j.run == nil {
		return
	}
	it, err := j.run.feed.q.prepare(j.run.ctx, args, opts)
	j.run.aside().staged.follow(it, err)
}

// ThenOn is Then for another queue. Two queues share no script, so it is weaker:
// the follow-up is enqueued after the handler has returned nil and just before the
// acknowledgement. If the worker dies in between, or loses its lease, it is there although
// the job is not done, and the job runs again; that run adds no second one, since each is
// enqueued under a unique key made of this job's id and of its place, first, second and so on,
// among the calls of the run. So let each run make them in the same order. The key is held
// for 24 h: a run that comes later than that after the first, such as a late redrive, adds
// another one.
//
// If it cannot be enqueued the run has failed, and is tried again by policy. Then some of
// several may be there: the next run adds the rest. It is not tried when the context has ended with
// ErrLeaseLost. Unique is ErrInvalid here, and that of the type does not
// hold: Idempotency does. What is wrong with arguments, options or the name of
// the queue makes the job dead, as in Then. With the name of its own queue it is Then.
func (j *RawJob) ThenOn(queue string, args Args, opts ...Option) {
	if queue == j.Queue {
		j.Then(args, opts...)
		return
	}
	if j.run == nil {
		return
	}
	j.run.aside().staged.handOn(j.client.queue(queue), j.ID, args, opts)
}

// handOn stages one follow-up in another queue, or keeps the error.
func (s *staged) handOn(q *queueState, id ID, args Args, opts []Option) {
	ctx := s.run.ctx
	raw, own, err := q.draft(ctx, args, opts)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.onward) + 1
	switch {
	case err != nil:
	case slices.ContainsFunc(opts, isUnique):
		err = invalidf("Unique of a follow-up in another queue: leave it out, as it has a key of its own; against two at once use Idempotency")
	case n > maxStaged:
		err = tooMany()
	}
	if err != nil {
		s.errs = append(s.errs, fmt.Errorf("ThenOn %q: %w", q.name, err))
		return
	}
	own.unique = &Unique{Key: Key("then", id, n), For: thenOnFor}
	s.onward = append(s.onward, onward{q, q.item(raw, own)})
}

func isUnique(o Option) bool {
	switch o.(type) {
	case Unique, *Unique:
		return true
	}
	return false
}

func tooMany() error {
	return invalidf("more than %d follow-ups in a run: enqueue one that enqueues the others", maxStaged)
}

// follow stages one follow-up in the same queue, or keeps the error.
func (s *staged) follow(it *item, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
	case len(s.then) == maxStaged:
		err = tooMany()
	case len(s.then) > 0 && s.bytes+it.size() > maxCallBytes:
		err = fmt.Errorf("%w: the follow-ups of a run have more than %d bytes: enqueue one that enqueues the others", ErrTooLarge, maxCallBytes)
	}
	if err != nil {
		s.errs = append(s.errs, fmt.Errorf("Then %d: %w", len(s.then)+1, err))
		return
	}
	s.then, s.bytes = append(s.then, it), s.bytes+it.size()
}

// handedOn is what stands in the way of a run whose handler has returned nil, or nil. What
// follows in other queues is enqueued then.
func (r *run) handedOn() error {
	a := r.said.Load()
	if a == nil {
		return nil
	}
	a.staged.mu.Lock()
	err, list := errors.Join(a.staged.errs...), a.staged.onward
	a.staged.mu.Unlock()
	switch {
	case err != nil:
		return Permanent(err)
	case len(list) == 0:
		return nil
	case errors.Is(context.Cause(r.ctx), ErrLeaseLost):
		return fmt.Errorf("%w: nothing is handed on to other queues", ErrLeaseLost)
	}
	ctx := context.WithoutCancel(r.ctx) // a timeout that came too late changes nothing
	for i, next := range list {
		if _, err := (&Queue{next.queue}).enqueueOne(ctx, next.item, nil); err != nil {
			return fmt.Errorf("ThenOn, %d of %d: %w", i+1, len(list), err)
		}
	}
	return nil
}
