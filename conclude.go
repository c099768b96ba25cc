package pawl

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/pawlq/pawl/internal/record"
)

// outcome is what is to become of a run, on its way to Redis.
type outcome struct {
	run     *run
	verb    verb
	counter string        // settle: done, canary, skipped, discarded, cancelled; retry: retried, snoozed
	delay   time.Duration // retry
	record  []byte        // retry: the new record; bury: the post-mortem; finish: what is kept
	result  []byte        // settle: encoded; nil if there is none
	then    []*item       // settle, finish: what follows
	left    string        // retry: what it leaves if it is over; see leftBy
	also    string        // bury: what is counted beside the death: failed, expired
	unrun   bool          // release: its handler was not called
	reason  DeadReason
	err     error
	event   Event
}

// cancelled turns the outcome into the end of a cancelled job.
func (o *outcome) cancelled() *outcome {
	return &outcome{run: o.run, verb: verbSettle, counter: "cancelled", err: ErrCancelled, event: o.run.event(ErrCancelled)}
}

// superseded turns the outcome of a job that was not put back, because another waited
// behind it, into the end that it had.
func (o *outcome) superseded() *outcome {
	return &outcome{run: o.run, verb: verbSettle, counter: "discarded", err: o.err, event: o.event}
}

// conclude reads a handler's error. The cause of an ended context comes first:
// a job is not blamed for what its worker did to it.
func (r *run) conclude(err error) (out *outcome) {
	defer func() {
		if p := recover(); p != nil { // in RetryFunc, or in an error's own methods
			out = r.bury(ReasonPermanent, &PanicError{Value: p, Stack: panicStack(debug.Stack())}, true)
		} else if out == nil { // runtime.Goexit there
			out = r.bury(ReasonPermanent, errors.New("runtime.Goexit in RetryFunc, or in the codec"), true)
			out.event = r.event(out.err)
			if r.release != nil {
				r.release()
			}
			r.feed.finish(out)
			return
		}
		out.event = r.event(out.err)
	}()
	if err == nil {
		if out, err = r.succeed(); err == nil {
			return out
		}
	}
	switch cause := context.Cause(r.ctx); {
	case errors.Is(cause, ErrShutdown), errors.Is(cause, ErrLeaseLost):
		if r.policy.maxAttempts == 1 && r.policy.maxCrashes == 1 {
			return r.bury(ReasonExhausted, err, true) // at most once: it has begun
		}
		return &outcome{run: r, verb: verbRelease, err: err}
	case errors.Is(cause, ErrCancelled):
		return (&outcome{run: r}).cancelled()
	case errors.Is(cause, ErrTimeout) && !errors.Is(err, ErrTimeout):
		err = fmt.Errorf("%w after %v: %w", ErrTimeout, r.policy.timeout, err)
	}
	kind, delay, cause := verdict(err)
	switch kind {
	case outcomeDiscard:
		return &outcome{run: r, verb: verbSettle, counter: "discarded", err: cause}
	case outcomePermanent:
		reason := ReasonPermanent
		if errors.Is(err, errUndecodable) {
			reason = ReasonUndecodable
		}
		return r.bury(reason, cause, true)
	case outcomeSnooze:
		return r.putBack(delay, "snoozed", cause, func(rec *record.Record) { rec.Snoozes++ })
	case outcomeRetryAfter:
		return r.retry(cause, func() (time.Duration, bool) { return delay, true })
	default:
		return r.retry(cause, func() (time.Duration, bool) { return r.backoff(cause) })
	}
}

// backoff is the wait before the next attempt, or false to give up.
func (r *run) backoff(err error) (time.Duration, bool) {
	if fn := r.policy.retry; fn != nil {
		d := fn(Failure{Job: r.job, Attempt: r.job.Attempt, Err: err})
		return d, d >= 0
	}
	return r.policy.backoff.Delay(r.job.Attempt), true
}

// retry spends an attempt. The wait is asked for only if there is one left.
func (r *run) retry(err error, wait func() (time.Duration, bool)) *outcome {
	if r.job.Attempt >= r.policy.maxAttempts {
		return r.bury(ReasonExhausted, err, true)
	}
	delay, more := wait()
	if !more {
		return r.bury(ReasonPermanent, err, true)
	}
	return r.putBack(delay, "retried", err, func(rec *record.Record) { r.fail(rec, err) })
}

// putBack has the job run again after delay, with what change does to its record.
func (r *run) putBack(delay time.Duration, counter string, err error, change func(*record.Record)) *outcome {
	if r.expired() {
		return r.bury(ReasonExpired, err, counter == "retried")
	}
	rec := *r.rec
	rec.LongHead, rec.Started, rec.Crashes = true, true, r.job.Crashes
	rec.UnknownSince, rec.PutBacks = 0, 0
	change(&rec)
	return &outcome{run: r, verb: verbRetry, counter: counter, delay: delay, record: rec.Append(nil), err: err}
}

// unhandled puts a job of a kind that has no handler here back for another
// worker, without spending an attempt, or buries it after the grace.
func (r *run) unhandled() *outcome {
	w := r.feed.worker
	now := r.feed.now().UnixMilli()
	since := r.rec.UnknownSince
	if since == 0 {
		since = now
	}
	err := fmt.Errorf("no handler for kind %q in worker %s", r.rec.Kind, w.cfg.Name)
	if time.Duration(now-since)*time.Millisecond >= w.cfg.UnknownKindGrace {
		return r.bury(ReasonUnhandled, err, false)
	}
	if _, warned := w.unknown.LoadOrStore(r.rec.Kind, true); !warned {
		w.client.log.Warn("pawl: no handler for this kind; its jobs wait for a worker that has one",
			"queue", r.feed.q.name, "kind", r.rec.Kind, "grace", w.cfg.UnknownKindGrace)
	}
	delay := min(time.Second<<min(r.rec.PutBacks, 6), time.Minute)
	started := r.rec.Started
	out := r.putBack(delay, "snoozed", err, func(rec *record.Record) {
		rec.Started, rec.UnknownSince, rec.PutBacks = started, since, r.rec.PutBacks+1
	})
	out.event = r.event(err)
	return out
}

// The sizes at which error texts are cut.
const (
	maxErrorText   = 4 << 10
	maxFailureText = 1 << 10
	maxStackText   = 16 << 10
	maxFailures    = 5
)

// fail adds a failed attempt to a record.
func (r *run) fail(rec *record.Record, err error) {
	now := r.feed.now().UnixMilli()
	rec.Attempts++
	if rec.FirstFailedAt == 0 {
		rec.FirstFailedAt = now
	}
	failures := append(append([]record.Failure{}, rec.Failures...), record.Failure{
		Attempt: rec.Attempts, At: now, Took: time.Since(r.started), Text: cut(err.Error(), maxFailureText)})
	rec.Failures = failures[max(0, len(failures)-maxFailures):]
}

// bury ends the job with a post-mortem.
func (r *run) bury(reason DeadReason, err error, failed bool) *outcome {
	rec := *r.rec
	rec.LongHead, rec.Started, rec.Crashes = true, rec.Started || failed, r.job.Crashes
	text, stack := describe(err)
	if failed {
		r.fail(&rec, errors.New(text))
	}
	var also []string
	if failed {
		also = append(also, "failed")
	}
	if reason == ReasonExpired {
		also = append(also, "expired")
	}
	rec.Dead = &record.PostMortem{Reason: string(reason), Error: text, Stack: stack,
		Worker: r.feed.worker.cfg.Name, Build: build(), At: r.feed.now().UnixMilli(), MaxAttempts: r.policy.maxAttempts}
	rec.Progress = r.lastProgress().record()
	return &outcome{run: r, verb: verbBury, record: rec.Append(nil), also: strings.Join(also, "+") + r.told(), reason: reason, err: err, event: r.event(err)}
}

// describe is the text of an error and, for a panic or an error that says more
// with %+v, its stack.
func describe(err error) (text, stack string) {
	defer func() {
		if p := recover(); p != nil {
			text = fmt.Sprintf("%T, whose Error method panics", err)
		}
	}()
	text = err.Error()
	var p *PanicError
	if errors.As(err, &p) {
		stack = string(p.Stack)
	} else if more := fmt.Sprintf("%+v", err); more != text {
		stack = more
	}
	return cut(text, maxErrorText), cut(stack, maxStackText)
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n-3] + "..."
}

// build names the program: its module's version and revision.
var build = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	name := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			name += " " + s.Value[:min(12, len(s.Value))]
		}
	}
	return name
})

// stored tells the hooks, now that Redis holds the outcome.
func (o *outcome) stored(c *Client) {
	ctx := context.WithoutCancel(o.run.ctx)
	switch o.verb {
	case verbSettle, verbFinish:
		switch o.counter {
		case "done", canaryCounter:
			c.hooks.done(ctx, o.event)
		case "skipped":
			c.hooks.skipped(ctx, o.event)
		case "discarded":
			c.hooks.discarded(ctx, o.event)
		case "cancelled":
			c.hooks.cancelled(ctx, o.event)
		}
	case verbRetry:
		e := RetryEvent{Event: o.event, Delay: o.delay}
		if o.counter == "retried" {
			c.hooks.retry(ctx, e)
		} else {
			c.hooks.snoozed(ctx, e)
		}
	case verbBury:
		o.run.job.Logger().Error("pawl: job is dead", "reason", o.reason, "error", o.err)
		c.hooks.dead(ctx, DeadEvent{Event: o.event, Reason: o.reason})
	case verbRelease:
		c.hooks.released(ctx, o.event)
	}
}
