package pawl

import (
	"errors"
	"fmt"
	"time"
)

// Permanent marks err as one that no retry will cure: the job is dead at once,
// reason "permanent", however many attempts it has left.
//
// The outcomes of a run are what its handler returns:
//
//	nil                  done
//	an error             retried by policy, dead after the last attempt
//	Permanent(err)       dead now
//	RetryAfter(d, err)   retried after d; the attempt counts
//	Snooze(d)            put back for d; the attempt does not count
//	Discard(err)         gone, counted, without a post-mortem
//	a panic              an error, *PanicError
//
// They are found by errors.As, so they may be wrapped with %w and joined with
// errors.Join. Where one error holds several, the strongest decides: Discard,
// then Permanent, then Snooze, then RetryAfter; of two RetryAfter or two
// Snooze, the outer or first.
//
// The text of a marked error is that of its cause, and errors.Is and errors.As
// see through to it. Permanent(nil) is nil, so that
//
//	return pawl.Permanent(charge(ctx))
//
// is done if charge succeeds.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// IsPermanent reports whether a handler that returns err ends its job at once
// with a post-mortem: whether err holds a Permanent, and no Discard that would
// outweigh it. It is false for nil.
func IsPermanent(err error) bool {
	kind, _, _ := verdict(err)
	return kind == outcomePermanent
}

// RetryAfter retries after d instead of what the policy says, as with a
// server's Retry-After. The attempt counts: on the last one the job is dead. A
// negative d counts as 0, at once. A nil err is still a retry, for want of a
// better text "retry asked for".
func RetryAfter(d time.Duration, err error) error {
	return &retryAfterError{max(d, 0), err}
}

// Snooze puts the job back for d: it is not its turn yet. No attempt is spent,
// so a job may snooze for ever; ExpireIn bounds it. A negative d counts as 0:
// the job is ready again at once.
func Snooze(d time.Duration) error { return &snoozeError{max(d, 0)} }

// Discard gives the job up without a post-mortem: it is gone, counted, and
// hooks see it. Unlike Permanent(nil), Discard(nil) is not nil: it discards,
// for want of a cause with the text "discarded".
func Discard(err error) error { return &discardError{err} }

// PanicError is the error of a handler that panicked. It is retried as other
// errors are. A panic with an error in it unwraps to that error, so
// panic(pawl.Permanent(err)) is permanent.
type PanicError struct {
	Value any    // what panic was called with
	Stack []byte // as debug.Stack gives it, from the frame that panicked on, of the goroutine that panicked
}

// Error is "panic: " and the value as fmt prints it, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap is the value if it is an error, or else nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

type permanentError struct{ cause error }

func (e *permanentError) Error() string { return e.cause.Error() }
func (e *permanentError) Unwrap() error { return e.cause }

type retryAfterError struct {
	delay time.Duration
	cause error
}

func (e *retryAfterError) Error() string { return textOr(e.cause, "retry asked for") }
func (e *retryAfterError) Unwrap() error { return e.cause }

type snoozeError struct{ delay time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("snooze for %v", e.delay) }

type discardError struct{ cause error }

func (e *discardError) Error() string { return textOr(e.cause, "discarded") }
func (e *discardError) Unwrap() error { return e.cause }

func textOr(err error, text string) string {
	if err == nil {
		return text
	}
	return err.Error()
}

type outcomeKind uint8

const (
	outcomeDone outcomeKind = iota
	outcomeRetry
	outcomeRetryAfter
	outcomePermanent
	outcomeSnooze
	outcomeDiscard
)

// verdict reads what a handler returned. delay is of RetryAfter and Snooze.
// cause is what to record: the whole error, since what wraps a mark tells the
// operator where it came from, and a mark adds no text of its own. It is nil
// for done and for a Snooze that stands alone.
func verdict(err error) (kind outcomeKind, delay time.Duration, cause error) {
	if err == nil {
		return outcomeDone, 0, nil
	}
	if _, ok := errors.AsType[*discardError](err); ok {
		return outcomeDiscard, 0, err
	}
	if _, ok := errors.AsType[*permanentError](err); ok {
		return outcomePermanent, 0, err
	}
	if s, ok := errors.AsType[*snoozeError](err); ok {
		if err == error(s) {
			return outcomeSnooze, s.delay, nil
		}
		return outcomeSnooze, s.delay, err
	}
	if r, ok := errors.AsType[*retryAfterError](err); ok {
		return outcomeRetryAfter, r.delay, err
	}
	return outcomeRetry, 0, err
}
