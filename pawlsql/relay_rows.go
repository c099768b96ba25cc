package pawlsql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// taking is the rows of one pass, held until it ends.
type taking struct {
	r  *Relay
	tx *sql.Tx // nil: SQLite
}

// open begins the pass. On SQLite nothing is held, since a lock would be of the whole
// database, for as long as Redis takes: what two relays do twice is done once.
func (r *Relay) open(ctx context.Context) (*taking, error) {
	t := &taking{r: r}
	if r.outbox.dialect == SQLite {
		return t, nil
	}
	// Under MySQL's default the gaps between rows would be locked too, and inserts wait.
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, fmt.Errorf("pawlsql: relay: begin: %w", err)
	}
	t.tx = tx
	if r.outbox.dialect == Postgres {
		// A relay that is frozen, or cut off, gives its rows to the others.
		set := fmt.Sprintf("SET LOCAL idle_in_transaction_session_timeout = %d", r.frozen.Milliseconds())
		if _, err := tx.ExecContext(ctx, set); err != nil {
			t.abort()
			return nil, fmt.Errorf("pawlsql: relay: begin: %w", err)
		}
	}
	return t, nil
}

func (t *taking) abort() {
	if t.tx != nil {
		_ = t.tx.Rollback() // of no effect after a commit
	}
}

// asker is a *sql.Tx or *sql.DB.
type asker interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (t *taking) db() asker {
	if t.tx != nil {
		return t.tx
	}
	return t.r.db
}

// take takes the first rows that nobody else has, but for those of some queues.
func (t *taking) take(ctx context.Context, without []string) ([]row, error) {
	o := t.r.outbox
	from, lock := o.table, " FOR UPDATE SKIP LOCKED"
	switch o.dialect {
	case MySQL:
		// Another plan would sort, and for that lock all the rows there are.
		from += " FORCE INDEX (" + o.bare + "_pending)"
	case SQLite:
		lock = ""
	}
	where, args := "failed_at IS NULL", []any{}
	if len(without) > 0 {
		where += " AND queue NOT IN (" + marks(len(without)) + ")"
		for _, queue := range without {
			args = append(args, queue)
		}
	}
	query := "SELECT id, job_key, queue, kind, payload, options, " + o.dialect.age("created_at") + " FROM " + from +
		" WHERE " + where + " ORDER BY id LIMIT ?" + lock
	found, err := t.db().QueryContext(ctx, o.dialect.bind(query), append(args, t.r.batch)...)
	if err != nil {
		return nil, fmt.Errorf("pawlsql: relay: take: %w", err)
	}
	defer func() { _ = found.Close() }()
	var rows []row
	for found.Next() {
		var r row
		var micros int64
		if err := found.Scan(&r.id, &r.key, &r.queue, &r.kind, &r.payload, &r.options, &micros); err != nil {
			return nil, fmt.Errorf("pawlsql: relay: take: %w", err)
		}
		r.age = time.Duration(micros) * time.Microsecond
		rows = append(rows, r)
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("pawlsql: relay: take: %w", err)
	}
	return rows, nil
}

// finish deletes what is done, marks what failed, and commits.
func (t *taking) finish(ctx context.Context, rows []row, outcomes []outcome) error {
	o := t.r.outbox
	var done []any
	for i, out := range outcomes {
		if out.done {
			done = append(done, rows[i].id)
		}
	}
	if len(done) > 0 {
		query := "DELETE FROM " + o.table + " WHERE id IN (" + marks(len(done)) + ")"
		if _, err := t.db().ExecContext(ctx, o.dialect.bind(query), done...); err != nil {
			return fmt.Errorf("pawlsql: relay: delete: %w", err)
		}
	}
	t.r.step("deleted")
	for i, out := range outcomes {
		if out.err == nil {
			continue
		}
		query := "UPDATE " + o.table + " SET failed_at = " + o.dialect.now() + ", error = ? WHERE id = ? AND failed_at IS NULL"
		if _, err := t.db().ExecContext(ctx, o.dialect.bind(query), errorText(out.err), rows[i].id); err != nil {
			return fmt.Errorf("pawlsql: relay: mark as failed: %w", err)
		}
	}
	if t.tx == nil {
		return nil
	}
	if err := t.tx.Commit(); err != nil {
		return fmt.Errorf("pawlsql: relay: commit: %w", err)
	}
	return nil
}

// marks is n placeholders.
func marks(n int) string { return "?" + strings.Repeat(", ?", n-1) }

const maxErrorText = 2000 // bytes

// errorText is an error that any database keeps.
func errorText(err error) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > maxErrorText {
		cut := maxErrorText
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}
