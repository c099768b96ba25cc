package pawlsql_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlsql"
)

type charge struct {
	Order int `json:"order"`
}

func (charge) Kind() string { return "charge" }

func newInbox(t testing.TB, d *database, cfg pawlsql.InboxConfig) *pawlsql.Inbox {
	t.Helper()
	cfg.Dialect = d.Dialect
	in, err := pawlsql.NewInbox(cfg)
	require.NoError(t, err)
	d.exec(t, in.Schema())
	return in
}

// withEffects has a table for what handlers do.
func withEffects(t testing.TB, d *database) *database {
	t.Helper()
	d.exec(t, "CREATE TABLE effects (n INTEGER NOT NULL)")
	return d
}

func effect(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO effects VALUES (1)")
	return err
}

func (d *database) effects(t testing.TB) int64 {
	return d.count(t, "SELECT count(*) FROM effects")
}

func jobOf(kind, id string) *pawl.Job[charge] {
	return &pawl.Job[charge]{RawJob: pawl.RawJob{Kind: kind, ID: pawl.ID([]byte((id + strings.Repeat("-", 16))[:16]))}}
}

func TestInboxHasOneEffectForTheRunsOfOneJob(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		ctx, in, job := t.Context(), newInbox(t, withEffects(t, d), pawlsql.InboxConfig{}), jobOf("charge", "a")
		_, err := in.Get(ctx, d.DB, job)
		require.ErrorIs(t, err, pawl.ErrNotFound)

		failed := errors.New("declined")
		done, err := in.Do(ctx, d.DB, job, func(ctx context.Context, tx *sql.Tx) error {
			require.NoError(t, effect(ctx, tx))
			return failed
		})
		require.Same(t, failed, err)
		require.False(t, done)
		require.Panics(t, func() {
			_, _ = in.Do(ctx, d.DB, job, func(ctx context.Context, tx *sql.Tx) error {
				require.NoError(t, effect(ctx, tx))
				panic("boom")
			})
		})
		require.Zero(t, d.effects(t), "what failed was rolled back, key and effect")

		before := time.Now()
		for first := range 3 {
			done, err := in.Do(ctx, d.DB, job, effect)
			require.NoError(t, err)
			require.Equal(t, first == 0, done)
		}
		require.EqualValues(t, 1, d.effects(t))
		e, err := in.Get(ctx, d.DB, &job.RawJob)
		require.NoError(t, err)
		require.Nil(t, e.Result)
		require.WithinRange(t, e.ProcessedAt, before.Add(-time.Millisecond), time.Now().Add(time.Millisecond))

		for _, other := range []pawlsql.Keyed{jobOf("refund", "a"), jobOf("charge", "b")} {
			done, err := in.Do(ctx, d.DB, other, effect)
			require.NoError(t, err)
			require.True(t, done, "another kind, or another job")
		}
	})
}

func TestInboxHasOneEffectUnderConcurrentDuplicates(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		in, job := newInbox(t, withEffects(t, d), pawlsql.InboxConfig{}), jobOf("charge", "a")
		var did, failed atomic.Int64
		var all sync.WaitGroup
		start := make(chan struct{})
		for n := range 32 {
			all.Go(func() {
				<-start
				for { // a run that failed comes again, as it would in a queue
					done, err := in.Do(context.Background(), d.DB, job, func(ctx context.Context, tx *sql.Tx) error {
						if err := effect(ctx, tx); err != nil || n%2 == 0 || failed.Add(1) > 3 {
							return err
						}
						return errors.New("rolled back, with others waiting")
					})
					if done {
						did.Add(1)
					}
					if err == nil {
						return
					}
				}
			})
		}
		close(start)
		all.Wait()
		require.EqualValues(t, 1, did.Load())
		require.EqualValues(t, 1, d.effects(t))
	})
}

// The number of rows that MySQL says were affected depends on the connection.
func TestInboxTellsDuplicatesWhateverMySQLCounts(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pawlsql.MySQL)
	in := newInbox(t, d, pawlsql.InboxConfig{})
	for _, params := range []string{"clientFoundRows=true", "clientFoundRows=false", "clientFoundRows=true&interpolateParams=true", "charset=latin1"} {
		with := d.again(t, params)
		job := pawlsql.Keyed(jobOf("charge é", params[len(params)-9:]))
		for n := range 4 {
			fresh, err := in.Claim(t.Context(), pawlsql.Std(with.DB), job)
			require.NoError(t, err)
			require.Equal(t, n == 0, fresh, params)
			require.NoError(t, in.SetResult(t.Context(), pawlsql.Std(with.DB), job, "the same"))
			_, err = in.Get(t.Context(), d.DB, job)
			require.NoError(t, err)
		}
	}
}

func TestInboxKeysAreBytes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		in := newInbox(t, d, pawlsql.InboxConfig{Consumer: "ledger"})
		keys := []string{"a", "A", "a ", " a", "a  ", "á", "a\u0301", "ａ", "a\n", "ß", "ss", "'", `"`, `\`, "?", "$1", "%", "日本", "🐾",
			strings.Repeat("k", 512), strings.Repeat("k", 511), strings.Repeat("é", 256)}
		for _, key := range keys {
			for n := range 2 {
				fresh, err := in.Claim(t.Context(), pawlsql.Std(d.DB), pawlsql.Key(key))
				require.NoError(t, err)
				require.Equal(t, n == 0, fresh, "%q", key)
			}
		}
	})
}

func TestInboxConsumersDoNotHideEachOther(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		job := jobOf("charge", "a")
		first := newInbox(t, d, pawlsql.InboxConfig{Consumer: "ledger"})
		for _, consumer := range []string{"ledger", "mail", "ledger ", ""} {
			in, err := pawlsql.NewInbox(pawlsql.InboxConfig{Dialect: d.Dialect, Consumer: consumer})
			require.NoError(t, err)
			fresh, err := in.Claim(t.Context(), pawlsql.Std(d.DB), job)
			require.NoError(t, err)
			require.True(t, fresh, "%q", consumer)
		}
		fresh, err := first.Claim(t.Context(), pawlsql.Std(d.DB), job)
		require.NoError(t, err)
		require.False(t, fresh)
	})
}

// A claim that finds its key leaves the transaction fit for use: on PostgreSQL an
// error would have aborted it.
func TestInboxClaimLivesInATransactionOfYourOwn(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		ctx, in, job := t.Context(), newInbox(t, withEffects(t, d), pawlsql.InboxConfig{}), jobOf("charge", "a")
		claim := func(want bool) *sql.Tx {
			tx := d.begin(t)
			fresh, err := in.Claim(ctx, pawlsql.Std(tx), job)
			require.NoError(t, err)
			require.Equal(t, want, fresh)
			return tx
		}
		require.NoError(t, claim(true).Rollback())
		require.NoError(t, claim(true).Commit())
		tx := claim(false)
		require.NoError(t, effect(ctx, tx))
		require.NoError(t, tx.Commit())
		require.EqualValues(t, 1, d.effects(t))
	})
}

func TestInboxClaimsThroughPGX(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pawlsql.Postgres)
	ctx, in := t.Context(), newInbox(t, d, pawlsql.InboxConfig{})
	pool, err := pgxpool.New(ctx, d.dsn)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	conn, err := pgx.Connect(ctx, d.dsn+"&default_query_exec_mode=simple_protocol")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	job := jobOf("charge", "a")

	tx, err := pool.Begin(ctx)
	require.NoError(t, err)
	fresh, err := in.Claim(ctx, pawlsql.PGX(tx), job)
	require.NoError(t, err)
	require.True(t, fresh)
	require.NoError(t, in.SetResult(ctx, pawlsql.PGX(tx), job, map[string]int{"n": 7}))
	require.NoError(t, tx.Commit(ctx))
	for _, x := range []pawlsql.Execer{pawlsql.PGX(pool), pawlsql.PGX(conn), pawlsql.Std(d.DB)} {
		fresh, err := in.Claim(ctx, x, job)
		require.NoError(t, err)
		require.False(t, fresh)
	}
	fresh, err = in.Claim(ctx, pawlsql.PGX(conn), jobOf("charge", "b"))
	require.NoError(t, err)
	require.True(t, fresh)
	e, err := in.Get(ctx, d.DB, job)
	require.NoError(t, err)
	require.JSONEq(t, `{"n":7}`, string(e.Result))
}

func TestInboxKeepsAResult(t *testing.T) {
	t.Parallel()
	type receipt struct {
		Number int64
		Text   string
	}
	want := receipt{1<<62 + 1, "é\x00🐾 'quoted'"}
	onEach(t, func(t *testing.T, d *database) {
		ctx, in, job := t.Context(), newInbox(t, d, pawlsql.InboxConfig{}), jobOf("charge", "a")
		for n := range 3 {
			got, done, err := pawlsql.DoResult(ctx, in, d.DB, job, func(context.Context, *sql.Tx) (receipt, error) {
				require.Zero(t, n)
				return want, nil
			})
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, n == 0, done)
		}
		_, _, err := pawlsql.DoResult(ctx, in, d.DB, job, func(context.Context, *sql.Tx) (int, error) { return 0, nil })
		require.ErrorContains(t, err, "not one of int")

		plain, failed := jobOf("charge", "b"), errors.New("declined")
		got, done, err := pawlsql.DoResult(ctx, in, d.DB, plain, func(context.Context, *sql.Tx) (int, error) { return 7, failed })
		require.Same(t, failed, err)
		require.Zero(t, got)
		require.False(t, done)
		_, err = in.Do(ctx, d.DB, plain, func(context.Context, *sql.Tx) error { return nil })
		require.NoError(t, err)
		_, _, err = pawlsql.DoResult(ctx, in, d.DB, plain, func(context.Context, *sql.Tx) (int, error) { return 7, nil })
		require.ErrorIs(t, err, pawl.ErrNotFound)
		require.ErrorIs(t, in.SetResult(ctx, pawlsql.Std(d.DB), jobOf("charge", "c"), 7), pawl.ErrNotFound)
	})
}

// A role needs no more than doc.go says.
func TestRolesNeedNoMoreThanTheirTables(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pawlsql.Postgres)
	ctx, in, o := t.Context(), newInbox(t, d, pawlsql.InboxConfig{}), newOutbox(t, d, pawlsql.OutboxConfig{})
	role := func(rights, table string) *database {
		name := "role" + pawl.Key(databases.Add(1))
		d.exec(t, "CREATE ROLE "+name+" LOGIN")
		d.exec(t, "GRANT "+rights+" ON "+table+" TO "+name)
		return open(t, d.Dialect, d.driver, strings.Replace(d.dsn, "user=postgres", "user="+name, 1), d.server)
	}
	inbox := role("SELECT, INSERT, UPDATE, DELETE", "pawl_inbox")
	_, _, err := pawlsql.DoResult(ctx, in, inbox.DB, jobOf("charge", "a"), func(context.Context, *sql.Tx) (int, error) { return 7, nil })
	require.NoError(t, err)
	_, err = in.Prune(ctx, inbox.DB, 0)
	require.NoError(t, err)
	_, err = o.Enqueue(ctx, pawlsql.Std(role("INSERT", "pawl_outbox").DB), "q", charge{0})
	require.NoError(t, err)
	c, relay := realRedis(t), role("SELECT, UPDATE, DELETE", "pawl_outbox")
	r := newRelay(t, relay, o, c, pawlsql.RelayConfig{})
	run(t, r)
	drained(t, r)
	_, err = r.Retry(ctx)
	require.NoError(t, err)
	requireOnce(t, c, "q", 1)
}
