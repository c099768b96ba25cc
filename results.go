package pawl

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Retain keeps the job for a while once it is over: done, cancelled or discarded. Until
// then Get and List find it, with its result, if it has one. Without it a job that
// is over is deleted. A dead one is kept in any case, for as long as
// Config.DeadRetention says, and one that is purged never.
//
// It costs Redis the payload and the result for that time, by its own clock. A queue
// keeps 10,000 such jobs; above that, those go first whose time would be over first.
// More than 0, at most 100 years.
type Retain time.Duration

func (d Retain) apply(s *settings) error {
	switch w := time.Duration(d); {
	case s.retain != 0:
		return twice("Retain")
	case w <= 0:
		return invalidf("Retain(%v) is not above 0: for a job that is not kept, leave it out", w)
	case w > maxWait:
		return invalidf("Retain(%v) is above 100 years: give less", w)
	default:
		s.retain = w
		return nil
	}
}

// HandleResult is Handle for a handler with a result. If the job has Retain, what
// the handler returns with a nil error is kept with it, as by RawJob.SetResult;
// else it is dropped. With an error it is dropped too. For a Kind, give a handler
// to Kind.Handle that calls SetResult.
func HandleResult[T Args, R any](w *Worker, fn func(context.Context, *Job[T]) (R, error), opts ...HandleOption) {
	if fn == nil {
		Handle[T](w, nil, opts...)
		return
	}
	Handle(w, func(ctx context.Context, job *Job[T]) error {
		result, err := fn(ctx, job)
		if err == nil {
			job.SetResult(result)
		}
		return err
	}, opts...)
}

// staged is what a handler wants to be stored with its success.
type staged struct {
	run    *run
	mu     sync.Mutex
	result any
	given  bool
	then   []*item // follow-ups in the same queue, and how many bytes they have
	bytes  int
	onward []onward // follow-ups in other queues
	errs   []error  // of follow-ups that cannot be
}

// SetResult says what the result of the job is, if this run succeeds. It is stored
// with the success, in one step, if the job has Retain; else it is dropped, and not
// even encoded. Of several calls the last one counts. It does nothing for a literal,
// and after the handler has returned.
//
// Config.Codec encodes v, under the job's kind, after the handler has returned: do not
// change it any more. It may come to as many bytes as a payload (Config.MaxPayload). If
// it does not encode, or is too large, the run has failed, and no retry would cure it:
// the job is dead, reason "permanent", although its handler has returned nil. For
// nobody could ever see that result.
func (j *RawJob) SetResult(v any) {
	if j.run == nil {
		return
	}
	s := &j.run.aside().staged
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result, s.given = v, true
}

// succeed is the outcome of a run whose handler has returned nil, or why the run has
// failed all the same. What follows in other queues is enqueued last of all: by then
// nothing of this run can fail any more.
func (r *run) succeed() (*outcome, error) {
	result, err := r.result()
	if err != nil {
		return nil, Permanent(err)
	}
	if err := r.handedOn(); err != nil {
		return nil, err
	}
	counter := "done"
	if r.rec.Kind == canaryName {
		counter = canaryCounter
	}
	return &outcome{run: r, verb: verbSettle, counter: counter, result: result, then: r.followers()}, nil
}

// result is the staged result, encoded, or nil: there is none, or nobody to see it.
func (r *run) result() ([]byte, error) {
	a := r.said.Load()
	if a == nil || r.rec.Retain <= 0 {
		return nil, nil
	}
	a.staged.mu.Lock()
	v, given := a.staged.result, a.staged.given
	a.staged.mu.Unlock()
	if !given {
		return nil, nil
	}
	body, err := r.feed.q.client.codec.Encode(r.rec.Kind, v)
	switch most := r.feed.q.client.max; {
	case err != nil:
		return nil, fmt.Errorf("the result, a %T, does not encode: %w", v, err)
	case len(body) > most:
		return nil, fmt.Errorf("the result: %w: %d bytes, at most %d: store the thing and return its key", ErrTooLarge, len(body), most)
	case body == nil:
		return []byte{}, nil // an empty result is one
	}
	return body, nil
}
