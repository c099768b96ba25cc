package pawlsql

import (
	"context"
	"database/sql"
)

// Execer is what a write needs: one statement of SQL, with arguments, and the
// number of rows that it affected. Std and PGX make one of what a driver has. The
// methods of this package call it from the goroutine of their caller, and keep it
// no longer than their call.
type Execer interface {
	Exec(ctx context.Context, query string, args ...any) (rowsAffected int64, err error)
}

// Std adapts *sql.Tx, *sql.Conn and *sql.DB, and what has their ExecContext:
// sqlx.Tx, bun.Tx, gorm's ConnPool. A nil one is pawl.ErrInvalid when it is used,
// and nothing is sent.
func Std(x interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}) Execer {
	if isNil(x) {
		return nilExecer("Std")
	}
	return execFunc(func(ctx context.Context, query string, args ...any) (int64, error) {
		res, err := x.ExecContext(ctx, query, args...)
		if err != nil {
			return 0, err
		}
		return res.RowsAffected()
	})
}

// PGX adapts pgx.Tx, *pgx.Conn and *pgxpool.Pool without importing pgx: R is
// inferred as pgconn.CommandTag. A nil one is pawl.ErrInvalid when it is used, and
// nothing is sent.
func PGX[R interface{ RowsAffected() int64 }](x interface {
	Exec(ctx context.Context, query string, args ...any) (R, error)
}) Execer {
	if isNil(x) {
		return nilExecer("PGX")
	}
	return execFunc(func(ctx context.Context, query string, args ...any) (int64, error) {
		res, err := x.Exec(ctx, query, args...)
		if err != nil {
			return 0, err
		}
		return res.RowsAffected(), nil
	})
}

type execFunc func(ctx context.Context, query string, args ...any) (int64, error)

func (f execFunc) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	return f(ctx, query, args...)
}

// nilExecer is what Std and PGX, which have no error to return, make of nil.
type nilExecer string

func (n nilExecer) Exec(context.Context, string, ...any) (int64, error) { return 0, n.err() }

func (n nilExecer) err() error {
	return invalidf("%s was given nil: give it the transaction", string(n))
}

func checkExecer(x Execer) error {
	if n, ok := x.(nilExecer); ok {
		return n.err()
	}
	if isNil(x) {
		return invalidf("the transaction is nil: give Std(tx), or PGX(tx) of a pgx.Tx")
	}
	return nil
}
