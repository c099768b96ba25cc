package pawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// run is a job that a worker holds, from its lease to its stored outcome. What
// changes after newRun is guarded by the feed's mutex. Of that, job, policy and ctx
// change once, in decide: the run's own goroutine reads them without it.
type run struct {
	feed   *feed
	id     string
	rec    *record.Record
	bad    error // why rec could not be read
	flags  string
	job    *RawJob
	own    *handler // nil if the kind is unknown here
	policy policy

	visibility time.Duration
	ctx        context.Context
	cancel     context.CancelCauseFunc
	release    context.CancelFunc // frees the timer of the timeout
	endsAt     time.Time          // of the timeout; zero if there is none
	started    time.Time
	leasedAt   time.Time // by the server's clock
	decided    bool      // the policy is known
	unclaimed  bool      // its idempotency key is yet to be asked for
	suspect    bool
	slotless   bool // it came when there was no slot for it, and goes back

	token    string
	until    time.Time // of the lease, by the local clock
	lost     bool
	finished bool
	sent     bool      // its outcome is in a call that has no answer
	next     *relet    // a newer lease, that waits for that answer
	endedAt  time.Time // when its context was seen to have ended
	stuck    bool

	said   atomic.Pointer[aside] // by its handler; nil: nothing
	before remark                // of a run before
}

func newRun(f *feed, l leased) *run {
	w := f.worker
	r := &run{feed: f, id: l.id, flags: l.flags, token: l.token, suspect: l.suspect, started: time.Now(), leasedAt: l.now, before: l.said}
	r.rec, r.bad = l.decode()
	id, _ := jobid.FromText(l.id)
	r.job = rawJob(f.q, id, r.rec)
	r.job.Crashes, r.job.Run, r.job.run = l.crashes, fence(l.token), r
	r.own = w.handlers[r.rec.Kind]
	r.ctx, r.cancel = context.WithCancelCause(w.base)
	r.decided = r.own == nil || r.own.own == nil
	r.unclaimed = idempotencyOf(r.rec) != ""
	r.obey(policy{})
	r.until = r.leaseEnd(l.sent)
	if l.until.After(r.until) {
		r.until = l.until
	}
	return r
}

// decode is the job's record. One that cannot be read is all payload.
func (l leased) decode() (*record.Record, error) {
	rec, err := record.Decode([]byte(l.record))
	if err == nil && len(rec.Then) > maxThen { // another producer's, and too many for a call
		err = fmt.Errorf("%d jobs follow it, at most %d may", len(rec.Then), maxThen)
	}
	if err != nil {
		rec = &record.Record{Payload: []byte(l.record)}
	}
	return rec, err
}

// does reports whether a newer lease of the job is for the same work: a job that was
// replaced, or redriven with other arguments, is not done by the run of the old ones.
// Nor, if they are the same, by a run that began before that: so it has to be the lease
// that ran out which was taken anew.
func (r *run) does(l leased) bool {
	if !strings.Contains(l.flags, "x") {
		return false
	}
	rec, _ := l.decode()
	return rec.Kind == r.rec.Kind && bytes.Equal(rec.Payload, r.rec.Payload) && maps.Equal(rec.Headers, r.rec.Headers)
}

// obey sets the policy, of which own is what the job's type says of this job.
func (r *run) obey(own policy) {
	r.policy = storedPolicy(r.rec)
	if r.own != nil {
		r.policy = r.policy.over(r.own.policy).over(own)
	}
	r.policy = r.policy.over(r.feed.worker.policy())
	r.job.MaxAttempts = r.policy.maxAttempts
	r.visibility = r.policy.visibility
	r.ctx = withJob(r.ctx, r.job)
	r.bound()
}

// bound begins the timeout, once the handler may be called.
func (r *run) bound() {
	if t := r.policy.timeout; t > 0 && r.decided && !r.unclaimed {
		r.endsAt = r.started.Add(t)
		r.ctx, r.release = context.WithDeadlineCause(r.ctx, r.endsAt, ErrTimeout)
	}
}

// decide asks the job's type for its policy. The codec and JobOptions are the
// user's code, which may take its time: so not before the job has started. If its
// context has ended meanwhile, the outcome is that, and the handler is not called.
func (r *run) decide() *outcome {
	if r.decided {
		return nil
	}
	own := r.own.own(r.rec.Kind, r.rec.Payload)
	job := *r.job // others may be looking at it
	r.feed.mu.Lock()
	r.job, r.decided = &job, true
	r.obey(own)
	r.feed.mu.Unlock()
	r.beSeen()
	return r.interrupted()
}

// interrupted is the outcome of a run whose context has ended before its handler
// was called, else nil.
func (r *run) interrupted() *outcome {
	switch cause := context.Cause(r.ctx); {
	case cause == nil:
		return nil
	case errors.Is(cause, ErrShutdown), errors.Is(cause, ErrLeaseLost):
		return &outcome{run: r, verb: verbRelease, unrun: true, event: r.event(nil)}
	default:
		return r.conclude(cause)
	}
}

// beSeen has pulse look at a run whose lease or timeout ends before it would.
func (r *run) beSeen() {
	f := r.feed
	soon := f.worker.cfg.VisibilityTimeout
	f.mu.Lock()
	hurry := r.visibility < soon || time.Until(r.until) < soon/2 || !r.endsAt.IsZero() && time.Until(r.endsAt) < soon
	f.mu.Unlock()
	if hurry {
		nudge(f.beat)
	}
}

// leaseEnd is when a lease that was asked for at sent ends, unless it is
// renewed: the script knows no visibility timeout but the job's own and the
// worker's; that of a handler begins with the first renewal.
func (r *run) leaseEnd(sent time.Time) time.Time {
	if r.rec.Visibility > 0 {
		return sent.Add(r.rec.Visibility)
	}
	return sent.Add(r.feed.worker.cfg.VisibilityTimeout)
}

// policy is what the worker says of jobs that have no policy of their own.
func (w *Worker) policy() policy {
	return policy{maxAttempts: w.cfg.MaxAttempts, timeout: w.cfg.Timeout, maxCrashes: w.cfg.MaxCrashes,
		visibility: w.cfg.VisibilityTimeout, backoff: &w.cfg.Backoff}
}

// rawJob is the job that a record describes.
func rawJob(q *queueState, id ID, rec *record.Record) *RawJob {
	j := &RawJob{ID: id, Queue: q.name, Kind: rec.Kind, Payload: rec.Payload, Headers: rec.Headers,
		Attempt: rec.Attempts + 1, MaxAttempts: rec.MaxAttempts, Crashes: rec.Crashes, Redrives: rec.Redrives,
		EnqueuedAt: jobid.Time(id), Schedule: rec.Schedule, idempotency: idempotencyOf(rec), client: q.client, log: q.client.log}
	j.DueAt = j.EnqueuedAt
	if rec.Due > 0 {
		j.DueAt = time.UnixMilli(rec.Due)
	}
	if rec.Tick > 0 {
		j.ScheduledAt = time.UnixMilli(rec.Tick).UTC()
	}
	if n := len(rec.Failures); n > 0 {
		j.LastError = rec.Failures[n-1].Text
	}
	return j
}

// execute runs the handler and hands its outcome to the feed, whatever the
// handler does: return, panic, or end its goroutine.
func (r *run) execute() {
	var err error
	var out *outcome
	returned := false
	defer func() {
		if !returned {
			value := recover()
			if value == nil {
				value = "the handler ended its goroutine (runtime.Goexit)"
			}
			err = &PanicError{Value: value, Stack: panicStack(debug.Stack())}
		}
		if out == nil {
			out = r.conclude(err)
		}
		if r.release != nil {
			r.release()
		}
		r.feed.finish(out)
	}()
	hooks := &r.feed.worker.client.hooks
	if out = r.decide(); out == nil {
		out = r.unrun()
	}
	if out == nil {
		out = r.claim()
	}
	if strings.Contains(r.flags, "x") {
		r.job.Logger().Warn("pawl: the job's lease ran out: its worker died or hung", "crashes", r.job.Crashes, "runs again", out == nil)
		hooks.crashed(r.ctx, r.event(nil))
	}
	if out == nil {
		hooks.started(r.ctx, r.event(nil))
		err = r.own.run(r.ctx, r.job)
	}
	returned = true
}

// panicStack leaves out the frames between the panic and its recovery, so that
// the first line is the code that panicked.
func panicStack(stack []byte) []byte {
	head, rest, _ := bytes.Cut(stack, []byte("\n"))
	if at := bytes.Index(rest, []byte("\npanic(")); at >= 0 {
		lines := bytes.SplitN(rest[at+1:], []byte("\n"), 3) // the call and its place
		return bytes.Join([][]byte{head, lines[len(lines)-1]}, []byte("\n"))
	}
	return stack
}

func (r *run) event(err error) Event {
	return Event{Job: r.job, Took: time.Since(r.started), Wait: max(0, r.leasedAt.Sub(r.job.DueAt)), Err: err}
}

// unrun is the outcome of a job that is not to be run, else nil.
func (r *run) unrun() *outcome {
	switch {
	case r.bad != nil:
		return r.bury(ReasonCorrupt, r.bad, false)
	case strings.Contains(r.flags, "c"):
		return (&outcome{run: r}).cancelled()
	case r.decided && r.job.Crashes >= r.policy.maxCrashes:
		return r.bury(ReasonCrashed, fmt.Errorf("took %d workers down", r.job.Crashes), false)
	case r.expired():
		return r.bury(ReasonExpired, errors.New("not done within its ExpireIn"), false)
	case r.own == nil:
		return r.unhandled()
	}
	return nil
}

// expired reports whether the job's ExpireIn has passed, by the server's clock.
func (r *run) expired() bool {
	if r.rec.ExpireIn <= 0 {
		return false
	}
	from := r.job.EnqueuedAt
	if r.rec.Since > 0 {
		from = time.UnixMilli(r.rec.Since)
	}
	return r.feed.now().After(from.Add(r.rec.ExpireIn))
}

// now is the server's time.
func (f *feed) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clock.now()
}

// reportLost ends the handler's context because its lease is gone, and has the hooks
// told, once.
func (r *run) reportLost() {
	r.feed.mu.Lock()
	again := r.lost
	r.lost = true
	r.feed.mu.Unlock()
	if a := r.said.Load(); a != nil {
		a.progress.lost.Store(true)
	}
	r.cancel(ErrLeaseLost)
	if !again {
		r.feed.worker.teller.tell(r.tellLost)
	}
}

func (r *run) tellLost() {
	ctx, e := r.seen(ErrLeaseLost)
	e.Job.Logger().Warn("pawl: lease lost; what the handler did may happen twice")
	r.feed.worker.client.hooks.leaseLost(ctx, e)
}

// seen is event, and a context, for others than the run's own goroutine. Without
// an error it is why the handler's context has ended.
func (r *run) seen(err error) (context.Context, Event) {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	if err == nil {
		err = context.Cause(r.ctx)
	}
	return context.WithoutCancel(r.ctx), r.event(err)
}
