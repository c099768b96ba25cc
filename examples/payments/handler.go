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

// charge may be killed at any line, and is run again from the first. What it returned
// may be lost as well: a job ends when Redis has its outcome, and not before.
func (c *cashier) charge(ctx context.Context, job *pawl.Job[Charge]) error {
	// The API gives a key that it has seen the charge of then, and charges nothing. It
	// is the one place where a second charge can be prevented: no queue can know if the
	// request of a worker that died arrived. An API forgets its keys after some time, a
	// day in many cases. Who redrives a dead job later than that looks up the order there
	// first.
	id, err := c.api.charge(ctx, job.Args, job.IdempotencyKey())
	if err != nil {
		return err // again, under the same key, until the API says what it did
	}
	if err := reached(ctx, "charged", job); err != nil {
		return err
	}
	// The key's row and the entry are committed together, or neither is. It covers this
	// database alone: what fn did elsewhere would not be undone by a rollback.
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

// dwell widens the windows in which a kill does harm. In earnest they are open for
// microseconds, and with enough workers and nights one of them dies there too.
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
