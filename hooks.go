package pawl

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"time"
)

// Hook observes: it has one or more of the On… methods below. Hooks run where
// the event happens: be quick, be safe for concurrent use. A panic in a hook
// is logged and goes no further. A Hook that has none of the methods is
// ErrInvalid, and so is a nil.
//
// The context is the one of the call or run the event belongs to, with its
// values, and may have ended.
type Hook any

// Event is what every event has. Fields may be added.
type Event struct {
	Job  *RawJob       // shared: to be read, not changed
	Took time.Duration // of the run so far, by the worker's clock; next to 0 where none has begun
	Wait time.Duration // from DueAt to the lease of the run, by the server's clock; never negative
	Err  error         // what went wrong; nil if nothing did
	// Handled: the worker has a handler for Job.Kind. Without one a job is put back or
	// buried, and its kind may be any text that a producer made up: it is for logs, and
	// not for the labels of metrics.
	Handled bool
	// Ran: the handler of this run has been called. False of OnStarted, and of a job
	// that was ended or put back unrun.
	Ran bool
}

// RetryEvent is an Event of a job that comes again.
type RetryEvent struct {
	Event
	Delay time.Duration // until then; never negative
}

// DeadEvent is an Event of a job that is dead.
type DeadEvent struct {
	Event
	Reason DeadReason
}

// EnqueuedEvent is an attempt to enqueue, by this process. Of a follow-up (Then) it is told
// once that is enqueued, with the acknowledgement of its job; Err is ErrDuplicate at most.
type EnqueuedEvent struct {
	Enqueued // as Enqueue returns it
	Kind     string
	Took     time.Duration // of the call
	Err      error         // as Enqueue returns it; nil if a job was enqueued or kept
}

// OnEnqueued: an enqueue has been answered, with an error or without. It is told
// once for each job of an EnqueueMany, and not of what was refused unsent
// (ErrInvalid).
type OnEnqueued interface {
	Enqueued(context.Context, EnqueuedEvent)
}

// OnStarted: a handler is about to run. Its context is the one that the handler
// gets.
type OnStarted interface{ Started(context.Context, Event) }

// OnDone: a job has been done, and its acknowledgement is stored. One that was
// skipped was not: see OnSkipped.
type OnDone interface{ Done(context.Context, Event) }

// OnSkipped: a job was not run, because a job with the key of its Idempotency had
// been done. It is over, and OnDone is not told of it.
type OnSkipped interface{ Skipped(context.Context, Event) }

// OnRetry: an attempt failed, and the job comes again after Delay.
type OnRetry interface {
	Retry(context.Context, RetryEvent)
}

// OnSnoozed: a job was put back for Delay, its attempt not spent. Err
// is nil, or what a Snooze was wrapped in. It is told too of a job that was put
// back unrun, because its kind is unknown to the worker or the key of its
// Idempotency is in use: Err says so.
type OnSnoozed interface {
	Snoozed(context.Context, RetryEvent)
}

// OnReleased: a job was given back at shutdown, its attempt not spent. Err is
// what the handler returned; nil if it was not called.
type OnReleased interface{ Released(context.Context, Event) }

// OnDead: a job went to the dead-letter queue, perhaps without having run.
type OnDead interface {
	Dead(context.Context, DeadEvent)
}

// OnCancelled: a job that ran, or was about to, has ended by Queue.Cancel. One
// that was cancelled while it waited is not told: it is gone in that call.
type OnCancelled interface{ Cancelled(context.Context, Event) }

// OnDropped: a dead job left because of DeadRetention. It is told by the worker
// that let it go, and is the last that will be heard of the job.
type OnDropped interface {
	Dropped(context.Context, DeadJob)
}

// OnDiscarded: a job was given up by Discard, without a post-mortem. Err is the
// cause.
type OnDiscarded interface{ Discarded(context.Context, Event) }

// OnCrashed: a lease ran out, its worker having died or hung. The worker that
// takes the job over tells, before it starts it again or buries it; Job.Crashes
// counts this crash. Other queues call it stalled.
type OnCrashed interface{ Crashed(context.Context, Event) }

// OnLeaseLost: a run of this worker lost its lease; what it did may happen
// twice.
type OnLeaseLost interface{ LeaseLost(context.Context, Event) }

// OnStuck: a handler runs on though its context ended StuckAfter ago. Err is the
// cause; it is told once a run.
type OnStuck interface{ Stuck(context.Context, Event) }

// OnOutage: Redis has gone (err set) or is back (nil), for a worker: one that
// serves several queues tells once. Its context is the background.
type OnOutage interface{ Outage(context.Context, error) }

// hooks is a list of Hooks sorted by what they observe. It is immutable, and
// the zero hooks observes nothing. An event without a hook costs a look at an
// empty slice.
type hooks struct {
	log *slog.Logger

	onEnqueued  []OnEnqueued
	onStarted   []OnStarted
	onDone      []OnDone
	onSkipped   []OnSkipped
	onRetry     []OnRetry
	onSnoozed   []OnSnoozed
	onReleased  []OnReleased
	onDead      []OnDead
	onDiscarded []OnDiscarded
	onCancelled []OnCancelled
	onDropped   []OnDropped
	onCrashed   []OnCrashed
	onLeaseLost []OnLeaseLost
	onStuck     []OnStuck
	onOutage    []OnOutage
}

// newHooks sorts list. log is where panics of hooks go.
func newHooks(list []Hook, log *slog.Logger) (hooks, error) {
	h := hooks{log: log}
	for i, hook := range list {
		if hook == nil || isNilPointer(hook) {
			return hooks{}, invalidf("hook %d of %d is nil: leave it out", i+1, len(list))
		}
		// Not short-circuited: each add must run.
		var found bool
		found = add(&h.onEnqueued, hook) || found
		found = add(&h.onStarted, hook) || found
		found = add(&h.onDone, hook) || found
		found = add(&h.onSkipped, hook) || found
		found = add(&h.onRetry, hook) || found
		found = add(&h.onSnoozed, hook) || found
		found = add(&h.onReleased, hook) || found
		found = add(&h.onDead, hook) || found
		found = add(&h.onDiscarded, hook) || found
		found = add(&h.onCancelled, hook) || found
		found = add(&h.onDropped, hook) || found
		found = add(&h.onCrashed, hook) || found
		found = add(&h.onLeaseLost, hook) || found
		found = add(&h.onStuck, hook) || found
		found = add(&h.onOutage, hook) || found
		if !found {
			return hooks{}, invalidf("hook %d of %d, a %T, has none of the On… methods: "+
				"implement one, such as Done(context.Context, pawl.Event); "+
				"if they have a pointer receiver, give a pointer", i+1, len(list), hook)
		}
	}
	return h, nil
}

func add[H any](to *[]H, hook Hook) bool {
	h, ok := hook.(H)
	if ok {
		*to = append(*to, h)
	}
	return ok
}

func (h *hooks) enqueued(ctx context.Context, e EnqueuedEvent) {
	fire(ctx, h.log, h.onEnqueued, OnEnqueued.Enqueued, e)
}

func (h *hooks) started(ctx context.Context, e Event) {
	fire(ctx, h.log, h.onStarted, OnStarted.Started, e)
}

func (h *hooks) done(ctx context.Context, e Event) {
	fire(ctx, h.log, h.onDone, OnDone.Done, e)
}

func (h *hooks) skipped(ctx context.Context, e Event) {
	fire(ctx, h.log, h.onSkipped, OnSkipped.Skipped, e)
}

func (h *hooks) retry(ctx context.Context, e RetryEvent) {
	fire(ctx, h.log, h.onRetry, OnRetry.Retry, e)
}

func (h *hooks) snoozed(ctx context.Context, e RetryEvent) {
	fire(ctx, h.log, h.onSnoozed, OnSnoozed.Snoozed, e)
}

func (h *hooks) released(ctx context.Context, e Event) {
	fire(ctx, h.log, h.onReleased, OnReleased.Released, e)
}

func (h *hooks) dead(ctx context.Context, e DeadEvent) {
	fire(ctx, h.log, h.onDead, OnDead.Dead, e)
}

func (h *hooks) discarded(ctx context.Context, e Event) {
	fire(ctx, h.log, h.onDiscarded, OnDiscarded.Discarded, e)
}

func (h *hooks) cancelled(ctx context.Context, e Event) {
	fire(ctx, h.log, h.onCancelled, OnCancelled.Cancelled, e)
}

func (h *hooks) dropped(ctx context.Context, d DeadJob) {
	fire(ctx, h.log, h.onDropped, OnDropped.Dropped, d)
}

func (h *hooks) crashed(ctx context.Context, e Event) {
	fire(ctx, h.log, h.onCrashed, OnCrashed.Crashed, e)
}

func (h *hooks) leaseLost(ctx context.Context, e Event) {
	fire(ctx, h.log, h.onLeaseLost, OnLeaseLost.LeaseLost, e)
}

func (h *hooks) stuck(ctx context.Context, e Event) {
	fire(ctx, h.log, h.onStuck, OnStuck.Stuck, e)
}

func (h *hooks) outage(ctx context.Context, err error) {
	fire(ctx, h.log, h.onOutage, OnOutage.Outage, err)
}

// fire calls one method of each hook.
func fire[H, E any](ctx context.Context, log *slog.Logger, on []H, call func(H, context.Context, E), e E) {
	for _, h := range on {
		fireOne(ctx, log, h, call, e)
	}
}

// fireOne has the panic of one hook end there, so that the next is called and
// the worker that fires goes on.
func fireOne[H, E any](ctx context.Context, log *slog.Logger, h H, call func(H, context.Context, E), e E) {
	defer func() {
		if v := recover(); v != nil && log != nil {
			log.ErrorContext(ctx, "pawl: a hook panicked",
				slog.String("event", reflect.TypeFor[H]().Name()),
				slog.String("hook", fmt.Sprintf("%T", h)),
				slog.Any("panic", v),
				slog.String("stack", string(debug.Stack())))
		}
	}()
	call(h, ctx, e)
}
