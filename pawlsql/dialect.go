package pawlsql

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/pawlq/pawl"
)

// Dialect is the SQL a database speaks.
type Dialect int

const (
	// Postgres is PostgreSQL 10 or newer, through any driver that writes a
	// placeholder as $1.
	Postgres Dialect = iota + 1
	// MySQL is MySQL 8.0.1 or MariaDB 10.6, or newer, with InnoDB. What is below
	// has no SKIP LOCKED, which a Relay needs.
	MySQL
	// SQLite is 3.24 or newer.
	SQLite
)

// String names the dialect.
func (d Dialect) String() string {
	switch d {
	case Postgres:
		return "Postgres"
	case MySQL:
		return "MySQL"
	case SQLite:
		return "SQLite"
	default:
		return fmt.Sprintf("Dialect(%d)", int(d))
	}
}

func (d Dialect) check() error {
	if d < Postgres || d > SQLite {
		return invalidf("Dialect is %d: give Postgres, MySQL (MariaDB too) or SQLite", int(d))
	}
	return nil
}

// bind writes the placeholders of a query, which are "?", as the dialect does.
func (d Dialect) bind(query string) string {
	if d != Postgres {
		return query
	}
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(query, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

// now is the moment by the database's clock: that of the statement, not that of
// its transaction's begin, which may be long ago; and in UTC, whatever the time
// zones of the sessions are.
func (d Dialect) now() string {
	return map[Dialect]string{
		Postgres: "clock_timestamp()",
		MySQL:    "UTC_TIMESTAMP(6)",
		SQLite:   "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)", // ms since 1970
	}[d]
}

// ago is the moment a number of milliseconds before now, that number being a
// placeholder.
func (d Dialect) ago() string {
	return map[Dialect]string{
		// Not clock_timestamp, which may differ from row to row: no index would be used.
		Postgres: "statement_timestamp() - CAST(? AS bigint) * interval '1 millisecond'",
		MySQL:    d.now() + " - INTERVAL (? * 1000) MICROSECOND",
		SQLite:   d.now() + " - ?",
	}[d]
}

// micros is a column's moment in microseconds since 1970. Drivers would make each
// another Go type of it.
func (d Dialect) micros(column string) string {
	return fmt.Sprintf(map[Dialect]string{
		Postgres: "CAST(extract(epoch FROM %s) * 1000000 AS bigint)",
		MySQL:    "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', %s)",
		SQLite:   "%s * 1000",
	}[d], column)
}

// age is how many microseconds ago a column's moment is.
func (d Dialect) age(column string) string { return d.micros(d.now()) + " - " + d.micros(column) }

// maxName is what a name of a table or schema may have: PostgreSQL cuts at 63
// bytes, and the names of indexes are made from it.
const maxName = 48

// tableName is the name to use, and its last part. It goes into SQL as it is, so
// it has nothing but letters, digits and underscores.
func tableName(d Dialect, given, byDefault string) (name, bare string, err error) {
	if given == "" {
		given = byDefault
	}
	parts := strings.Split(given, ".")
	if len(parts) > 2 || len(parts) == 2 && d == SQLite {
		return "", "", invalidf("Table %q: give a name, or on PostgreSQL and MySQL schema.name", given)
	}
	for _, part := range parts {
		if !plainName(part) {
			return "", "", invalidf("Table %q: use letters, digits and underscores, not first a digit, at most %d of them", given, maxName)
		}
	}
	return given, parts[len(parts)-1], nil
}

func plainName(s string) bool {
	for i, r := range s {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %w", pawl.ErrInvalid, fmt.Errorf(format, args...))
}

// isNil sees the nil inside a non-nil interface too.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Interface:
		return r.IsNil()
	default:
		return false
	}
}
