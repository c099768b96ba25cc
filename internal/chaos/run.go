package chaos

import (
	"context"
	"crypto/sha1" //nolint:gosec // EVALSHA names a script by its SHA-1; nothing is secured by it.
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
	"github.com/pawlq/pawl/internal/testhook"
)

// Options say how a run goes. Only Seed, Jobs and Window must be set.
type Options struct {
	Seed       uint64
	Jobs       int           // so many are tried to enqueue; if Wide, so many are enqueued
	Window     time.Duration // of the enqueues and of the faults
	Workers    int           // default 3
	Visibility time.Duration // default 1 s
	Patience   time.Duration // for the queues to drain once all is healed; default 30 s and 10 ms a job
	Plan       []Step        // default: that of the seed
	Only       string        // the shapes of jobs, a word each, if not all
	Keyed      bool          // each job has a unique key
	Idem       bool          // most jobs have an idempotency key
	Wide       bool          // several queues, enqueues of many, pauses, redrives of all
	Sample     time.Duration // between two samples of a soak; see veteran
	Bugs       []Bug         // to plant in the scripts of all children
	Binary     string        // of the children; default: this one
	Dir        string        // for the histories; default: one that ends with the test
}

// Result is what came of a run.
type Result struct {
	History    []Event
	State      State
	Violations []Violation
	Noise      []string // panics and races of children
	Errors     []string // of the runner itself
	Counts     map[string]int
	Trends     []Trend // of a soak
	Took       time.Duration
}

type runner struct {
	opts     Options
	out      *Writer
	server   *redistest.Server
	proxy    *redistest.Proxy
	direct   *redis.Client // past the proxy
	queues   []*pawl.Queue // past the proxy, with scripts that are as they should be
	workers  []*slot
	producer *slot

	keeping, lastings sync.WaitGroup
	over              chan struct{} // closed when faults are over

	mu     sync.Mutex
	counts map[string]int
	errs   []string
}

// Run is one run, from an empty Redis to the verdict of Check.
func Run(t testing.TB, opts Options) Result {
	t.Helper()
	began := time.Now()
	r := newRunner(t, opts)
	defer func() { _ = r.out.Close() }()
	watching, stopWatching := context.WithCancel(t.Context())
	defer stopWatching()
	r.keeping.Go(func() { // an outage is as bad
		watch(watching, r.out, r.opts.Visibility, func(ctx context.Context) { _ = r.direct.Ping(ctx).Err() })
	})
	if r.opts.Sample > 0 {
		r.keeping.Go(func() { r.sampleRedis(watching) })
	}
	r.play(t.Context())
	r.drain(t.Context())
	stopWatching()
	var stopping sync.WaitGroup
	for _, s := range append(r.workers, r.producer) {
		stopping.Go(func() { s.stop(8 * time.Second) })
	}
	stopping.Wait()
	r.keeping.Wait()
	result := Result{Counts: r.counts, Errors: r.errs, Noise: noise(r.opts.Dir)}
	var err error
	if result.State, err = finalState(t.Context(), r.queues, r.direct); err != nil {
		result.Errors = append(result.Errors, "final state: "+err.Error())
	}
	if result.History, err = Read(r.opts.Dir); err != nil {
		result.Errors = append(result.Errors, "history: "+err.Error())
	}
	if text, err := json.Marshal(result.State); err == nil { // for those who judge it again
		_ = os.WriteFile(filepath.Join(r.opts.Dir, "state.json"), text, 0o600)
	}
	if r.opts.Sample > 0 {
		result.Trends = r.trends()
	}
	result.Violations = Check(result.History, result.State)
	result.Took = time.Since(began)
	return result
}

func newRunner(t testing.TB, opts Options) *runner {
	t.Helper()
	opts.defaults(t)
	r := &runner{opts: opts, counts: map[string]int{}, over: make(chan struct{})}
	// The kernel keeps what was written before a kill, synced or not.
	fsync := []string{"no", "always"}[opts.Seed%2]
	r.server = redistest.Start(t, "--appendonly", "yes", "--appendfsync", fsync)
	r.proxy = redistest.NewProxy(t, r.server.Addr())
	r.direct = r.server.Client(t)
	r.name(t)
	child := childConfig{Role: "worker", Dir: opts.Dir, Addr: r.proxy.Addr(), Queues: []string{"chaos"},
		Visibility: opts.Visibility, Bugs: opts.Bugs, Concurrency: max(6, opts.Jobs/600)}
	if opts.Wide {
		child.Queues = append(child.Queues, "chaos:mail")
	}
	if opts.Sample > 0 {
		child.Queues, child.Risky, child.Sample = append(child.Queues, risky), risky, opts.Sample
		child.Concurrency = 10
	}
	client, err := pawl.New(r.direct, pawl.Config{})
	if err == nil {
		for _, name := range child.Queues {
			r.queues = append(r.queues, client.Queue(name))
		}
		r.out, err = NewWriter(opts.Dir, "runner")
	}
	if err != nil {
		t.Fatalf("chaos: %v", err)
	}
	for i := range opts.Workers {
		cfg := child
		if opts.Sample > 0 && i == opts.Workers-1 { // the veteran
			cfg.Queues = slices.DeleteFunc(slices.Clone(cfg.Queues), func(name string) bool { return name == risky })
		}
		r.workers = append(r.workers, r.newSlot(fmt.Sprintf("worker%d", i), cfg))
	}
	child.Role, child.Seed, child.Jobs, child.Only = "producer", opts.Seed, opts.Jobs, opts.Only
	child.Idem = opts.Idem
	child.Keyed, child.Total, child.Callers = opts.Keyed, opts.Jobs, max(4, opts.Jobs/1000)
	if opts.Sample > 0 {
		child.Total, child.Callers = min(opts.Jobs, 2000), 4 // the share of rare shapes, whatever the time
	}
	child.Pace = opts.Window * 8 / 10 / time.Duration(opts.Jobs)
	r.producer = r.newSlot("producer", child)
	return r
}

func (o *Options) defaults(t testing.TB) {
	if o.Workers == 0 {
		o.Workers = 3
	}
	if o.Visibility == 0 {
		o.Visibility = time.Second
	}
	if o.Patience == 0 {
		o.Patience = 30*time.Second + time.Duration(o.Jobs)*10*time.Millisecond
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Binary == "" {
		o.Binary = os.Args[0]
	}
	if o.Plan == nil {
		o.Plan = NewPlan(o.Seed, o.Workers, o.Visibility, o.Window)
	}
}

// name tells the proxy how the children's scripts are called, bugs and all.
func (r *runner) name(t testing.TB) {
	times := map[Bug]int{}
	testhook.Scripts(func(name, body string) string {
		sum := sha1.Sum([]byte(plant(r.opts.Bugs, name, body, times))) //nolint:gosec // see the import
		r.proxy.Script(name, hex.EncodeToString(sum[:]))
		return body
	})
	for _, b := range r.opts.Bugs {
		if times[b] == 0 {
			t.Fatalf("chaos: no script has the text that is to be replaced: %+v", b)
		}
	}
}

// play carries out the schedule, from the first sign of life of a worker on, and
// heals everything.
func (r *runner) play(ctx context.Context) {
	_ = r.until(ctx, 10*time.Second, func(s pawl.Stats) bool { return s.Total.Started > 0 })
	faults, stop := context.WithTimeout(ctx, r.opts.Window)
	defer stop()
	for _, s := range r.opts.Plan {
		if wait(faults, s.After) != nil {
			break // a server that was slow to restart took the time of the rest
		}
		r.inject(ctx, s)
	}
	close(r.over)
	r.lastings.Wait()
	r.proxy.Clear()
	r.proxy.Release()
	r.proxy.Blackhole(false)
	_ = r.direct.Do(ctx, "CLIENT", "UNPAUSE").Err() // if it fails, the drain will show it
	r.fault(Healed, "", time.Now())
}

// drain waits until all jobs are enqueued and none is left to run.
func (r *runner) drain(ctx context.Context) {
	timer := time.NewTimer(max(30*time.Second, r.opts.Patience)) // a busy machine is not the queue's fault
	defer timer.Stop()
	select {
	case <-r.producer.done:
	case <-timer.C:
		r.fail("the producer did not come to an end")
		return
	}
	// If it is not drained in time, the final state says so.
	_ = r.until(ctx, r.opts.Patience, func(s pawl.Stats) bool { return s.Depth()+s.Running == 0 })
}

// until looks at the queues until a condition holds for what is in all of them.
func (r *runner) until(ctx context.Context, limit time.Duration, ok func(pawl.Stats) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		if s, err := allStats(ctx, r.queues); err == nil && ok(s) {
			return nil
		}
		if err := wait(ctx, 30*time.Millisecond); err != nil {
			return err
		}
	}
}

// enqueued is how many jobs the producers have made, as far as they know.
func (r *runner) enqueued() (n int) {
	history, err := read(r.opts.Dir, "producer*")
	if err != nil {
		r.fail("history: %v", err)
	}
	for _, e := range history {
		if e.makes(!r.opts.Wide) {
			n++
		}
	}
	return n
}

func (r *runner) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what]++
}

func (r *runner) fail(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, fmt.Sprintf(format, args...))
}
