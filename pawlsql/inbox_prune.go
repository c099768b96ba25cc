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
)

// Prune deletes the keys that are older than age, by the database's clock, and
// returns how many. It deletes 500 at a time, each batch on its own, so that it
// holds no lock for long; when it fails, what went before is deleted. Call it once
// a day or so.
//
// A key must be kept for longer than its job can come back, so age must be above
// InboxConfig.DeadRetention: a dead job may have had its effect, and be redriven.
// An age of 0 is half as long again: 45 days, if dead jobs are kept for 30. Where
// they are kept for ever (pawl.Forever) the keys must be too: that, and an age that
// is too low, is pawl.ErrInvalid, and nothing is deleted. The age of a key counts
// from its effect, and DeadRetention from the death of the job: give a greater age if
// jobs may be tried or snoozed for weeks, or are redriven and die again.
func (in *Inbox) Prune(ctx context.Context, db *sql.DB, age time.Duration) (int64, error) {
	if err := in.checkPrune(db, &age); err != nil {
		return 0, fmt.Errorf("pawlsql: inbox: prune: %w", err)
	}
	var old string
	switch in.dialect {
	case MySQL: // its subqueries may have no limit
		old = "processed_at < " + in.dialect.ago() + " ORDER BY processed_at LIMIT ?"
	case SQLite:
		old = "rowid IN (SELECT rowid FROM " + in.table + " WHERE processed_at < " + in.dialect.ago() + " LIMIT ?)"
	default:
		old = "(consumer, job_key) IN (SELECT consumer, job_key FROM " + in.table + " WHERE processed_at < " + in.dialect.ago() + " LIMIT ?)"
	}
	query := in.dialect.bind("DELETE FROM " + in.table + " WHERE " + old)
	var total int64
	for {
		n, err := Std(db).Exec(ctx, query, age.Milliseconds(), pruneBatch)
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
