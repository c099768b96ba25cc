package pawlsql_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/ncruces/go-sqlite3/driver"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/pawlsql"
)

// database is an empty one of a single test.
type database struct {
	Dialect pawlsql.Dialect
	DB      *sql.DB

	driver, dsn string
	server      *server // nil: SQLite
}

// The databases that each test runs on.
var dialects = []pawlsql.Dialect{pawlsql.Postgres, pawlsql.MySQL, pawlsql.SQLite}

// onEach runs a test on each of the databases.
func onEach(t *testing.T, fn func(t *testing.T, d *database)) {
	t.Helper()
	for _, dialect := range dialects {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			fn(t, newDatabase(t, dialect))
		})
	}
}

func newDatabase(t testing.TB, dialect pawlsql.Dialect) *database {
	t.Helper()
	if dialect == pawlsql.SQLite {
		file := filepath.Join(t.TempDir(), "test.db")
		return open(t, dialect, "sqlite3", "file:"+file+"?_pragma=journal_mode(wal)&_pragma=busy_timeout(20000)&_pragma=synchronous(off)&_txlock=immediate", nil)
	}
	return databaseOn(t, sharedServer(t, dialect))
}

var databases atomic.Int64

// databaseOn makes a database on a server.
func databaseOn(t testing.TB, s *server) *database {
	t.Helper()
	name := fmt.Sprintf("test%d", databases.Add(1))
	admin := open(t, s.dialect, s.driver(), s.dsn(s.admin), s)
	admin.exec(t, "CREATE DATABASE "+name)
	return open(t, s.dialect, s.driver(), s.dsn(name), s)
}

func open(t testing.TB, dialect pawlsql.Dialect, driver, dsn string, s *server) *database {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxIdleConns(8)
	return &database{Dialect: dialect, DB: db, driver: driver, dsn: dsn, server: s}
}

// again is another pool of the same database, with parameters added to its DSN.
func (d *database) again(t testing.TB, params string) *database {
	t.Helper()
	dsn := d.dsn
	if params != "" {
		sep := "?"
		if strings.Contains(dsn, "?") {
			sep = "&"
		}
		dsn += sep + params
	}
	return open(t, d.Dialect, d.driver, dsn, d.server)
}

func (d *database) exec(t testing.TB, query string, args ...any) {
	t.Helper()
	_, err := d.DB.ExecContext(context.Background(), query, args...)
	require.NoError(t, err, query)
}

// count answers a query of one number.
func (d *database) count(t testing.TB, query string, args ...any) int64 {
	t.Helper()
	var n int64
	require.NoError(t, d.DB.QueryRowContext(context.Background(), query, args...).Scan(&n), query)
	return n
}

// begin begins a transaction that ends with the test, at the latest.
func (d *database) begin(t testing.TB) *sql.Tx {
	t.Helper()
	tx, err := d.DB.BeginTx(context.Background(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// requireEnv names the variable that turns a missing database server from a skip
// into a failure; CI sets it.
const requireEnv = "PAWL_REQUIRE_SQL"

func demand(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(requireEnv) != "" {
		t.Fatalf("%s, and %s is set", what, requireEnv)
	}
	t.Skip("SKIPPED: " + what)
}

// eventually polls a real server, for at most half a minute.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			t.Fatalf("not within 30 s: %s", what)
		case <-tick.C:
		}
	}
}

// escape is a path in a URL's query.
func escape(path string) string { return url.QueryEscape(path) }
