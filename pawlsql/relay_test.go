package pawlsql_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlsql"
	"github.com/pawlq/pawl/pawltest"
)

// Each row is one job, however many relays there are.
func TestTwoRelaysMoveEachRowOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		c, o := realRedis(t), newOutbox(t, d, pawlsql.OutboxConfig{})
		const n = 1000
		put(t, d, o, "q", charges(0, n/2)...)
		first := newRelay(t, d, o, c, pawlsql.RelayConfig{Batch: 17})
		run(t, first)
		run(t, newRelay(t, d, o, c, pawlsql.RelayConfig{Batch: 50}))
		for i := range 10 {
			put(t, d, o, "q", charges(n/2+i*n/20, n/20)...)
		}
		drained(t, first)
		requireOnce(t, c, "q", n)
		if d.Dialect != pawlsql.SQLite {
			stats, err := c.Queue("q").Stats(t.Context())
			require.NoError(t, err)
			require.Zero(t, stats.Total.Duplicate, "the relays skipped each other's rows")
		}
		require.Zero(t, d.count(t, "SELECT count(*) FROM pawl_outbox"))
	})
}

// Pending is that the row exists: a transaction that began first, has the lower id
// and commits last is not passed over, and holds nobody back meanwhile.
func TestALowerIdThatCommitsLastIsRelayed(t *testing.T) {
	t.Parallel()
	for _, dialect := range []pawlsql.Dialect{pawlsql.Postgres, pawlsql.MySQL} { // SQLite has one writer
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t, dialect)
			ctx, env, o := t.Context(), pawltest.New(t, pawl.Config{}), newOutbox(t, d, pawlsql.OutboxConfig{})
			r := newRelay(t, d, o, env.Client, pawlsql.RelayConfig{})
			run(t, r)
			long := d.begin(t)
			_, err := o.Enqueue(ctx, pawlsql.Std(long), "q", charge{1})
			require.NoError(t, err)
			for i := range 5 {
				put(t, d, o, "q", charges(10+i, 1)...)
				drained(t, r)
			}
			require.Equal(t, []int{10, 11, 12, 13, 14}, orders(t, env.Client, "q"))
			require.NoError(t, long.Commit())
			eventually(t, "the one that committed last is there", func() bool { return slices.Contains(orders(t, env.Client, "q"), 1) })
			require.Len(t, orders(t, env.Client, "q"), 6)
		})
	}
}

// While a relay holds its rows, and waits for Redis, producers go on.
func TestARelayAtWorkDoesNotHoldBackProducers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		env, o := pawltest.New(t, pawl.Config{}), newOutbox(t, d, pawlsql.OutboxConfig{})
		put(t, d, o, "q", charges(0, 5)...)
		r := newRelay(t, d, o, env.Client, pawlsql.RelayConfig{})
		letGo := stopAt(t, r, "taken")
		began := time.Now()
		for i := range 20 {
			put(t, d, o, "q", charges(5+i, 1)...)
		}
		require.Less(t, time.Since(began), 20*time.Second, "they did not wait until the relay gave up, after 30 s")
		letGo()
		drained(t, r)
		require.Len(t, orders(t, env.Client, "q"), 25)
	})
}

// Two relays on SQLite do the same work, and a row that comes meanwhile is not the
// one that they have seen.
func TestARelayOfSQLiteThatComesLateDeletesNoNewerRow(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pawlsql.SQLite)
	env, o := pawltest.New(t, pawl.Config{}), newOutbox(t, d, pawlsql.OutboxConfig{})
	put(t, d, o, "q", charges(1, 1)...)
	late := newRelay(t, d, o, env.Client, pawlsql.RelayConfig{})
	letGo := stopAt(t, late, "taken")
	relayed(t, d, o, env.Client)
	put(t, d, o, "paused", charges(2, 1)...)
	letGo()
	drained(t, late)
	require.Equal(t, []int{1}, orders(t, env.Client, "q"))
	require.Equal(t, []int{2}, orders(t, env.Client, "paused"))
}

// A commit in the same process is relayed at once.
func TestWakeSavesTheWait(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		env, o := pawltest.New(t, pawl.Config{}), newOutbox(t, d, pawlsql.OutboxConfig{})
		r := newRelay(t, d, o, env.Client, pawlsql.RelayConfig{Idle: time.Hour})
		looked := make(chan struct{}, 100)
		r.OnStep(func(name string) {
			if name == "taken" {
				looked <- struct{}{}
			}
		})
		run(t, r)
		await(t, looked) // and then it sleeps, for half an hour at least
		for i := range 3 {
			put(t, d, o, "q", charges(i, 1)...)
			r.Wake()
			await(t, looked)
			eventually(t, "it is relayed", func() bool { return len(orders(t, env.Client, "q")) == i+1 })
		}
		for range 10 {
			r.Wake() // does not block
		}
	})
}

func TestARelayThatIsStoppedFinishesItsBatch(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		env, o := pawltest.New(t, pawl.Config{}), newOutbox(t, d, pawlsql.OutboxConfig{})
		put(t, d, o, "q", charges(0, 25)...)
		r := newRelay(t, d, o, env.Client, pawlsql.RelayConfig{Batch: 10})
		ctx, cancel := context.WithCancel(t.Context())
		r.OnStep(func(name string) {
			if name == "taken" {
				cancel()
			}
		})
		require.NoError(t, r.Run(ctx))
		require.Len(t, orders(t, env.Client, "q"), 10)
		require.EqualValues(t, 15, d.pending(t))
		require.NoError(t, r.Run(ctx), "it has ended already")
		require.EqualValues(t, 15, d.pending(t))
	})
}

func TestARelayRunsOnceAtATime(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pawlsql.SQLite)
	env, o := pawltest.New(t, pawl.Config{}), newOutbox(t, d, pawlsql.OutboxConfig{})
	r := newRelay(t, d, o, env.Client, pawlsql.RelayConfig{})
	var passes counter
	r.OnStep(passes.step)
	stop := run(t, r)
	passes.wait(t, "taken", 1)
	require.ErrorIs(t, r.Run(t.Context()), pawl.ErrState)
	stop()
	run(t, r)()
}

// What a key of its own dedups is not added, as if it had been enqueued directly; and
// rows without one never meet.
func TestUniqueKeysMeetInTheQueue(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		ctx, env, o := t.Context(), pawltest.New(t, pawl.Config{}), newOutbox(t, d, pawlsql.OutboxConfig{})
		mine := pawl.Unique{Key: "mine", For: 48 * time.Hour}
		held, err := env.Client.Queue("q").Enqueue(ctx, charge{0}, mine)
		require.NoError(t, err)
		put(t, d, o, "q", pawl.Item{Args: charge{1}, Options: []pawl.Option{mine}},
			pawl.Item{Args: charge{2}, Options: []pawl.Option{pawl.Unique{For: 24 * time.Hour}}},
			pawl.Item{Args: charge{2}, Options: []pawl.Option{pawl.Unique{For: 24 * time.Hour}}},
			pawl.Item{Args: charge{3}}, pawl.Item{Args: charge{3}})
		relayed(t, d, o, env.Client)
		require.Equal(t, []int{0, 2, 3, 3}, orders(t, env.Client, "q"))
		_, err = env.Client.Queue("q").Get(ctx, held.ID)
		require.NoError(t, err)
		stats, err := env.Client.Queue("q").Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 2, stats.Total.Duplicate)
	})
}

// A row that pawl refuses, or that cannot be read, is kept, marked and told once. The
// others go on, and it too once what was wrong is mended.
func TestAPoisonRowIsKeptAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		ctx, env, o := t.Context(), pawltest.New(t, pawl.Config{MaxPayload: 100}), newOutbox(t, d, pawlsql.OutboxConfig{})
		big := pawl.Item{Args: pawl.Raw{Name: "big", Payload: make([]byte, 200)}} // the relay's client takes less
		items := slices.Concat(charges(0, 3), []pawl.Item{big}, charges(3, 3), charges(100, 1), charges(6, 2), charges(101, 1), charges(8, 1))
		put(t, d, o, "q", items...)
		d.exec(t, `UPDATE pawl_outbox SET options = '{"v":9}' WHERE id = 8`)
		d.exec(t, "UPDATE pawl_outbox SET queue = 'no such name' WHERE id = 11")
		var log journal
		r := newRelay(t, d, o, env.Client, pawlsql.RelayConfig{Batch: 4, Logger: log.logger()})
		run(t, r)
		drained(t, r)
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, orders(t, env.Client, "q"))
		stats, err := r.Stats(ctx)
		require.NoError(t, err)
		require.Equal(t, pawlsql.RelayStats{Failed: 3}, stats)
		for id, why := range map[int]string{4: "too large", 8: "version 9", 11: "queue name"} {
			require.EqualValues(t, 1, d.count(t, fmt.Sprintf("SELECT count(*) FROM pawl_outbox WHERE id = %d AND failed_at IS NOT NULL AND error LIKE '%%%s%%'", id, why)))
			require.Len(t, log.lines(fmt.Sprintf("id=%d ", id)), 1)
		}
		d.exec(t, "UPDATE pawl_outbox SET queue = 'q' WHERE id = 11")
		d.exec(t, "UPDATE pawl_outbox SET failed_at = NULL, error = NULL WHERE id = 11") // as Retry's comment has it
		eventually(t, "the one that was mended is there", func() bool { return slices.Contains(orders(t, env.Client, "q"), 101) })
		d.exec(t, `UPDATE pawl_outbox SET options = '{"v":1}' WHERE id = 8`)
		n, err := r.Retry(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		eventually(t, "so is the other", func() bool { return slices.Contains(orders(t, env.Client, "q"), 100) })
		eventually(t, "and the large one has failed again", func() bool {
			stats, err := r.Stats(ctx)
			return err == nil && stats == pawlsql.RelayStats{Failed: 1}
		})
	})
}

// Many failed rows are retried each once, even if they fail again meanwhile.
func TestRetryTakesEachFailedRowOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		env, o := pawltest.New(t, pawl.Config{}), newOutbox(t, d, pawlsql.OutboxConfig{})
		put(t, d, o, "q", charges(0, 600)...)
		d.exec(t, "UPDATE pawl_outbox SET queue = 'no such name'")
		r := newRelay(t, d, o, env.Client, pawlsql.RelayConfig{Batch: 500})
		run(t, r)
		drained(t, r)
		n, err := r.Retry(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 600, n)
		drained(t, r)
		stats, err := r.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 600, stats.Failed)
	})
}

// The key of a Unique that is of a wrong type is a fault of its row alone.
func TestAForeignKeyInTheWayIsTheRowsOwnFault(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pawlsql.SQLite)
	env, o := pawltest.New(t, pawl.Config{}), newOutbox(t, d, pawlsql.OutboxConfig{})
	foreign := "pawl:{q}:unique:mine"
	require.NoError(t, env.Redis.LPush(t.Context(), foreign, "x").Err())
	items := append(charges(0, 2), pawl.Item{Args: charge{7}, Options: []pawl.Option{pawl.Unique{Key: "mine", For: 24 * time.Hour}}})
	put(t, d, o, "q", append(items, charges(2, 2)...)...)
	r := newRelay(t, d, o, env.Client, pawlsql.RelayConfig{})
	run(t, r)
	drained(t, r)
	require.Equal(t, []int{0, 1, 2, 3}, orders(t, env.Client, "q"))
	require.EqualValues(t, 1, d.count(t, "SELECT count(*) FROM pawl_outbox WHERE id = 3 AND error LIKE '%WRONGTYPE%'"))
	require.NoError(t, env.Redis.Del(t.Context(), foreign).Err())
}

// The key that Enqueue returned is what the handler is given, whoever chose it.
func TestTheKeyThatWasReturnedIsTheJobsIdempotencyKey(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		env, o := pawltest.New(t, pawl.Config{}), newOutbox(t, d, pawlsql.OutboxConfig{})
		mine := pawl.Idempotency{Key: "charge:é 7", Window: time.Hour}
		keys := put(t, d, o, "q", pawl.Item{Args: charge{0}}, pawl.Item{Args: charge{1}, Options: []pawl.Option{mine}},
			pawl.Item{Args: charge{2}, Options: []pawl.Option{pawl.Unique{Key: "u", For: 24 * time.Hour}}},
			pawl.Item{Args: charge{3}, Options: []pawl.Option{mine, pawl.Priority(1)}})
		require.Equal(t, mine.Key, keys[1])
		require.NotEqual(t, keys[0], keys[2])
		relayed(t, d, o, env.Client)
		jobs := pawltest.Jobs[charge](env, "q")
		require.Len(t, jobs, len(keys), "two rows with one idempotency key are two jobs, for the worker to tell")
		for _, job := range jobs {
			require.Equal(t, keys[job.Args.Order], job.IdempotencyKey())
		}
		pawltest.RequireEnqueued(env, "q", charge{1}, mine)
		w, err := pawl.NewWorker(env.Client, pawl.WorkerConfig{Queues: pawl.Queues("q")})
		require.NoError(t, err)
		var mu sync.Mutex // jobs run beside each other
		var ran []int
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[charge]) error {
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, job.Args.Order)
			return nil
		}, pawl.MaxAttempts(1))
		env.Drain(w)
		slices.Sort(ran)
		require.Len(t, ran, 3, "%v", ran)
	})
}
