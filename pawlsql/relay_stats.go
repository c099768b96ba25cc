package pawlsql

import (
	"context"
	"fmt"
	"time"
)

// RelayStats is for alerts: Oldest must stay small, Failed at zero.
type RelayStats struct {
	// Pending rows wait for a relay. Those of a transaction that has not committed
	// are not seen.
	Pending int64
	// Failed rows were refused; see Relay and Retry.
	Failed int64
	// Oldest is the age of the oldest pending row, by the database's clock; 0 if
	// there is none.
	Oldest time.Duration
}

// Stats counts the rows, whoever relays them. It looks at all of them: once every
// few seconds is often enough.
func (r *Relay) Stats(ctx context.Context) (RelayStats, error) {
	if err := r.check(); err != nil {
		return RelayStats{}, err
	}
	o := r.outbox
	oldest := "min(CASE WHEN failed_at IS NULL THEN created_at END)"
	query := "SELECT count(*) - count(failed_at), count(failed_at), COALESCE(" + o.dialect.age(oldest) + ", 0) FROM " + o.table
	var s RelayStats
	var micros int64
	if err := r.db.QueryRowContext(ctx, query).Scan(&s.Pending, &s.Failed, &micros); err != nil {
		return RelayStats{}, fmt.Errorf("pawlsql: relay: stats: %w", err)
	}
	s.Oldest = time.Duration(max(micros, 0)) * time.Microsecond
	return s, nil
}

// Retry makes failed rows pending again, once what was wrong is mended, and returns
// how many. It takes each row once, 500 at a time, each batch on its own: when it
// fails, what went before is pending. Any relay takes them from there.
//
// One row by SQL: UPDATE pawl_outbox SET failed_at = NULL, error = NULL WHERE id = 7.
// One that is given up is deleted.
func (r *Relay) Retry(ctx context.Context) (int64, error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	o := r.outbox
	var total, last int64
	for {
		ids, err := r.failedAfter(ctx, last)
		if err != nil || len(ids) == 0 {
			return total, err
		}
		query := "UPDATE " + o.table + " SET failed_at = NULL, error = NULL WHERE failed_at IS NOT NULL AND id IN (" + marks(len(ids)) + ")"
		n, err := Std(r.db).Exec(ctx, o.dialect.bind(query), ids...)
		if err != nil {
			return total, fmt.Errorf("pawlsql: relay: retry: %w", err)
		}
		total, last = total+n, ids[len(ids)-1].(int64)
		r.Wake()
	}
}

func (r *Relay) failedAfter(ctx context.Context, id int64) (ids []any, err error) {
	query := "SELECT id FROM " + r.outbox.table + " WHERE failed_at IS NOT NULL AND id > ? ORDER BY id LIMIT ?"
	rows, err := r.db.QueryContext(ctx, r.outbox.dialect.bind(query), id, maxBatch)
	if err != nil {
		return nil, fmt.Errorf("pawlsql: relay: retry: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("pawlsql: relay: retry: %w", err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("pawlsql: relay: retry: %w", err)
	}
	return ids, nil
}
