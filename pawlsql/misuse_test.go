package pawlsql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlsql"
)

var errUnusable = errors.New("the database was asked")

type noConnector struct{}

func (noConnector) Connect(context.Context) (driver.Conn, error) { return nil, errUnusable }
func (noConnector) Driver() driver.Driver                        { return nil }

// unusable is a database that tells when it is asked.
func unusable(t testing.TB) *sql.DB {
	db := sql.OpenDB(noConnector{})
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// nobody is an Execer that tells when it is used.
type nobody struct{}

func (*nobody) Exec(context.Context, string, ...any) (int64, error) { return 0, errUnusable }

type oddJob struct{ *pawl.RawJob }

func (oddJob) IdempotencyKey() string { return "k" }

func TestBadTablesAndDialectsAreRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("t", 49)
	for _, cfg := range []pawlsql.InboxConfig{
		{}, {Dialect: -1}, {Dialect: 4},
		{Dialect: 1, Table: "a b"}, {Dialect: 1, Table: "a;drop"}, {Dialect: 1, Table: `a"b`}, {Dialect: 2, Table: "a`b"}, {Dialect: 1, Table: "1a"},
		{Dialect: 1, Table: "a.b.c"}, {Dialect: 1, Table: "."}, {Dialect: 1, Table: "a."}, {Dialect: 1, Table: ".a"}, {Dialect: 1, Table: "é"},
		{Dialect: 1, Table: "a-b"}, {Dialect: 1, Table: "a\n"}, {Dialect: 1, Table: "a?"}, {Dialect: 1, Table: "a$1"}, {Dialect: 1, Table: long},
		{Dialect: 3, Table: "main.a"},
		{Dialect: 1, Consumer: "a\x00"}, {Dialect: 1, Consumer: "\xff"}, {Dialect: 1, Consumer: strings.Repeat("c", 256)},
		{Dialect: 1, DeadRetention: -2}, {Dialect: 1, DeadRetention: 1 << 62},
	} {
		in, err := pawlsql.NewInbox(cfg)
		require.ErrorIs(t, err, pawl.ErrInvalid, "%+v", cfg)
		require.Nil(t, in)
	}
	for _, table := range []string{"a", "_", "A_1", "app.jobs", long[:48]} {
		in, err := pawlsql.NewInbox(pawlsql.InboxConfig{Dialect: pawlsql.Postgres, Table: table})
		require.NoError(t, err)
		require.Contains(t, in.Schema(), "CREATE TABLE "+table+" (")
	}
	require.Equal(t, "Postgres MySQL SQLite Dialect(9)", strings.Join([]string{pawlsql.Postgres.String(), pawlsql.MySQL.String(), pawlsql.SQLite.String(), pawlsql.Dialect(9).String()}, " "))
}

// What no transaction can be made of is refused before any SQL.
func TestNilTransactionsAndJobsAreRefused(t *testing.T) {
	t.Parallel()
	in, err := pawlsql.NewInbox(pawlsql.InboxConfig{Dialect: pawlsql.SQLite})
	require.NoError(t, err)
	job, ctx, some := jobOf("charge", "a"), t.Context(), pawlsql.Execer(&nobody{})
	var nobodyNil *nobody
	for _, tx := range []pawlsql.Execer{nil, nobodyNil, pawlsql.Std(nil), pawlsql.Std((*sql.Tx)(nil)), pawlsql.Std((*sql.DB)(nil)),
		pawlsql.PGX((*pgx.Conn)(nil)), pawlsql.PGX((*pgxpool.Pool)(nil)), pawlsql.PGX(pgx.Tx(nil))} {
		_, err := in.Claim(ctx, tx, job)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorIs(t, in.SetResult(ctx, tx, job, 1), pawl.ErrInvalid)
	}
	_, err = pawlsql.Std((*sql.Tx)(nil)).Exec(ctx, "SELECT 1")
	require.ErrorIs(t, err, pawl.ErrInvalid)

	for name, job := range map[string]pawlsql.Keyed{
		"nil": nil, "a nil job": (*pawl.Job[charge])(nil), "a nil raw job": (*pawl.RawJob)(nil), "a job without an ID": &pawl.RawJob{Kind: "k"},
		"an ID without a kind": jobOf("", "a"), "an empty key": pawlsql.Key(""), "a key without a consumer": pawlsql.Key("k"),
		"a nil embedded job": oddJob{}, "a kind that is too long": jobOf(strings.Repeat("k", 256), "a"), "a kind with a zero": jobOf("\x00", "a"),
	} {
		_, err := in.Claim(ctx, some, job)
		require.ErrorIs(t, err, pawl.ErrInvalid, name)
		_, err = in.Do(ctx, unusable(t), job, effect)
		require.ErrorIs(t, err, pawl.ErrInvalid, name)
		_, err = in.Get(ctx, unusable(t), job)
		require.ErrorIs(t, err, pawl.ErrInvalid, name)
		require.ErrorIs(t, in.SetResult(ctx, some, job, 1), pawl.ErrInvalid, name)
	}
	named, err := pawlsql.NewInbox(pawlsql.InboxConfig{Dialect: pawlsql.SQLite, Consumer: "c"})
	require.NoError(t, err)
	for _, key := range []string{strings.Repeat("k", 513), "\xff", "a\x00"} {
		_, err := named.Claim(ctx, some, pawlsql.Key(key))
		require.ErrorIs(t, err, pawl.ErrInvalid, "%q", key)
	}
	require.ErrorIs(t, in.SetResult(ctx, some, job, make(chan int)), pawl.ErrInvalid)

	_, err = in.Do(ctx, nil, job, effect)
	require.ErrorIs(t, err, pawl.ErrInvalid)
	_, err = in.Do(ctx, unusable(t), job, nil)
	require.ErrorIs(t, err, pawl.ErrInvalid)
	_, _, err = pawlsql.DoResult[int](ctx, in, unusable(t), job, nil)
	require.ErrorIs(t, err, pawl.ErrInvalid)
	_, err = in.Get(ctx, (*sql.DB)(nil), job)
	require.ErrorIs(t, err, pawl.ErrInvalid)
	_, err = in.Prune(ctx, nil, 0)
	require.ErrorIs(t, err, pawl.ErrInvalid)
	for _, none := range []*pawlsql.Inbox{nil, {}} {
		_, err = none.Claim(ctx, some, job)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		_, err = none.Do(ctx, unusable(t), job, effect)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		_, err = none.Prune(ctx, unusable(t), 0)
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
	_, err = in.Do(ctx, unusable(t), job, effect)
	require.ErrorIs(t, err, errUnusable)
	_, err = in.Claim(ctx, some, job)
	require.ErrorIs(t, err, errUnusable)
}
