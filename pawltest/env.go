package pawltest

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/minidial"
)

// Env is a queue system of its own: parallel tests do not meet. When its test
// ends, the workers that were started are stopped, and every queue that was used
// is checked (pawl.Queue.Check); a violation fails the test.
type Env struct {
	// Client has a hook of pawltest beside those of its configuration.
	Client *pawl.Client
	// Redis is the server in memory, empty at first. It may be given hooks of
	// go-redis, to make calls fail; let them pass again before the test ends.
	Redis redis.UniversalClient

	t         testing.TB
	bubble    bool
	namespace string
	limit     int // of the runs of a job in a drain

	mu      sync.Mutex
	runners map[*pawl.Worker]*runner // by the worker that the test knows
	changed chan struct{}            // closed when a hook is called
}

// Run runs fn in a synctest bubble: time stands still until everything waits,
// then jumps. The clock of the server goes with it. What goes for bubbles goes
// for fn: no T.Run, T.Parallel or T.Deadline in it, and no network.
func Run(t *testing.T, fn func(t *testing.T, env *Env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { fn(t, New(t, pawl.Config{})) })
}

// New is Run without the bubble, for benchmarks and for tests that bring their
// own clock or configuration. The clock is the real one, so Drain waits for what
// is delayed and Advance fails. Inside a bubble of your own it is as in Run:
//
//	synctest.Test(t, func(t *testing.T) { env := pawltest.New(t, cfg) … })
func New(t testing.TB, cfg pawl.Config) *Env {
	t.Helper()
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // keys expire by the clock
	rdb := redis.NewClient(&redis.Options{
		// An IP, since a name would start a lookup; a large pool, since one that
		// ran dry would wait on a timer of another bubble.
		Addr: "127.0.0.1:6379", PoolSize: 1000,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return minidial.Dial(server) },
	})
	e := &Env{Redis: rdb, t: t, bubble: inBubble(), namespace: cfg.Namespace, limit: maxRunsOfAJob,
		runners: map[*pawl.Worker]*runner{}, changed: make(chan struct{})}
	if e.namespace == "" {
		e.namespace = "pawl"
	}
	t.Cleanup(func() {
		_ = rdb.Close()
		server.Close()
		if e.bubble {
			// A call whose context ended may have left a read behind that waits to
			// be sent again; a bubble must not end before it.
			time.Sleep(10 * time.Second)
		}
	})
	// The last of the hooks: what it tells of, the others know.
	cfg.Hooks = append(cfg.Hooks[:len(cfg.Hooks):len(cfg.Hooks)], &hook{e})
	client, err := pawl.New(rdb, cfg)
	if err != nil {
		t.Fatalf("pawltest: New: %v", err)
	}
	e.Client = client
	t.Cleanup(e.check)
	return e
}

// inBubble reports whether the caller is in a bubble of testing/synctest, for
// which that package has no question of its own.
func inBubble() (yes bool) {
	defer func() { yes = recover() == nil }()
	synctest.Wait()
	return true
}

// Advance lets time pass, and what is then due begin: it returns when all that
// goes on waits for a later moment. It fails outside a bubble, whose clock
// nobody can move.
func (e *Env) Advance(d time.Duration) {
	e.t.Helper()
	if !e.bubble {
		e.t.Fatalf("pawltest: Advance(%v): the clock is the real one; use pawltest.Run, or New inside synctest.Test", d)
	}
	if d < 0 {
		e.t.Fatalf("pawltest: Advance(%v): time does not go back", d)
	}
	e.change() // what the test has done is before what handlers do from here on, to the race detector too
	time.Sleep(d)
	synctest.Wait()
}

// changes is closed when the next hook is called.
func (e *Env) changes() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.changed
}

func (e *Env) change() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.changed)
	e.changed = make(chan struct{})
}
