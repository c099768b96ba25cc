package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/pawlq/pawl/pawlsql"
)

const queue = "shipping"

// Ship is the job of an order.
type Ship struct {
	Order int `json:"order"`
}

func (Ship) Kind() string { return "order.ship" }

// shop takes orders. It has no client of Redis.
type shop struct {
	db     *sql.DB
	outbox *pawlsql.Outbox
	at     func(where string, order int) // tells the parent, and may be the end
}

// region outbox-order

// take stores an order and its job. To write them to the database and to Redis, one
// after the other, would leave an order without a job, or a job without an order,
// whenever the process dies between the two, or the second fails.
func (s *shop) take(ctx context.Context, order int) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // of no effect after the commit
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (no) VALUES (?)", order); err != nil {
		return err
	}
	if _, err := s.outbox.Enqueue(ctx, pawlsql.Std(tx), queue, Ship{Order: order}); err != nil {
		return err
	}
	s.at("before the commit", order)
	if err := tx.Commit(); err != nil {
		return err // it may have been made: look for the order before taking it again
	}
	s.at("after the commit", order)
	return nil // a relay in this process would be told: relay.Wake()
}

// endregion

// perOrder is the time between two customers.
const perOrder = 3 * time.Millisecond

// runShop takes the orders that it is told to take, or waits to be killed with the last.
func runShop(ctx context.Context, p place) error {
	db, err := openDatabase(ctx, p.Database)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	o, err := newOutbox()
	if err != nil {
		return err
	}
	s := &shop{db: db, outbox: o, at: func(where string, order int) {
		if order == p.Last && where == p.DieAt {
			tell(where)
			select {}
		}
	}}
	for order := p.First; order <= p.Last; order++ {
		if err := s.take(ctx, order); err != nil {
			return err
		}
		if err := pause(ctx, perOrder); err != nil {
			return err
		}
	}
	tell("all taken")
	return nil
}

func newOutbox() (*pawlsql.Outbox, error) {
	return pawlsql.NewOutbox(pawlsql.OutboxConfig{Dialect: pawlsql.SQLite})
}

// openDatabase opens the file, which several processes write to: with a write-ahead
// log, and locked from the begin of each transaction on.
func openDatabase(ctx context.Context, file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", "file:"+filepath.ToSlash(file)+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}
