package pawlsql_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
	"github.com/pawlq/pawl/pawlsql"
)

// While Redis is away the rows stay, unmarked, with one line in the log; and one
// more when it is back.
func TestRedisGoesAndComesBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
		c, o := clientOf(t, server.Client(t)), newOutbox(t, d, pawlsql.OutboxConfig{})
		put(t, d, o, "q", charges(0, 5)...)
		relayed(t, d, o, c)

		server.Kill()
		var log journal
		r := newRelay(t, d, o, c, pawlsql.RelayConfig{Logger: log.logger()})
		// On a busy machine a call to a Redis that is well may take longer: a relay that
		// ran before the end would tell of that too.
		r.SetPatience(100 * time.Millisecond)
		var passes counter
		r.OnStep(passes.step)
		run(t, r)
		put(t, d, o, "q", charges(5, 50)...)
		put(t, d, o, "other", charges(0, 5)...)
		passes.wait(t, "enqueued", 6)
		require.EqualValues(t, 55, d.pending(t))
		require.Len(t, log.lines("cannot be enqueued"), 1)
		server.Restart()
		drained(t, r)
		requireOnce(t, c, "q", 55)
		requireOnce(t, c, "other", 5)
		eventually(t, "it is told", func() bool { return len(log.lines("enqueued again")) == 1 })
		require.Len(t, log.lines("level="), 2, "%s", log.lines(""))
	})
}

// A full Redis refuses at once, and is no reason to burn rows.
func TestRedisIsFullAndHasRoomAgain(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pawlsql.SQLite)
	rdb := redistest.Start(t).Client(t)
	c, o := clientOf(t, rdb), newOutbox(t, d, pawlsql.OutboxConfig{})
	var log journal
	r := newRelay(t, d, o, c, pawlsql.RelayConfig{Logger: log.logger()})
	var passes counter
	r.OnStep(passes.step)
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	put(t, d, o, "q", charges(0, 250)...)
	run(t, r)
	passes.wait(t, "enqueued", 4)
	stats, err := r.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 250, stats.Pending)
	require.Zero(t, stats.Failed)
	require.Len(t, log.lines("level="), 1)
	require.NoError(t, rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
	drained(t, r)
	requireOnce(t, c, "q", 250)
	eventually(t, "it is told", func() bool { return len(log.lines("enqueued again")) == 1 })
}

// A queue that cannot be enqueued to does not hold back the rows of others, however
// many of its own come first.
func TestAQueueThatIsDownDoesNotHoldBackOthers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		rdb := redistest.Start(t).Client(t)
		c, o := clientOf(t, rdb), newOutbox(t, d, pawlsql.OutboxConfig{})
		require.NoError(t, rdb.Set(t.Context(), "pawl:{bad}:jobs", "not a stream", 0).Err())
		put(t, d, o, "bad", charges(0, 35)...)
		put(t, d, o, "good", charges(0, 35)...)
		var log journal
		r := newRelay(t, d, o, c, pawlsql.RelayConfig{Batch: 10, Logger: log.logger()})
		run(t, r)
		eventually(t, "the good ones are there, and the others stay as they are", func() bool {
			return len(orders(t, c, "good")) == 35 && d.pending(t) == 35
		})
		require.NoError(t, rdb.Del(t.Context(), "pawl:{bad}:jobs").Err())
		drained(t, r)
		requireOnce(t, c, "bad", 35)
		require.Len(t, log.lines("level=WARN"), 1)
		require.Empty(t, log.lines("level=ERROR"))
	})
}

// The answer to an enqueue is lost, so that nobody knows whether it was done.
func TestAnEnqueueThatIsNotConfirmedIsMadeOnce(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pawlsql.SQLite)
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	c, o := clientOf(t, proxy.Client(t)), newOutbox(t, d, pawlsql.OutboxConfig{})
	r := newRelay(t, d, o, c, pawlsql.RelayConfig{})
	r.SetPatience(200 * time.Millisecond)
	var passes counter
	r.OnStep(passes.step)
	put(t, d, o, "q", charges(0, 3)...)
	lost := proxy.On("evalsha", 0, redistest.RunDropReply)
	run(t, r)
	<-lost
	passes.wait(t, "enqueued", 2)
	require.EqualValues(t, 3, d.pending(t))
	proxy.Clear()
	drained(t, r)
	requireOnce(t, clientOf(t, server.Client(t)), "q", 3)
}

// The database is killed and comes back, and the relay goes on by itself.
func TestTheDatabaseIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	for _, dialect := range []pawlsql.Dialect{pawlsql.Postgres, pawlsql.MySQL} {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			s := ownServer(t, dialect)
			d := databaseOn(t, s)
			c, o := realRedis(t), newOutbox(t, d, pawlsql.OutboxConfig{})
			put(t, d, o, "q", charges(0, 30)...)
			var log journal
			r := newRelay(t, d, o, c, pawlsql.RelayConfig{Batch: 10, Logger: log.logger()})
			var once sync.Once
			r.OnStep(func(name string) {
				if name == "enqueued" { // with the jobs in Redis and the rows in a transaction
					once.Do(s.kill)
				}
			})
			run(t, r)
			eventually(t, "it is told", func() bool { return len(log.lines("cannot use the database")) == 1 })
			require.NoError(t, s.start())
			drained(t, r)
			requireOnce(t, c, "q", 30)
			require.Len(t, log.lines("level="), 2, "%s", log.lines(""))
			put(t, d, o, "q", charges(30, 1)...)
			drained(t, r)
			requireOnce(t, c, "q", 31)
		})
	}
}

// Where the table is not there yet, the relay waits for the migration.
func TestTheTableComesLater(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		c := realRedis(t)
		o, err := pawlsql.NewOutbox(pawlsql.OutboxConfig{Dialect: d.Dialect})
		require.NoError(t, err)
		var log journal
		r := newRelay(t, d, o, c, pawlsql.RelayConfig{Logger: log.logger()})
		run(t, r)
		eventually(t, "it is told", func() bool { return len(log.lines("cannot use the database")) == 1 })
		d.exec(t, o.Schema())
		put(t, d, o, "q", charges(0, 1)...)
		drained(t, r)
		requireOnce(t, c, "q", 1)
	})
}

// A relay that is frozen in the middle of a pass keeps its rows for a while, and on
// PostgreSQL not for longer.
func TestTheRowsOfAFrozenRelayGoToAnother(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pawlsql.Postgres)
	c, o := realRedis(t), newOutbox(t, d, pawlsql.OutboxConfig{})
	put(t, d, o, "q", charges(0, 10)...)
	frozen := newRelay(t, d, o, c, pawlsql.RelayConfig{})
	frozen.SetFrozen(300 * time.Millisecond)
	thaw := stopAt(t, frozen, "taken")
	relayed(t, d, o, c)
	requireOnce(t, c, "q", 10)
	thaw() // it enqueues what it has, which are duplicates, and cannot commit
	put(t, d, o, "q", charges(10, 1)...)
	drained(t, frozen)
	requireOnce(t, c, "q", 11)
}

// rowsEnv is how many rows TestTwoRelaysMoveManyRows moves.
const rowsEnv = "PAWLSQL_ROWS"

func TestTwoRelaysMoveManyRows(t *testing.T) {
	t.Parallel()
	n := 5000
	if text := os.Getenv(rowsEnv); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	onEach(t, func(t *testing.T, d *database) {
		c, o := realRedis(t), newOutbox(t, d, pawlsql.OutboxConfig{})
		began := time.Now()
		for at := 0; at < n; at += 1000 {
			put(t, d, o, "q", charges(at, min(1000, n-at))...)
		}
		wrote := time.Since(began)
		began = time.Now()
		relays := []*pawlsql.Relay{newRelay(t, d, o, c, pawlsql.RelayConfig{}), newRelay(t, d, o, c, pawlsql.RelayConfig{})}
		if d.Dialect == pawlsql.SQLite {
			relays = relays[:1]
		}
		for _, r := range relays {
			run(t, r)
		}
		deadline := time.Now().Add(5 * time.Minute)
		for d.pending(t) > 0 {
			require.Less(t, time.Now(), deadline)
			<-time.After(20 * time.Millisecond)
		}
		t.Logf("%d rows written in %v, relayed by %d in %v", n, wrote.Round(time.Millisecond), len(relays), time.Since(began).Round(time.Millisecond))
		requireOnce(t, c, "q", n)
	})
}

// counter counts the steps of a relay.
type counter struct {
	mu    sync.Mutex
	steps map[string]int
}

func (c *counter) step(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.steps == nil {
		c.steps = map[string]int{}
	}
	c.steps[name]++
}

// wait waits until a step has been reached n times more.
func (c *counter) wait(t testing.TB, name string, n int) {
	t.Helper()
	at := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.steps[name]
	}
	until := at() + n
	eventually(t, fmt.Sprintf("%s %d times", name, n), func() bool { return at() >= until })
}
