package pawl

import (
	"context"
	"fmt"
	"time"
)

// Queue enqueues, inspects and controls one queue. It is a handle: cheap to
// make, safe for concurrent use. A call waits no longer than its ctx, or 5 s if
// that has no deadline; List, Purge, Destroy and Check go in steps, and wait so
// for each of them. A Queue comes from Client.Queue; the zero
// Queue is of no use.
type Queue struct{ *queueState }

// Name is the queue's name, as Client.Queue was given it, valid or not.
func (q *Queue) Name() string { return q.name }

// Enqueued says which job now stands for the call.
type Enqueued struct {
	ID    ID
	Queue string
	// Duplicate: the unique key was held; ID is the holder and no job was
	// added.
	Duplicate bool
}

// Item is one job of EnqueueMany.
type Item struct {
	Args    Args
	Options []Option
}

// Items makes items that share their options: the same slice, which is only
// read. It is empty for no args.
func Items[T Args](args []T, opts ...Option) []Item {
	items := make([]Item, len(args))
	for i, a := range args {
		items[i] = Item{Args: a, Options: opts}
	}
	return items
}

// Enqueue makes the job durable and returns. It waits no longer than ctx, or
// 5 s if ctx has no deadline, and buffers nothing: an error is an answer.
//
// Errors: ErrInvalid, ErrName or ErrTooLarge, and nothing was sent; ErrDuplicate
// (with RejectDuplicate), ErrFull, the context's error or Redis's own, and
// nothing was enqueued; ErrUnconfirmed, and the job may have been enqueued.
func (q *Queue) Enqueue(ctx context.Context, args Args, opts ...Option) (Enqueued, error) {
	it, err := q.prepare(ctx, args, opts)
	return q.enqueueOne(ctx, it, err)
}

// EnqueueRaw enqueues bytes under a kind, past the codec. Errors as Enqueue.
func (q *Queue) EnqueueRaw(ctx context.Context, kind string, payload []byte, opts ...Option) (Enqueued, error) {
	return q.Enqueue(ctx, Raw{kind, payload}, opts...)
}

func (q *Queue) enqueueOne(ctx context.Context, it *item, err error) (Enqueued, error) {
	if err != nil {
		return Enqueued{}, q.wrap("enqueue", err)
	}
	start := time.Now()
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	var result Enqueued // the item's may still be written after an error
	err = q.batch.enqueue(ctx, newGroup(it))
	if err == nil {
		result, err = it.result, it.rejected()
	}
	err = q.wrap("enqueue", err)
	q.client.hooks.enqueued(ctx, EnqueuedEvent{Enqueued: result, Kind: it.kind, Took: time.Since(start), Err: err})
	return result, err
}

// EnqueueMany enqueues in scripts of up to 500 jobs, each whole or not at all.
// Results are by index. All items are checked before anything is sent. If a
// script fails, the results of the scripts before it are valid and the rest
// zero; the error says which item was the first without a result. With
// RejectDuplicate a duplicate is ErrDuplicate, but does not stop the others:
// their results are valid. No items are no call, and no error. ctx, or 5 s, is for
// all of it.
func (q *Queue) EnqueueMany(ctx context.Context, items []Item) ([]Enqueued, error) {
	results := make([]Enqueued, len(items))
	prepared := make([]*item, len(items))
	for i, it := range items {
		p, err := q.prepare(ctx, it.Args, it.Options)
		if err != nil {
			return results, q.wrap("enqueue", fmt.Errorf("item %d: %w", i, err))
		}
		prepared[i] = p
	}
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	var duplicate error
	for at := 0; at < len(prepared); {
		g := newGroup(prepared[at])
		for _, it := range prepared[at+1:] {
			if !fits(len(g.items), g.size, 1, it.size()) {
				break
			}
			g.add(it)
		}
		start := time.Now()
		err := q.batch.enqueue(ctx, g)
		for i, it := range g.items {
			event := EnqueuedEvent{Kind: it.kind, Err: err}
			if err == nil {
				results[at+i], event.Enqueued, event.Err = it.result, it.result, it.rejected()
			}
			if duplicate == nil && err == nil && event.Err != nil {
				duplicate = fmt.Errorf("item %d: %w", at+i, event.Err)
			}
			event.Took = time.Since(start)
			q.client.hooks.enqueued(ctx, event)
		}
		if err != nil {
			return results, q.wrap("enqueue", fmt.Errorf("item %d of %d: %w", at, len(prepared), err))
		}
		at += len(g.items)
	}
	return results, q.wrap("enqueue", duplicate)
}
