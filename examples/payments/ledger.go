package main

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"

	_ "github.com/ncruces/go-sqlite3/driver"
)

// ledgerSchema has nothing that refuses a second entry of an order. A UNIQUE column
// would, in a table where each order has one row. A balance that is added to cannot.
const ledgerSchema = `
CREATE TABLE entries (id INTEGER PRIMARY KEY, order_no INTEGER NOT NULL, cents INTEGER NOT NULL, charge TEXT NOT NULL);
CREATE TABLE account (balance INTEGER NOT NULL);
INSERT INTO account VALUES (0);
`

// book writes an order into the ledger, whether or not it is there.
func book(ctx context.Context, tx *sql.Tx, c Charge, charge string) error {
	_, err1 := tx.ExecContext(ctx, "INSERT INTO entries (order_no, cents, charge) VALUES (?, ?, ?)", c.Order, c.Cents, charge)
	_, err2 := tx.ExecContext(ctx, "UPDATE account SET balance = balance + ?", c.Cents)
	return errors.Join(err1, err2)
}

// openLedger opens the file, which several processes write to: with a write-ahead log,
// and locked from the begin of each transaction on.
func openLedger(ctx context.Context, file string) (*sql.DB, error) {
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

func createLedger(ctx context.Context, db *sql.DB) error {
	inbox, err := newInbox()
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, ledgerSchema+inbox.Schema())
	return err
}

// readLedger is how often each order is booked, and the balance.
func readLedger(ctx context.Context, db *sql.DB) (booked map[int]int, balance int64, err error) {
	if err := db.QueryRowContext(ctx, "SELECT balance FROM account").Scan(&balance); err != nil {
		return nil, 0, err
	}
	rows, err := db.QueryContext(ctx, "SELECT order_no, count(*) FROM entries GROUP BY order_no")
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = rows.Close() }()
	booked = map[int]int{}
	for rows.Next() {
		var order, times int
		if err := rows.Scan(&order, &times); err != nil {
			return nil, 0, err
		}
		booked[order] = times
	}
	return booked, balance, rows.Err()
}
