package main

import (
	"context"
	"database/sql"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlsql"
)

// batch is how many rows a relay moves at once: few, to be killed between two.
const batch = 5

// region outbox-relay

// newRelay makes what moves the rows to Redis. It may run in the shop's own processes,
// as a goroutine, or in one for itself. On SQLite one is enough, and on PostgreSQL and
// MySQL as many as you like, of which each takes other rows.
//
// A relay that dies between Redis and the end of the rows leaves them, and they are
// enqueued again. Each carries a unique key, which Redis keeps for a day: within it
// that adds no second job. A relay that comes back later, or a database that is restored
// from an older copy, may add one; and a job may run twice, as any may. The effect is
// the handler's to guard: examples/payments.
func newRelay(db *sql.DB, client *pawl.Client) (*pawlsql.Relay, error) {
	outbox, err := newOutbox()
	if err != nil {
		return nil, err
	}
	return outbox.NewRelay(db, client, pawlsql.RelayConfig{
		Batch:  batch,
		Idle:   50 * time.Millisecond, // so that nobody needs to call Wake
		Logger: slog.Default(),        // one line when Redis goes, one when it is back
	})
}

// endregion

// runRelay relays until ctx ends, or waits to be killed when so many jobs were answered.
func runRelay(ctx context.Context, p place) error {
	opts, err := redis.ParseURL(p.Redis)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(opts)
	defer func() { _ = rdb.Close() }()
	client, err := pawl.New(rdb, pawl.Config{Namespace: p.Namespace, Hooks: []pawl.Hook{&trap{at: int64(p.DieAfter)}}})
	if err != nil {
		return err
	}
	db, err := openDatabase(ctx, p.Database)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	r, err := newRelay(db, client)
	if err != nil {
		return err
	}
	return r.Run(ctx)
}

// trap is a pawl.Hook that is called once Redis has answered, and before the relay goes
// on to delete the rows. In production a hook must not wait.
type trap struct {
	at, seen int64
}

var _ pawl.OnEnqueued = (*trap)(nil)

func (t *trap) Enqueued(context.Context, pawl.EnqueuedEvent) {
	if atomic.AddInt64(&t.seen, 1) == t.at {
		tell("between Redis and the rows")
		select {}
	}
}
