package pawlsql

import (
	"context"
	"errors"
	"strings"

	"github.com/pawlq/pawl"
)

// outcome is what became of a row in a pass; the zero one is that it stays.
type outcome struct {
	done bool
	err  error // the row can never be enqueued
}

// maxWaiting bounds the queues that one SELECT leaves out. Where more are down, it
// is Redis that is.
const maxWaiting = 100

// pass moves one batch, and reports whether another may follow at once. Its error is
// of the database: then nothing was changed there, or perhaps all, if that was the
// commit.
func (r *Relay) pass(run context.Context) (more bool, err error) {
	// The batch at hand is finished even if the relay is stopped.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(run), r.whole)
	defer cancel()
	waiting := r.outages.waiting()
	if len(waiting) > maxWaiting {
		return false, nil
	}
	t, err := r.open(ctx)
	if err != nil {
		return false, err
	}
	defer t.abort()
	rows, err := t.take(ctx, waiting)
	if err != nil {
		return false, err
	}
	r.step("taken")
	if len(rows) == 0 {
		if len(waiting) == 0 {
			r.outages.clear(ctx)
		}
		return false, nil
	}
	// Redis may be slow: some time is left to be done with what it has taken by then.
	sending, stop := context.WithTimeout(ctx, r.whole/2)
	outcomes, failing := r.enqueue(sending, rows)
	stop()
	r.step("enqueued")
	if err := t.finish(ctx, rows, outcomes); err != nil {
		return false, err
	}
	r.step("committed")
	for i, o := range outcomes {
		if o.err != nil {
			r.log.ErrorContext(ctx, "pawlsql: a row cannot be enqueued; it is kept, marked as failed",
				"table", r.outbox.table, "id", rows[i].id, "queue", rows[i].queue, "kind", rows[i].kind, "error", o.err)
		}
	}
	return failing || len(rows) == r.batch, nil
}

// enqueue sends the rows, those of a queue together. After an outage it sends no
// more: the rows stay, and the next pass leaves the queue out.
func (r *Relay) enqueue(ctx context.Context, rows []row) (outcomes []outcome, failing bool) {
	outcomes = make([]outcome, len(rows))
	var queues []string
	of := map[string][]int{}
	for i := range rows {
		rows[i].stored, outcomes[i].err = decodeStored(rows[i].options)
		if outcomes[i].err != nil {
			continue
		}
		queue := rows[i].queue
		if of[queue] == nil {
			queues = append(queues, queue)
		}
		of[queue] = append(of[queue], i)
	}
	for _, queue := range queues {
		if err := r.enqueueTo(ctx, queue, rows, of[queue], outcomes); err != nil {
			r.outages.failed(ctx, queue, err)
			return outcomes, true
		}
		r.outages.worked(ctx, queue)
	}
	return outcomes, false
}

// enqueueTo sends the rows of one queue. Its error is an outage's.
func (r *Relay) enqueueTo(ctx context.Context, queue string, rows []row, which []int, outcomes []outcome) error {
	items := make([]pawl.Item, len(which))
	for n, i := range which {
		items[n] = rows[i].item()
	}
	jobs, err := r.send(ctx, queue, items)
	for n, i := range which {
		outcomes[i].done = jobs[n].ID != pawl.ID{}
	}
	if err == nil || !perhapsOneRow(err) {
		return err
	}
	// One row that is refused has stopped the others: let each be its own call.
	for n, i := range which {
		if outcomes[i].done {
			continue
		}
		_, err := r.send(ctx, queue, items[n:n+1])
		switch {
		case err == nil:
			outcomes[i].done = true
		case perhapsOneRow(err):
			outcomes[i].err = err
		default:
			return err
		}
	}
	return nil
}

func (r *Relay) send(ctx context.Context, queue string, items []pawl.Item) ([]pawl.Enqueued, error) {
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	return r.client.Queue(queue).EnqueueMany(ctx, items)
}

func perhapsOneRow(err error) bool { return errors.Is(err, pawl.ErrInvalid) || foreignKey(err) }

// foreignKey is enqueue.lua's word for a unique key that is not what pawl made. A wrong
// type of any other key is the queue's, and no fault of a row.
func foreignKey(err error) bool { return strings.Contains(err.Error(), "WRONGTYPE of the unique key") }
