package pawl_test

import (
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/minidial"
	"github.com/pawlq/pawl/internal/redistest"
)

func TestMain(m *testing.M) {
	if words := os.Getenv(childEnv); words != "" {
		child(words)
		return
	}
	redis.SetLogger(quiet{}) // the outages that tests make are no news
	manyAtOnce()
	goleak.VerifyTestMain(m)
}

// manyAtOnce has more tests run at once than there are CPUs, unless it was said how
// many: most wait for real servers and real time.
func manyAtOnce() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	}
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// env is a Redis of its own and a client of it. Whatever a test does, Check
// finds nothing afterwards in the queues it used.
type env struct {
	t      *testing.T
	Mini   *miniredis.Miniredis // nil on a real server
	Redis  *redis.Client        // may do everything, to plant and to look
	App    *redis.Client        // what pawl is given: on a real server the user of docs/security.md
	Client *pawl.Client
	Log    *recorder

	mu     sync.Mutex
	queues map[string]bool
}

// bubble runs fn with a miniredis in a synctest bubble: time stands still until
// everything waits.
func bubble(t *testing.T, fn func(t *testing.T, e *env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		rdb := redis.NewClient(&redis.Options{
			// An IP, since a name would start a lookup; a large pool, since one
			// that ran dry would wait on a timer of another bubble.
			Addr: "127.0.0.1:6379", PoolSize: 1000,
			Dialer: func(context.Context, string, string) (net.Conn, error) { return minidial.Dial(m) },
		})
		// A call whose context ended may have left a read behind that waits to be
		// sent again; a bubble must not end before it.
		t.Cleanup(func() { <-time.After(10 * time.Second) })
		t.Cleanup(m.Close)
		t.Cleanup(func() { _ = rdb.Close() })
		fn(t, newEnv(t, rdb, m))
	})
}

// onRedis runs fn with a redis-server of its own, where pawl has no more rights
// than docs/security.md gives it.
func onRedis(t *testing.T, fn func(t *testing.T, e *env)) {
	t.Helper()
	s := redistest.Start(t)
	admin := s.Client(t)
	refusedNothing(t, admin)
	fn(t, newEnvAs(t, admin, logIn(t, s, s.Addr(), 0), nil))
}

// contract runs fn on miniredis in a bubble and on a real server. It must not
// depend on how long anything takes.
func contract(t *testing.T, fn func(t *testing.T, e *env)) {
	t.Helper()
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		bubble(t, fn)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		onRedis(t, fn)
	})
}

func newEnv(t *testing.T, rdb *redis.Client, m *miniredis.Miniredis) *env {
	t.Helper()
	return newEnvAs(t, rdb, rdb, m)
}

func newEnvAs(t *testing.T, admin, app *redis.Client, m *miniredis.Miniredis) *env {
	t.Helper()
	e := &env{t: t, Mini: m, Redis: admin, App: app, Log: newRecorder(m != nil), queues: map[string]bool{}}
	e.Client = e.NewClient(pawl.Config{})
	t.Cleanup(e.Check)
	return e
}

// NewClient is another client of the same Redis, with the recorder as a hook.
func (e *env) NewClient(cfg pawl.Config) *pawl.Client {
	e.t.Helper()
	cfg.Hooks = append(cfg.Hooks, e.Log)
	c, err := pawl.New(e.App, cfg)
	require.NoError(e.t, err)
	return c
}

// Queue is a queue that is checked at the end.
func (e *env) Queue(name string) *pawl.Queue {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queues[name] = true
	return e.Client.Queue(name)
}

// Check fails the test if a queue is inconsistent.
func (e *env) Check() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name := range e.queues {
		found, err := e.Client.Queue(name).Check(context.Background())
		if errors.Is(err, pawl.ErrNotFound) {
			continue // it was not used after all, or was destroyed
		}
		require.NoError(e.t, err)
		require.Empty(e.t, found, "Check of queue %q", name)
	}
}

// Worker makes a worker of the named queue; cfg.Queues wins if it is set.
func (e *env) Worker(queue string, cfg pawl.WorkerConfig) *pawl.Worker {
	e.t.Helper()
	if cfg.Queues == nil {
		cfg.Queues = pawl.Queues(queue)
	}
	for _, q := range cfg.Queues {
		e.Queue(q.Name)
	}
	w, err := pawl.NewWorker(e.Client, cfg)
	require.NoError(e.t, err)
	return w
}

// Start runs w; the returned function stops it and returns Run's error. It is
// stopped at the end of the test in any case.
func (e *env) Start(w *pawl.Worker) (stop func() error) {
	e.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	e.t.Cleanup(func() { _ = stop() })
	return stop
}

// Pass lets virtual time go by.
func (e *env) Pass(d time.Duration) {
	e.t.Helper()
	require.NotNil(e.t, e.Mini, "time is virtual only in a bubble")
	<-time.After(d)
	synctest.Wait()
}

// Run runs w until n events of a name have happened, and stops it.
func (e *env) Run(w *pawl.Worker, event string, n int) []pawl.Event {
	e.t.Helper()
	stop := e.Start(w)
	events := e.Log.Wait(e.t, event, n)
	require.NoError(e.t, stop())
	return events
}

// recorder is a hook that keeps every event by name, and lets a test wait for
// them without sleeping.
type recorder struct {
	patience time.Duration
	mu       sync.Mutex
	changed  chan struct{}
	events   map[string][]pawl.Event
	retries  []pawl.RetryEvent
	dead     []pawl.DeadEvent
}

func newRecorder(virtual bool) *recorder {
	patience := time.Minute
	if virtual {
		patience = 24 * time.Hour
	}
	return &recorder{patience: patience, changed: make(chan struct{}), events: map[string][]pawl.Event{}}
}

func (r *recorder) add(name string, e pawl.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[name] = append(r.events[name], e)
	close(r.changed)
	r.changed = make(chan struct{})
}

// Of is the events of a name so far.
func (r *recorder) Of(name string) []pawl.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]pawl.Event(nil), r.events[name]...)
}

// Wait returns when at least n events of the name have happened, and fails the
// test after a minute (of virtual time: 24 hours).
func (r *recorder) Wait(t *testing.T, name string, n int) []pawl.Event {
	t.Helper()
	limit := time.NewTimer(r.patience)
	defer limit.Stop()
	for {
		r.mu.Lock()
		got, changed := r.events[name], r.changed
		r.mu.Unlock()
		if len(got) >= n {
			return got[:len(got):len(got)]
		}
		select {
		case <-changed:
		case <-limit.C:
			require.FailNow(t, "event did not come", "%s: %d of %d", name, len(got), n)
		}
	}
}

func (r *recorder) Started(_ context.Context, e pawl.Event)   { r.add("started", e) }
func (r *recorder) Done(_ context.Context, e pawl.Event)      { r.add("done", e) }
func (r *recorder) Skipped(_ context.Context, e pawl.Event)   { r.add("skipped", e) }
func (r *recorder) Discarded(_ context.Context, e pawl.Event) { r.add("discarded", e) }
func (r *recorder) Crashed(_ context.Context, e pawl.Event)   { r.add("crashed", e) }
func (r *recorder) LeaseLost(_ context.Context, e pawl.Event) { r.add("lost", e) }
func (r *recorder) Released(_ context.Context, e pawl.Event)  { r.add("released", e) }
func (r *recorder) Stuck(_ context.Context, e pawl.Event)     { r.add("stuck", e) }
func (r *recorder) Retry(_ context.Context, e pawl.RetryEvent) {
	r.mu.Lock()
	r.retries = append(r.retries, e)
	r.mu.Unlock()
	r.add("retry", e.Event)
}
func (r *recorder) Snoozed(_ context.Context, e pawl.RetryEvent) { r.add("snoozed", e.Event) }
func (r *recorder) Dead(_ context.Context, e pawl.DeadEvent) {
	r.mu.Lock()
	r.dead = append(r.dead, e)
	r.mu.Unlock()
	r.add("dead", e.Event)
}
func (r *recorder) Outage(_ context.Context, err error) {
	if err != nil {
		r.add("outage", pawl.Event{Err: err})
	} else {
		r.add("back", pawl.Event{})
	}
}
