package pawltest

import (
	"context"

	"github.com/pawlq/pawl"
)

// hook is how an Env learns what happens. The context of an event is that of a
// run, and so leads to the journal of the worker.
type hook struct{ env *Env }

type journalKey struct{}

func (h *hook) tell(ctx context.Context, fn func(*journal)) {
	if j, ok := ctx.Value(journalKey{}).(*journal); ok {
		fn(j)
	}
	h.env.change()
}

func (h *hook) ended(ctx context.Context, e pawl.Event) {
	h.tell(ctx, func(j *journal) { j.ended(e) })
}

// Enqueued, as all these methods, is one of pawl's hooks.
func (h *hook) Enqueued(context.Context, pawl.EnqueuedEvent) { h.env.change() }

func (h *hook) Started(ctx context.Context, e pawl.Event) {
	h.tell(ctx, func(j *journal) { j.started(ctx, e) })
}

func (h *hook) Dead(ctx context.Context, e pawl.DeadEvent) {
	h.tell(ctx, func(j *journal) { j.died(e.Event) })
}

func (h *hook) Done(ctx context.Context, e pawl.Event)         { h.ended(ctx, e) }
func (h *hook) Skipped(ctx context.Context, e pawl.Event)      { h.ended(ctx, e) }
func (h *hook) Discarded(ctx context.Context, e pawl.Event)    { h.ended(ctx, e) }
func (h *hook) Released(ctx context.Context, e pawl.Event)     { h.ended(ctx, e) }
func (h *hook) LeaseLost(ctx context.Context, e pawl.Event)    { h.ended(ctx, e) }
func (h *hook) Retry(ctx context.Context, e pawl.RetryEvent)   { h.ended(ctx, e.Event) }
func (h *hook) Snoozed(ctx context.Context, e pawl.RetryEvent) { h.ended(ctx, e.Event) }
