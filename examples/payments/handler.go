package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlsql"
)

// cashier has what the handlers need.
type cashier struct {
	api   *paymentAPI
	db    *sql.DB
	inbox *pawlsql.Inbox
}

// region payments-handler

// charge may be killed at any line, and is run again from the first. After the last one,
// too: a job is done when Redis has heard of it, and not before.
func (c *cashier) charge(ctx context.Context, job *pawl.Job[Charge]) error {
	// For a key that it has seen the API answers with the charge of then, and charges
	// nothing. Only there can a second charge be prevented: no queue knows if the request
	// of a worker that died had arrived. An API forgets its keys after a while, often a
	// day. Before a dead job that is older is redriven, look there for the order.
	id, err := c.api.charge(ctx, job.Args, job.IdempotencyKey())
	if err != nil {
		return err // again, under the same key, until the API says what it did
	}
	if err := reached(ctx, "charged", job); err != nil {
		return err
	}
	// The key's row and the ledger entry are committed together, or neither is. That
	// covers this database and nothing else: what the function did elsewhere, a rollback
	// does not undo.
	booked, err := c.inbox.Do(ctx, c.db, job, func(ctx context.Context, tx *sql.Tx) error {
		return book(ctx, tx, job.Args, id)
	})
	if err != nil {
		return err
	}
	if !booked {
		tell(report{What: "entry skipped", Job: job.ID})
	}
	return reached(ctx, "booked", job)
}

// endregion

// unguarded is charge without a key and without the inbox.
func (c *cashier) unguarded(ctx context.Context, job *pawl.Job[Charge]) error {
	id, err := c.api.charge(ctx, job.Args, "")
	if err != nil {
		return err
	}
	if err := reached(ctx, "charged", job); err != nil {
		return err
	}
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // of no effect after the commit
	if err := book(ctx, tx, job.Args, id); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return reached(ctx, "booked", job)
}

// dwell widens the windows in which a kill does harm. In production they are open for a
// millisecond or less, and with enough workers and deploys some die there too.
const dwell = 25 * time.Millisecond

// reached tells the parent how far the job is, and stays there for a moment.
func reached(ctx context.Context, what string, job *pawl.Job[Charge]) error {
	tell(report{What: what, Job: job.ID})
	pause(ctx, dwell)
	if ctx.Err() != nil { // the lease is lost, or the worker must stop
		return fmt.Errorf("stopped when %s: %w", what, context.Cause(ctx))
	}
	return nil
}
