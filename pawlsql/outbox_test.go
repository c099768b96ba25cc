package pawlsql_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlsql"
	"github.com/pawlq/pawl/pawltest"
)

func newOutbox(t testing.TB, d *database, cfg pawlsql.OutboxConfig) *pawlsql.Outbox {
	t.Helper()
	cfg.Dialect = d.Dialect
	o, err := pawlsql.NewOutbox(cfg)
	require.NoError(t, err)
	d.exec(t, o.Schema())
	return o
}

// put writes jobs, in a transaction that commits.
func put(t testing.TB, d *database, o *pawlsql.Outbox, queue string, items ...pawl.Item) (keys []string) {
	t.Helper()
	tx := d.begin(t)
	keys, err := o.EnqueueMany(context.Background(), pawlsql.Std(tx), queue, items)
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	return keys
}

func charges(from, n int) (items []pawl.Item) {
	for i := range n {
		items = append(items, pawl.Item{Args: charge{from + i}})
	}
	return items
}

func (d *database) pending(t testing.TB) int64 {
	return d.count(t, "SELECT count(*) FROM pawl_outbox WHERE failed_at IS NULL")
}

// reminder has options that its fields decide.
type reminder struct {
	Days int `json:"days"`
}

func (reminder) Kind() string { return "reminder" }

func (r reminder) JobOptions() []pawl.Option {
	return []pawl.Option{pawl.Delay(time.Duration(r.Days) * 24 * time.Hour), pawl.Priority(r.Days), pawl.Header{Key: "type", Value: "says"}, pawl.MaxAttempts(3)}
}

func TestAJobIsThereIfAndOnlyIfItsTransactionCommits(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		ctx, env, o := t.Context(), pawltest.New(t, pawl.Config{}), newOutbox(t, withEffects(t, d), pawlsql.OutboxConfig{})
		rolled := d.begin(t)
		require.NoError(t, effect(ctx, rolled))
		_, err := o.Enqueue(ctx, pawlsql.Std(rolled), "payments", charge{1})
		require.NoError(t, err)
		require.NoError(t, rolled.Rollback())

		tx := d.begin(t)
		require.NoError(t, effect(ctx, tx))
		key, err := o.Enqueue(ctx, pawlsql.Std(tx), "payments", charge{2}, pawl.Priority(7))
		require.NoError(t, err)
		require.NotEmpty(t, key)
		require.NoError(t, tx.Commit())

		relayed(t, d, o, env)
		require.Len(t, pawltest.Jobs[pawl.Args](env, "payments"), 1)
		pawltest.RequireEnqueued(env, "payments", charge{2}, pawl.Priority(7))
		require.EqualValues(t, 1, d.effects(t))
	})
}

// What the type says is resolved when the row is written, from the values of then.
func TestOptionsOfTheTypeAndOfTheCallAreHonoured(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		env := pawltest.New(t, pawl.Config{Inject: func(_ context.Context, h pawl.Headers) { h["from"], h["relay"] = "relay", "yes" }})
		o := newOutbox(t, d, pawlsql.OutboxConfig{Inject: func(ctx context.Context, h pawl.Headers) { h["from"] = ctx.Value(tenantKey{}).(string) }})
		ctx := context.WithValue(t.Context(), tenantKey{}, "caller")
		enqueue := func(args pawl.Args, opts ...pawl.Option) {
			_, err := o.Enqueue(ctx, pawlsql.Std(d.DB), "q", args, opts...)
			require.NoError(t, err)
		}
		backoff := pawl.Backoff{Steps: []time.Duration{time.Second, time.Minute}, Jitter: pawl.JitterNone}
		at := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		enqueue(reminder{3})
		enqueue(reminder{4}, pawl.Delay(0), pawl.Priority(1), pawl.Header{Key: "type", Value: "overruled"}, pawl.MaxAttempts(5))
		enqueue(charge{1}, pawl.At(at), pawl.ExpireIn(48*time.Hour), pawl.Timeout(pawl.NoTimeout), pawl.MaxCrashes(7), pawl.VisibilityTimeout(time.Minute), backoff)
		enqueue(charge{2}, pawl.Unique{Key: "mine", For: 48 * time.Hour})
		enqueue(pawl.Raw{Name: "bytes"})

		relayed(t, d, o, env)
		require.Len(t, pawltest.Jobs[pawl.Args](env, "q"), 5)
		pawltest.RequireEnqueued(env, "q", reminder{3}, pawl.Priority(3), pawl.Header{Key: "type", Value: "says"})
		pawltest.RequireEnqueued(env, "q", reminder{4}, pawl.Delay(0), pawl.Priority(1), pawl.Header{Key: "type", Value: "overruled"}, pawl.MaxAttempts(5),
			pawl.Header{Key: "from", Value: "caller"}, pawl.Header{Key: "relay", Value: "yes"})
		pawltest.RequireEnqueued(env, "q", charge{1}, pawl.At(at), pawl.Timeout(pawl.NoTimeout), pawl.MaxCrashes(7), pawl.VisibilityTimeout(time.Minute), backoff)
		pawltest.RequireEnqueued(env, "q", charge{2}, pawl.Unique{Key: "mine", For: 48 * time.Hour})
		for _, job := range pawltest.Jobs[reminder](env, "q") {
			if job.Args.Days == 3 {
				require.WithinDuration(t, time.Now().Add(72*time.Hour), job.DueAt, 10*time.Second)
				require.Zero(t, job.MaxAttempts, "a policy of the type is read where the job runs")
			}
		}
	})
}

type tenantKey struct{}

// A job that is to wait an hour waits so from the INSERT on, by the database's clock.
func TestDelayAndExpiryCountFromTheInsert(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		env, o := pawltest.New(t, pawl.Config{}), newOutbox(t, d, pawlsql.OutboxConfig{})
		put(t, d, o, "q", pawl.Item{Args: charge{1}, Options: []pawl.Option{pawl.Delay(time.Hour)}},
			pawl.Item{Args: charge{2}, Options: []pawl.Option{pawl.Delay(time.Minute), pawl.ExpireIn(2 * time.Hour)}})
		d.exec(t, map[pawlsql.Dialect]string{
			pawlsql.Postgres: "UPDATE pawl_outbox SET created_at = created_at - interval '50 minutes'",
			pawlsql.MySQL:    "UPDATE pawl_outbox SET created_at = created_at - INTERVAL 50 MINUTE",
			pawlsql.SQLite:   "UPDATE pawl_outbox SET created_at = created_at - 50 * 60000",
		}[d.Dialect])
		stats, err := newRelay(t, d, o, env.Client, pawlsql.RelayConfig{}).Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, stats.Pending)
		require.InDelta(t, 50*time.Minute, stats.Oldest, float64(10*time.Second))
		relayed(t, d, o, env)
		for _, job := range pawltest.Jobs[charge](env, "q") {
			want := time.Now()
			if job.Args.Order == 1 {
				want = want.Add(10 * time.Minute)
			}
			require.WithinDuration(t, want, job.DueAt, 10*time.Second)
		}
	})
}

func TestManyJobsTakeFewInserts(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		o := newOutbox(t, d, pawlsql.OutboxConfig{})
		inserts := 0
		counting := execFunc(func(ctx context.Context, query string, args ...any) (int64, error) {
			inserts++
			return pawlsql.Std(d.DB).Exec(ctx, query, args...)
		})
		keys, err := o.EnqueueMany(t.Context(), counting, "q", charges(0, 1100))
		require.NoError(t, err)
		require.Equal(t, 3, inserts)
		require.Len(t, keys, 1100)
		for i, key := range []string{keys[0], keys[1099]} {
			require.EqualValues(t, 1, d.count(t, "SELECT count(*) FROM pawl_outbox WHERE job_key = '"+key+"'"), i)
		}
		big := pawl.Item{Args: pawl.Raw{Name: "big", Payload: make([]byte, 200<<10)}}
		inserts = 0
		_, err = o.EnqueueMany(t.Context(), counting, "q", []pawl.Item{big, big, big, big, big, big})
		require.NoError(t, err)
		require.Equal(t, 2, inserts, "of a megabyte at most")
		keys, err = o.EnqueueMany(t.Context(), counting, "q", nil)
		require.NoError(t, err)
		require.Empty(t, keys)
		require.Equal(t, 2, inserts)
	})
}

type execFunc func(ctx context.Context, query string, args ...any) (int64, error)

func (f execFunc) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	return f(ctx, query, args...)
}

// Payloads are bytes, and texts are UTF-8 of any length that pawl allows.
func TestWhatIsStoredComesBackToTheByte(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		env, o := pawltest.New(t, pawl.Config{MaxPayload: 1 << 20}), newOutbox(t, d, pawlsql.OutboxConfig{MaxPayload: 1 << 20})
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		kind, queue := strings.Repeat("é", 127)+"k", strings.Repeat("q", 128)
		want := [][]byte{nil, all, make([]byte, 1<<20)}
		for _, payload := range want {
			put(t, d, o, queue, pawl.Item{Args: pawl.Raw{Name: kind, Payload: payload}, Options: []pawl.Option{pawl.Header{Key: "h", Value: strings.Repeat("é", 2000)}}})
		}
		relayed(t, d, o, env)
		jobs := pawltest.Jobs[pawl.Args](env, queue)
		require.Len(t, jobs, len(want))
		for i, job := range jobs {
			require.Equal(t, kind, job.Kind)
			require.Equal(t, string(want[i]), string(job.Payload))
			require.Equal(t, strings.Repeat("é", 2000), job.Headers["h"])
		}
	})
}

func TestTheOutboxTakesATransactionOfPGX(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pawlsql.Postgres)
	d.exec(t, "CREATE SCHEMA app")
	ctx, env, o := t.Context(), pawltest.New(t, pawl.Config{}), newOutbox(t, d, pawlsql.OutboxConfig{Table: "app.Jobs"})
	for n, mode := range []string{"cache_statement", "simple_protocol", "exec"} {
		pool, err := pgxpool.New(ctx, d.dsn+"&default_query_exec_mode="+mode)
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		for _, commit := range []bool{true, false} {
			tx, err := pool.Begin(ctx)
			require.NoError(t, err)
			_, err = o.EnqueueMany(ctx, pawlsql.PGX(tx), "q", charges(n, 2))
			require.NoError(t, err)
			if commit {
				require.NoError(t, tx.Commit(ctx))
			} else {
				require.NoError(t, tx.Rollback(ctx))
			}
		}
	}
	relayed(t, d, o, env)
	require.Len(t, pawltest.Jobs[charge](env, "q"), 6)
}

// All that is wrong with a job is said before any SQL is run.
func TestBadJobsAreRefusedBeforeAnySQL(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	o, err := pawlsql.NewOutbox(pawlsql.OutboxConfig{Dialect: pawlsql.SQLite, MaxPayload: 100})
	require.NoError(t, err)
	ctx, tx := t.Context(), pawlsql.Execer(&nobody{})
	for name, tc := range map[string]struct {
		queue string
		args  pawl.Args
		opts  []pawl.Option
		is    error
	}{
		"a bad name":                         {"a b", charge{}, nil, pawl.ErrName},
		"no name":                            {"", charge{}, nil, pawl.ErrName},
		"nil arguments":                      {"q", nil, nil, pawl.ErrInvalid},
		"a nil pointer":                      {"q", (*charge)(nil), nil, pawl.ErrInvalid},
		"no kind":                            {"q", pawl.Raw{}, nil, pawl.ErrInvalid},
		"a payload that is too large":        {"q", pawl.Raw{Name: "k", Payload: make([]byte, 101)}, nil, pawl.ErrTooLarge},
		"a bad option":                       {"q", charge{}, []pawl.Option{pawl.Priority(10)}, pawl.ErrInvalid},
		"a nil option":                       {"q", charge{}, []pawl.Option{nil}, pawl.ErrInvalid},
		"an option given twice":              {"q", charge{}, []pawl.Option{pawl.Delay(1), pawl.Delay(2)}, pawl.ErrInvalid},
		"an expiry before the delay":         {"q", charge{}, []pawl.Option{pawl.Delay(2), pawl.ExpireIn(1)}, pawl.ErrInvalid},
		"a bad option of the type":           {"q", reminder{-1}, nil, pawl.ErrInvalid},
		"a unique key until done":            {"q", charge{}, []pawl.Option{pawl.Unique{Key: "k"}}, pawl.ErrInvalid},
		"a unique key for too short":         {"q", charge{}, []pawl.Option{pawl.Unique{Key: "k", For: day - 1}}, pawl.ErrInvalid},
		"a unique key that rejects":          {"q", charge{}, []pawl.Option{pawl.Unique{Key: "k", For: day, OnDuplicate: pawl.RejectDuplicate}}, pawl.ErrInvalid},
		"a unique key that is not UTF-8":     {"q", charge{}, []pawl.Option{pawl.Unique{Key: "\xff", For: day}}, pawl.ErrInvalid},
		"arguments that do not encode":       {"q", unencodable{}, nil, pawl.ErrInvalid},
		"headers that are together too long": {"q", charge{}, []pawl.Option{pawl.Header{Key: "h", Value: strings.Repeat("x", 5000)}}, pawl.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := o.Enqueue(ctx, tx, tc.queue, tc.args, tc.opts...)
			require.ErrorIs(t, err, tc.is)
			require.ErrorIs(t, err, pawl.ErrInvalid)
			require.Empty(t, key)
			good := pawl.Item{Args: charge{}}
			_, err = o.EnqueueMany(ctx, tx, tc.queue, []pawl.Item{good, {Args: tc.args, Options: tc.opts}})
			require.ErrorIs(t, err, tc.is)
		})
	}
	var nobodyNil *nobody
	for _, tx := range []pawlsql.Execer{nil, nobodyNil, pawlsql.Std(nil), pawlsql.PGX((*pgxpool.Pool)(nil))} {
		_, err := o.Enqueue(ctx, tx, "q", charge{})
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
	for _, none := range []*pawlsql.Outbox{nil, {}} {
		_, err := none.Enqueue(ctx, tx, "q", charge{})
		require.ErrorIs(t, err, pawl.ErrInvalid)
		_, err = none.NewRelay(unusable(t), new(pawl.Client), pawlsql.RelayConfig{})
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
	_, err = o.Enqueue(ctx, tx, "q", charge{}, pawl.Unique{Key: "k", For: day})
	require.ErrorIs(t, err, errUnusable)
}

type unencodable struct{ C chan int }

func (unencodable) Kind() string { return "unencodable" }

func TestBadOutboxesAndRelaysAreRefused(t *testing.T) {
	t.Parallel()
	for _, cfg := range []pawlsql.OutboxConfig{{}, {Dialect: 4}, {Dialect: 1, Table: "a b"}, {Dialect: 3, Table: "a.b"}, {Dialect: 1, MaxPayload: -1}, {Dialect: 1, MaxPayload: 1 << 40}} {
		o, err := pawlsql.NewOutbox(cfg)
		require.ErrorIs(t, err, pawl.ErrInvalid, "%+v", cfg)
		require.Nil(t, o)
	}
	o, err := pawlsql.NewOutbox(pawlsql.OutboxConfig{Dialect: pawlsql.SQLite})
	require.NoError(t, err)
	db, c := unusable(t), new(pawl.Client)
	for name, make := range map[string]func() (*pawlsql.Relay, error){
		"no database":     func() (*pawlsql.Relay, error) { return o.NewRelay(nil, c, pawlsql.RelayConfig{}) },
		"no client":       func() (*pawlsql.Relay, error) { return o.NewRelay(db, nil, pawlsql.RelayConfig{}) },
		"a batch below 0": func() (*pawlsql.Relay, error) { return o.NewRelay(db, c, pawlsql.RelayConfig{Batch: -1}) },
		"a large batch":   func() (*pawlsql.Relay, error) { return o.NewRelay(db, c, pawlsql.RelayConfig{Batch: 501}) },
		"a negative idle": func() (*pawlsql.Relay, error) { return o.NewRelay(db, c, pawlsql.RelayConfig{Idle: -1}) },
		"a busy idle":     func() (*pawlsql.Relay, error) { return o.NewRelay(db, c, pawlsql.RelayConfig{Idle: time.Millisecond}) },
	} {
		r, err := make()
		require.ErrorIs(t, err, pawl.ErrInvalid, name)
		require.Nil(t, r)
	}
	for _, r := range []*pawlsql.Relay{nil, {}} {
		require.ErrorIs(t, r.Run(t.Context()), pawl.ErrInvalid)
		_, err := r.Stats(t.Context())
		require.ErrorIs(t, err, pawl.ErrInvalid)
		_, err = r.Retry(t.Context())
		require.ErrorIs(t, err, pawl.ErrInvalid)
	}
}

// An error of the database is told as it is.
func TestADatabaseThatFailsIsTold(t *testing.T) {
	t.Parallel()
	o, err := pawlsql.NewOutbox(pawlsql.OutboxConfig{Dialect: pawlsql.Postgres})
	require.NoError(t, err)
	_, err = o.Enqueue(t.Context(), pawlsql.Std(unusable(t)), "q", charge{})
	require.ErrorIs(t, err, errUnusable)
	require.False(t, errors.Is(err, pawl.ErrInvalid), fmt.Sprint(err))
}
