package pawl

import "context"

// Handler runs a job. See the outcomes at Permanent. It may be called from
// many goroutines at once, and more than once for one job: delivery is at
// least once. Its context ends with one of the causes ErrTimeout,
// ErrCancelled, ErrShutdown and ErrLeaseLost; a handler that goes on all the
// same keeps its slot until it returns.
type Handler func(ctx context.Context, job *RawJob) error

// Middleware wraps handlers: the first one given is the outermost. It is
// called once for each handler, and what it returns once for each run. It may
// change the context, skip the handler, and replace the error; it should not
// change the job.
//
// A panic of the handler passes through it as a panic, and becomes a
// *PanicError only outside of all middleware: one that must see it, or clear
// up after it, uses defer. Permanent, Snooze, RetryAfter and Discard pass
// through it as errors, so err != nil does not mean that the run failed.
// IsPermanent tells the first; the others are told apart by the hooks, such as
// OnSnoozed, OnRetry and OnDiscarded. An error must be returned as it is, or
// wrapped with %w, or its outcome is lost.
type Middleware func(next Handler) Handler

// Classify turns errors of libraries that do not know pawl into outcomes:
//
//	pawl.Classify(func(err error) error {
//		if errors.As(err, &cardErr) { return pawl.Permanent(err) }
//		return err
//	})
//
// fn sees only errors that are not nil. What it returns stands in their place:
// nil means that the job is done. It must be safe for concurrent use.
// Classify(nil) is a nil Middleware, which a worker refuses.
func Classify(fn func(error) error) Middleware {
	if fn == nil {
		return nil
	}
	return func(next Handler) Handler {
		return func(ctx context.Context, job *RawJob) error {
			if err := next(ctx, job); err != nil {
				return fn(err)
			}
			return nil
		}
	}
}
