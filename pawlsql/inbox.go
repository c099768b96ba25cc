package pawlsql

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawlq/pawl"
)

// Inbox remembers what was done, in the database where it was done: a key and the
// effect of its work are committed together, or neither is. So the effect of a job
// on that database happens once, however often the job runs. Its table comes from
// Schema.
//
// It is immutable and safe for concurrent use, by any number of processes.
type Inbox struct {
	dialect  Dialect
	table    string
	bare     string
	consumer string
	dead     time.Duration

	claim string // the statement
	renew string // that for a key that claim has found; "": claim does it
}

// InboxConfig is an inbox. Dialect must be set.
type InboxConfig struct {
	Dialect Dialect
	// Table is the table's name, with a schema before it where there is one on
	// PostgreSQL or MySQL. Default "pawl_inbox". It goes into SQL unquoted: letters,
	// digits and underscores.
	Table string
	// Consumer is who does the work: two consumers of one key do not hide each
	// other's. At most 255 bytes of UTF-8. Default: the job's kind.
	Consumer string
	// DeadRetention is that of the pawl.Config of the jobs, for Prune: as long as a
	// job can be redriven, its key is needed. Default 30 days, as there.
	DeadRetention time.Duration
}

// Keyed is work that has a key: a *pawl.RawJob or *pawl.Job[T], whose key is the
// same for every run of the job, or a Key of your own.
type Keyed interface{ IdempotencyKey() string }

// Key is a Keyed of a message that is not a job of pawl. It has no kind, so the
// Inbox needs a Consumer. Make it of business data, as with pawl.Key.
type Key string

// IdempotencyKey is the key itself.
func (k Key) IdempotencyKey() string { return string(k) }

const (
	maxKey      = 512 // bytes, as of a pawl.Unique
	maxConsumer = 255 // bytes, as of a kind
)

// NewInbox validates cfg. It does not talk to the database. Its error wraps
// pawl.ErrInvalid.
func NewInbox(cfg InboxConfig) (*Inbox, error) {
	if err := cfg.Dialect.check(); err != nil {
		return nil, fmt.Errorf("pawlsql: inbox: %w", err)
	}
	table, bare, err := tableName(cfg.Dialect, cfg.Table, "pawl_inbox")
	if err != nil {
		return nil, fmt.Errorf("pawlsql: inbox: %w", err)
	}
	if cfg.Consumer != "" {
		if err := checkText("Consumer", cfg.Consumer, maxConsumer); err != nil {
			return nil, fmt.Errorf("pawlsql: inbox: %w", err)
		}
	}
	dead := cfg.DeadRetention
	if dead == 0 {
		dead = defaultRetention
	}
	if dead < 0 && dead != pawl.Forever || dead > maxWait {
		return nil, fmt.Errorf("pawlsql: inbox: %w", invalidf("DeadRetention %v: give that of pawl.Config, or 0 for its default of 30 days", cfg.DeadRetention))
	}
	in := &Inbox{dialect: cfg.Dialect, table: table, bare: bare, consumer: cfg.Consumer, dead: dead}
	// An error would abort a transaction of PostgreSQL. MySQL counts the rows of an
	// update that changes nothing as 0 or, with clientFoundRows, as 1, which is what
	// an insert counts; one that changes a row counts as 2 in both. INSERT IGNORE
	// would hide what else is wrong with a row.
	now, old := in.dialect.now(), "seen_at < "+in.dialect.ago()
	taken := "ON CONFLICT (consumer, job_key) DO NOTHING"
	if in.dialect == MySQL {
		taken = "ON DUPLICATE KEY UPDATE again = NOT again, seen_at = IF(" + old + ", " + now + ", seen_at)"
	}
	in.claim = in.dialect.bind("INSERT INTO " + table + " (consumer, job_key, processed_at, seen_at) VALUES (?, ?, " + now + ", " + now + ") " + taken)
	if in.dialect != MySQL { // an update in the insert would count as one, or lock the row each time
		in.renew = in.dialect.bind("UPDATE " + table + " SET seen_at = " + now + " WHERE consumer = ? AND job_key = ? AND " + old)
	}
	return in, nil
}

// Do runs fn once per key: the key is inserted first, and commits with what fn did
// in tx, or not at all. done says that fn ran and that both are committed. If the
// key is there already, fn does not run, done is false and the error nil: the work
// is done, and the key is kept from Prune for as long again. Where two runs meet, the
// later one waits until the first has ended, and runs if that was rolled back. (On
// PostgreSQL in a stricter isolation than read committed it gets the database's error
// 40001 instead.)
//
// One Do is for one effect: a second Do of the same job, with another fn, finds the
// key of the first and does nothing. Give it an Inbox with another Consumer.
//
// fn must not end tx, nor do anything outside of it that must not happen twice. Its
// error rolls back, and is returned as it is. An error of the commit may mean that
// it was made: a next run will know.
func (in *Inbox) Do(ctx context.Context, db *sql.DB, job Keyed, fn func(ctx context.Context, tx *sql.Tx) error) (done bool, err error) {
	consumer, key, err := in.identify(job)
	if err == nil && db == nil {
		err = invalidf("the database is nil: give a *sql.DB")
	}
	if err == nil && fn == nil {
		err = invalidf("the function is nil: give what is to be done once")
	}
	if err != nil {
		return false, fmt.Errorf("pawlsql: inbox: %w", err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("pawlsql: inbox: begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // of no effect after a commit
	fresh, err := in.insert(ctx, Std(tx), consumer, key)
	if err == nil && fresh {
		err = fn(ctx, tx)
	}
	if err != nil {
		return false, err
	}
	if err := tx.Commit(); err != nil { // of a key that was found too: it may be renewed
		return false, fmt.Errorf("pawlsql: inbox: commit: %w", err)
	}
	return fresh, nil
}

// Claim is Do for a transaction of your own, with any driver: it inserts the key
// into tx. true means to go on: do the work in tx, and commit. false means that the
// work is done already: do nothing more, and commit as well. That keeps the key from
// Prune for as long again, as a job that comes again may be needed for longer; a
// rollback does no other harm than to leave its age as it was.
//
// It waits for another transaction that has claimed the key and not ended. So two that
// claim several keys should do it in one order, or the database ends one of them, as a
// deadlock. Errors
// wrap pawl.ErrInvalid, and nothing was sent, or are the database's own; end tx
// then.
func (in *Inbox) Claim(ctx context.Context, tx Execer, job Keyed) (bool, error) {
	consumer, key, err := in.identify(job)
	if err == nil {
		err = checkExecer(tx)
	}
	if err != nil {
		return false, fmt.Errorf("pawlsql: inbox: %w", err)
	}
	return in.insert(ctx, tx, consumer, key)
}

func (in *Inbox) insert(ctx context.Context, tx Execer, consumer, key string) (fresh bool, err error) {
	old := renewAfter.Milliseconds()
	args := []any{consumer, key}
	if in.dialect == MySQL {
		args = append(args, old)
	}
	n, err := tx.Exec(ctx, in.claim, args...)
	if err != nil {
		return false, fmt.Errorf("pawlsql: inbox: claim: %w", err)
	}
	if n == 1 || in.renew == "" {
		return n == 1, nil
	}
	if _, err := tx.Exec(ctx, in.renew, consumer, key, old); err != nil {
		return false, fmt.Errorf("pawlsql: inbox: renew: %w", err)
	}
	return false, nil
}

// identify is what a row is found by.
func (in *Inbox) identify(job Keyed) (consumer, key string, err error) {
	if in == nil || in.dialect == 0 {
		return "", "", invalidf("the Inbox is not made by NewInbox")
	}
	if isNil(job) {
		return "", "", invalidf("the job is nil: give the one that the handler was given")
	}
	key, consumer = job.IdempotencyKey(), in.consumer
	if key == "" {
		return "", "", invalidf("the key is empty: a literal job needs an ID")
	}
	if err := checkText("the key", key, maxKey); err != nil {
		return "", "", err
	}
	if consumer != "" {
		return consumer, key, nil
	}
	if consumer = kindOf(job); consumer == "" {
		return "", "", invalidf("%T has no kind: set InboxConfig.Consumer", job)
	}
	return consumer, key, checkText("the kind", consumer, maxConsumer)
}

// kindOf is the field Kind, which the type parameter of a pawl.Job hides from a
// type switch.
func kindOf(job Keyed) string {
	v := reflect.Indirect(reflect.ValueOf(job))
	if v.Kind() != reflect.Struct {
		return ""
	}
	f, ok := v.Type().FieldByName("Kind")
	if !ok || f.Type.Kind() != reflect.String {
		return ""
	}
	kind, err := v.FieldByIndexErr(f.Index) // not nil pointers on the way
	if err != nil {
		return ""
	}
	return kind.String()
}

func checkText(what, s string, most int) error {
	switch {
	case len(s) > most:
		return invalidf("%s has %d bytes: use at most %d, such as a hash of it", what, len(s), most)
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return invalidf("%s %q is not text that a database keeps: use UTF-8 without the character 0", what, s)
	}
	return nil
}
