package pawlsql

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

const (
	defaultRetention = 30 * 24 * time.Hour    // of dead jobs, as in pawl
	maxWait          = 36525 * 24 * time.Hour // 100 years, as in pawl
	pruneBatch       = 500
	// A key that is found again is renewed if that was not done for so long: not each
	// duplicate writes.
	renewAfter = 24 * time.Hour
)

// Prune deletes the keys that no run has come with for longer than age and a day, by
// the database's clock, and returns how many. (The day is how exactly a row knows it.)
// It deletes 500 at a time, each batch on its own, so that it holds no lock for long;
// when it fails, what went before is deleted. Call it once a day or so.
//
// A key must be kept for longer than its job can come back, so age must be above
// InboxConfig.DeadRetention: a dead job may have had its effect, and be redriven.
// An age of 0 is half as long again: 45 days, if dead jobs are kept for 30. Where
// they are kept for ever (pawl.Forever) the keys must be too: that, and an age that
// is too low, is pawl.ErrInvalid, and nothing is deleted.
//
// The age of a key counts from its effect, or from the last Do or Claim that found it
// and was committed. So a job may be redriven and die as often as it likes, if each
// run gets as far as that. Give a greater age if runs may not: if they may fail before
// it, one after the other, or if a job may be snoozed for weeks.
func (in *Inbox) Prune(ctx context.Context, db *sql.DB, age time.Duration) (int64, error) {
	if err := in.checkPrune(db, &age); err != nil {
		return 0, fmt.Errorf("pawlsql: inbox: prune: %w", err)
	}
	old := "seen_at < " + in.dialect.ago()
	switch in.dialect {
	case MySQL: // its subqueries may have no limit
		old += " ORDER BY seen_at LIMIT ?"
	case SQLite:
		old = "rowid IN (SELECT rowid FROM " + in.table + " WHERE " + old + " LIMIT ?)"
	default: // a row that is locked may be about to be renewed
		old = "(consumer, job_key) IN (SELECT consumer, job_key FROM " + in.table + " WHERE " + old + " LIMIT ? FOR UPDATE SKIP LOCKED)"
	}
	query := in.dialect.bind("DELETE FROM " + in.table + " WHERE " + old)
	var total int64
	for {
		n, err := Std(db).Exec(ctx, query, (age + renewAfter).Milliseconds(), pruneBatch)
		if err != nil {
			return total, fmt.Errorf("pawlsql: inbox: prune: %w", err)
		}
		total += n
		if n < pruneBatch {
			return total, nil
		}
	}
}

func (in *Inbox) checkPrune(db *sql.DB, age *time.Duration) error {
	if in == nil || in.dialect == 0 {
		return invalidf("the Inbox is not made by NewInbox")
	}
	switch {
	case db == nil:
		return invalidf("the database is nil: give a *sql.DB")
	case in.dead == pawl.Forever:
		return invalidf("dead jobs are kept for ever, and so must be the keys: do not prune, or give pawl.Config a DeadRetention")
	case *age == 0:
		*age = in.dead + in.dead/2
	case *age <= in.dead:
		return invalidf("age %v is not above the %v for which dead jobs are kept: one that is redriven later would have its effect twice", *age, in.dead)
	case *age > 2*maxWait:
		return invalidf("age %v: give 200 years at most", *age)
	}
	return nil
}
