package pawlsql

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/pawlq/pawl"
)

// Relay moves rows of an outbox to their queues. Any number may run, in any number of
// processes: on PostgreSQL and MySQL each row is locked by the one that has it and
// skipped by the others; on SQLite let one run, since more would do the same work.
//
// A row is deleted once its job is enqueued, and pending as long as it exists: what
// commits late is not passed over. A relay that dies between the two leaves a row
// that is enqueued again under the same unique key, which adds no second job. Redis
// keeps that key for 24 h, or for as long as a Unique of the job's own says: if no
// relay comes back, or the database is restored from a copy, after more than that,
// the job may be there twice.
//
// Jobs are enqueued roughly in the order of their rows, and not strictly: relays
// overtake each other, and a row that waits does not hold back the next.
//
// A row that cannot be enqueued at all, since its options cannot be read or pawl
// refuses it, is kept: it gets failed_at and error, is logged and counted in Stats,
// and is left alone until Retry. What Redis is to blame for (it is away, it is full)
// is never a row's fault: its rows stay as they are, however long that takes.
type Relay struct {
	outbox *Outbox
	db     *sql.DB
	client *pawl.Client
	batch  int
	idle   time.Duration
	log    *slog.Logger

	wake    chan struct{}
	running atomic.Bool
	outages outages

	// For tests: see export_test.go.
	step     func(name string)
	patience time.Duration // with one call to Redis
	whole    time.Duration // for one batch
	frozen   time.Duration // after which PostgreSQL ends a relay's transaction
}

// RelayConfig is a relay; the zero value is good.
type RelayConfig struct {
	// Batch is how many rows are moved in one transaction. Default 100, at most 500.
	Batch int
	// Idle is the longest sleep when there is nothing to do, and so the longest that
	// a row waits if nobody calls Wake. Each sleep is random, from half of it on.
	// Default 1 s, at least 10 ms.
	Idle time.Duration
	// Logger receives what an operator must know: rows that failed, and one line
	// when Redis or the database goes and one when it is back. Default: discard.
	Logger *slog.Logger
}

const (
	defaultBatch = 100
	maxBatch     = 500
	defaultIdle  = time.Second
	minIdle      = 10 * time.Millisecond
	// batchPatience is with all of the database's answers in one batch.
	batchPatience = 30 * time.Second
)

// NewRelay makes a relay of the outbox: it takes rows from db, which is not to be
// closed before Run has returned, and enqueues them with c. Its error wraps
// pawl.ErrInvalid. It talks to neither.
func (o *Outbox) NewRelay(db *sql.DB, c *pawl.Client, cfg RelayConfig) (*Relay, error) {
	r := &Relay{outbox: o, db: db, client: c, batch: cfg.Batch, idle: cfg.Idle, log: cfg.Logger,
		wake: make(chan struct{}, 1), step: func(string) {}, patience: 5 * time.Second, whole: batchPatience, frozen: time.Minute}
	if r.batch == 0 {
		r.batch = defaultBatch
	}
	if r.idle == 0 {
		r.idle = defaultIdle
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.outages.log = r.log
	var err error
	switch {
	case o == nil || o.dialect == 0:
		err = invalidf("the Outbox is not made by NewOutbox")
	case db == nil:
		err = invalidf("the database is nil: give a *sql.DB")
	case c == nil:
		err = invalidf("the client is nil: make one with pawl.New")
	case r.batch < 0 || r.batch > maxBatch:
		err = invalidf("Batch %d: give 1 to %d, or 0 for %d", cfg.Batch, maxBatch, defaultBatch)
	case r.idle < minIdle:
		err = invalidf("Idle %v: give %v or more, or 0 for %v", cfg.Idle, minIdle, defaultIdle)
	}
	if err != nil {
		return nil, fmt.Errorf("pawlsql: relay: %w", err)
	}
	return r, nil
}

// Wake has the relay look at once, if it runs in this process: call it after a
// commit, to save the wait for the next poll. It does not block, and does nothing
// while the database is away.
func (r *Relay) Wake() {
	select {
	case r.wake <- struct{}{}:
	default: // it is woken already
	}
}

// Run relays until ctx ends, and returns nil then; the batch at hand is finished
// first. It goes on through every outage, with waits that grow to 5 s. A relay runs
// once at a time: a second Run beside the first is pawl.ErrState. A Relay that is not
// made by NewRelay is pawl.ErrInvalid.
func (r *Relay) Run(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	if !r.running.CompareAndSwap(false, true) {
		return fmt.Errorf("pawlsql: relay: it runs already; make another one: %w", pawl.ErrState)
	}
	defer r.running.Store(false)
	for ctx.Err() == nil {
		more, err := r.pass(ctx)
		r.outages.database(ctx, err)
		switch {
		case err != nil:
			r.sleep(ctx, r.outages.databaseWait(), nil)
		case !more:
			wait := r.idle/2 + rand.N(r.idle/2+1)
			if until, down := r.outages.next(); down {
				wait = min(wait, max(time.Until(until), time.Millisecond))
			}
			r.sleep(ctx, wait, r.wake)
		}
	}
	return nil
}

func (r *Relay) check() error {
	if r == nil || r.outbox == nil {
		return fmt.Errorf("pawlsql: relay: %w", invalidf("the Relay is not made by NewRelay"))
	}
	return nil
}

func (r *Relay) sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
}
