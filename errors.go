package pawl

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of an enqueue. Every one of them but ErrUnconfirmed means that
// nothing was enqueued. Test for them with errors.Is: they come wrapped with
// the operation, the queue and, where Redis gave one, its own error.
var (
	// ErrInvalid: an option, a name or an argument was refused; the text says
	// what to write instead. Nothing was sent. NewWorker, Run and New return it
	// for what is wrong with a configuration or a registration.
	ErrInvalid = errors.New("pawl: invalid")
	// ErrName: the queue's name is not 1 to 128 bytes of letters, digits,
	// ".", "_", "-" and ":". Nothing was sent. It is an ErrInvalid.
	ErrName = fmt.Errorf("%w queue name", ErrInvalid)
	// ErrTooLarge: the encoded payload exceeds Config.MaxPayload. Nothing was
	// sent. It is an ErrInvalid.
	ErrTooLarge = fmt.Errorf("%w: payload too large", ErrInvalid)
	// ErrDuplicate: the unique key is held and RejectDuplicate was asked for.
	// The holder's id is in the returned Enqueued. Nothing was enqueued, and
	// the holder is as it was.
	ErrDuplicate = errors.New("pawl: duplicate")
	// ErrFull: Redis has no memory left. Nothing was enqueued. Jobs that wait
	// can still be run, and room comes back as they end. Of Schedule also: the queue
	// has as many schedules as it may.
	ErrFull = errors.New("pawl: full")
	// ErrUnconfirmed: the connection failed or the context ended after the
	// call was sent. The job may have been enqueued, once at most. Enqueue
	// again with the same Unique key to be sure of one; give the key a
	// Unique.For, or it may be free again because the first job is done. It
	// may wrap the context's error too: test for ErrUnconfirmed first.
	ErrUnconfirmed = errors.New("pawl: not confirmed")
)

// Errors of inspection and control.
var (
	// ErrNotFound: there is no such job: it was never enqueued, or it has
	// ended and is not kept; or no such schedule; or no such queue: it was never used, or
	// it was destroyed. Nothing was changed.
	ErrNotFound = errors.New("pawl: not found")
	// ErrState: the job or the queue is not in a state the call applies to.
	// Nothing was changed.
	ErrState = errors.New("pawl: wrong state")
)

// Causes of a handler's context: context.Cause says which of them ended it.
var (
	// ErrTimeout: the run took longer than its Timeout. The error the handler
	// returns counts as a failed attempt.
	ErrTimeout = errors.New("pawl: timeout")
	// ErrCancelled: the job was cancelled. It ends when the handler returns,
	// without a retry or a post-mortem; with nil it is done all the same.
	ErrCancelled = errors.New("pawl: cancelled")
	// ErrShutdown: the worker is stopping and the time to drain is over. With
	// any error the handler returns, the job goes back to be taken next, and
	// the attempt is not counted.
	ErrShutdown = errors.New("pawl: shutting down")
	// ErrLeaseLost: another worker has, or will have, this job. What the
	// handler does from here on may happen twice, and its outcome is not
	// recorded.
	ErrLeaseLost = errors.New("pawl: lease lost")
)

// invalidf makes an ErrInvalid. The text should end with what to write
// instead.
func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// placed is an error and where it came from. The name of the package, with which pawl's
// errors begin, is not said again after that.
type placed struct {
	where string
	err   error
}

func (p *placed) Error() string { return p.where + ": " + strings.TrimPrefix(p.err.Error(), "pawl: ") }

func (p *placed) Unwrap() error { return p.err }
