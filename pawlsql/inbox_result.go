package pawlsql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// DoResult is Do for work with a result, which is kept as JSON beside the key and
// commits with it. If the work was done before, the result of then is returned, and
// done is false: whoever asks gets the same answer. That of a Do, which has none, is
// pawl.ErrNotFound.
func DoResult[R any](ctx context.Context, in *Inbox, db *sql.DB, job Keyed, fn func(ctx context.Context, tx *sql.Tx) (R, error)) (result R, done bool, err error) {
	var run func(context.Context, *sql.Tx) error
	if fn != nil {
		run = func(ctx context.Context, tx *sql.Tx) error {
			if result, err = fn(ctx, tx); err != nil {
				return err
			}
			return in.SetResult(ctx, Std(tx), job, result)
		}
	}
	var none R
	if done, err = in.Do(ctx, db, job, run); err != nil {
		return none, false, err
	}
	if done {
		return result, true, nil
	}
	e, err := in.Get(ctx, db, job)
	if err == nil && e.Result == nil {
		err = fmt.Errorf("pawlsql: inbox: the work was done without a result: %w", pawl.ErrNotFound)
	}
	if err == nil {
		if err = json.Unmarshal(e.Result, &result); err != nil {
			err = fmt.Errorf("pawlsql: inbox: the result that is kept is not one of %T: %w", result, err)
		}
	}
	if err != nil {
		return none, false, err
	}
	return result, false, nil
}

// SetResult keeps a result, as JSON, beside a key that Claim or Do has inserted into
// tx. pawl.ErrNotFound: there is no such key.
func (in *Inbox) SetResult(ctx context.Context, tx Execer, job Keyed, result any) error {
	consumer, key, err := in.identify(job)
	if err == nil {
		err = checkExecer(tx)
	}
	if err != nil {
		return fmt.Errorf("pawlsql: inbox: %w", err)
	}
	text, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("pawlsql: inbox: %w", invalidf("the result does not encode: %w", err))
	}
	set := "result = ?"
	if in.dialect == MySQL {
		set += ", again = NOT again" // it does not count a row that stays as it was
	}
	n, err := tx.Exec(ctx, in.dialect.bind("UPDATE "+in.table+" SET "+set+" WHERE consumer = ? AND job_key = ?"), string(text), consumer, key)
	if err != nil {
		return fmt.Errorf("pawlsql: inbox: result: %w", err)
	}
	if n == 0 {
		return fmt.Errorf("pawlsql: inbox: result of a key that is not claimed: %w", pawl.ErrNotFound)
	}
	return nil
}

// Entry is what an inbox has of a key.
type Entry struct {
	// ProcessedAt is when the work was begun, by the database's clock.
	ProcessedAt time.Time
	// Result is JSON, or nil if there is none.
	Result json.RawMessage
}

// Get is what the inbox has of a job: pawl.ErrNotFound if it is not done, or
// pruned. db is a *sql.DB, or the *sql.Tx or *sql.Conn that is to be asked.
func (in *Inbox) Get(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, job Keyed) (Entry, error) {
	consumer, key, err := in.identify(job)
	if err == nil && isNil(db) {
		err = invalidf("the database is nil: give a *sql.DB")
	}
	if err != nil {
		return Entry{}, fmt.Errorf("pawlsql: inbox: %w", err)
	}
	var micros int64
	var result sql.NullString
	err = db.QueryRowContext(ctx, in.dialect.bind("SELECT "+in.dialect.micros("processed_at")+", result FROM "+in.table+
		" WHERE consumer = ? AND job_key = ?"), consumer, key).Scan(&micros, &result)
	if errors.Is(err, sql.ErrNoRows) {
		return Entry{}, fmt.Errorf("pawlsql: inbox: %w", pawl.ErrNotFound)
	}
	if err != nil {
		return Entry{}, fmt.Errorf("pawlsql: inbox: get: %w", err)
	}
	e := Entry{ProcessedAt: time.UnixMicro(micros)}
	if result.Valid {
		e.Result = json.RawMessage(result.String)
	}
	return e, nil
}
