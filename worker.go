package pawl

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// WorkerConfig is a worker. Only Queues must be set.
//
// A worker needs at least 3 connections of the client's pool: for its round
// trips, to renew leases, and to block on; 2 if Blocking is set. NewWorker
// refuses a smaller pool of a redis.Client. The default of go-redis, 10 per
// CPU, is plenty.
type WorkerConfig struct {
	// Queues to serve; see Queues and Weights.
	Queues []WorkerQueue
	// Strict serves queues in their order: a later one only when all before
	// it are empty. Otherwise each gets a share by weight.
	Strict bool
	// Concurrency is how many jobs run at once, over all queues. Default 10,
	// at most 10,000.
	Concurrency int
	// VisibilityTimeout is how long a silent worker keeps a job. Leases are
	// renewed every third of it, so it bounds crash detection, not job
	// length. Default 30 s.
	VisibilityTimeout time.Duration
	// Timeout bounds a run. Default 30 min. NoTimeout: no bound.
	Timeout time.Duration
	// MaxAttempts, Backoff and MaxCrashes are the policy of jobs that have
	// none of their own. Defaults 8, DefaultBackoff, 3.
	MaxAttempts int
	Backoff     Backoff
	MaxCrashes  int
	// DrainTimeout is how long running jobs may finish once Run's context is
	// cancelled. Default 25 s, to fit the usual grace of 30.
	DrainTimeout time.Duration
	// UnknownKindGrace is how long a job waits for a worker that knows its
	// kind. Default 1 h.
	UnknownKindGrace time.Duration
	// StuckAfter is how long a handler may ignore its ended context before it
	// is reported. Default 30 s.
	StuckAfter time.Duration
	// Middleware wraps every handler; the first one is the outermost.
	Middleware []Middleware
	// Name is shown to operators. Default host:pid.
	Name string
	// Blocking, if set, is used for blocking reads: one connection a worker, but one
	// a queue if it is no redis.Client. Otherwise they take it from the client's pool.
	Blocking redis.UniversalClient
}

// WorkerQueue is a queue a worker serves.
type WorkerQueue struct {
	Name    string
	Weight  int // share of the slots beside busy queues; default 1
	Max     int // most slots it may hold; default all
	Reserve int // slots no other queue may take; default none
}

// Queues serves queues with equal shares, or in this order if Strict.
func Queues(names ...string) []WorkerQueue {
	queues := make([]WorkerQueue, len(names))
	for i, name := range names {
		queues[i].Name = name
	}
	return queues
}

// Weights serves queues in proportion. A weight below 1 is NewWorker's error.
func Weights(m map[string]int) []WorkerQueue {
	var queues []WorkerQueue
	for name, weight := range m {
		if weight == 0 {
			weight = -1 // zero would be read as "not set"
		}
		queues = append(queues, WorkerQueue{Name: name, Weight: weight})
	}
	return queues
}

// drainGrace is how long Run waits for handlers whose contexts it has ended,
// and again for the last outcomes to be stored.
const drainGrace = 3 * time.Second

// Worker leases, runs and settles jobs. Its methods are safe for concurrent
// use, but handlers are registered before Run, by one goroutine.
type Worker struct {
	client   *Client
	cfg      WorkerConfig
	handlers map[string]*handler
	errs     []error // of the registrations

	tag     string // names it in tokens and in the lists of workers
	started atomic.Bool
	ended   atomic.Bool
	slots   slots
	feeds   []*feed
	wakers  []*waker // by feed; several feeds may share one
	outages outages
	teller  teller
	base    context.Context // of the handlers
	runners *runners[*run]
	flights *runners[*track]
	// draining is closed when it leases no more.
	draining chan struct{}
	// suspect is held by the feed that has leased, or may be about to lease, a
	// job whose next crash would be its last: no two run in one worker.
	suspect sync.Mutex
	unknown sync.Map // kinds that were warned about
	// alive ends, by kill, when a test has the worker crash.
	alive context.Context
	kill  context.CancelFunc
	// timeless: it fires no schedules, as a drain of pawltest does.
	timeless bool
	// leastCrashes is the least MaxCrashes that may apply to a job here.
	leastCrashes int
}

// NewWorker validates cfg. All that is wrong with it is in one error, which
// wraps ErrInvalid. It does not talk to Redis.
func NewWorker(c *Client, cfg WorkerConfig) (*Worker, error) {
	if c == nil {
		return nil, invalidf("NewWorker: the client is nil; make one with New")
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, invalidf("WorkerConfig."+format, args...)) }
	positive := func(name string, d *time.Duration, standard time.Duration) {
		if *d == 0 {
			*d = standard
		}
		if *d < 0 {
			bad("%s is %v: give a positive duration, or 0 for %v", name, *d, standard)
		}
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 10
	}
	if cfg.Concurrency < 0 || cfg.Concurrency > 10_000 {
		bad("Concurrency is %d: give 1 to 10000", cfg.Concurrency)
	}
	positive("VisibilityTimeout", &cfg.VisibilityTimeout, 30*time.Second)
	positive("DrainTimeout", &cfg.DrainTimeout, 25*time.Second)
	positive("UnknownKindGrace", &cfg.UnknownKindGrace, time.Hour)
	positive("StuckAfter", &cfg.StuckAfter, 30*time.Second)
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Minute
	}
	if cfg.MaxAttempts == 0 {
		cfg.MaxAttempts = 8
	}
	if cfg.MaxCrashes == 0 {
		cfg.MaxCrashes = 3
	}
	if cfg.Name == "" {
		host, _ := os.Hostname()
		cfg.Name = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	for _, opt := range []Policy{MaxAttempts(cfg.MaxAttempts), MaxCrashes(cfg.MaxCrashes), Timeout(cfg.Timeout),
		VisibilityTimeout(cfg.VisibilityTimeout), cfg.Backoff} {
		if err := opt.applyHandle(&policy{}); err != nil {
			errs = append(errs, fmt.Errorf("WorkerConfig: %w", err))
		}
	}
	for i, m := range cfg.Middleware {
		if m == nil {
			bad("Middleware[%d] is nil", i)
		}
	}
	errs = append(errs, checkQueues(cfg)...)
	errs = append(errs, checkPool(c.rdb, cfg.Blocking)...)
	if err := checkServers(cfg.Blocking); err != nil {
		errs = append(errs, fmt.Errorf("WorkerConfig.Blocking: %w", err))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	w := &Worker{client: c, cfg: cfg, handlers: map[string]*handler{}, tag: rand.Text()[:tagLength], draining: make(chan struct{})}
	w.alive, w.kill = context.WithCancel(context.Background())
	w.slots.total, w.slots.strict = cfg.Concurrency, cfg.Strict
	for i, q := range cfg.Queues {
		f := newFeed(w, i, c.queue(q.Name))
		w.feeds = append(w.feeds, f)
		sq := slotQueue{weight: max(1, q.Weight), max: q.Max, reserve: q.Reserve, wake: f.poke}
		if sq.max == 0 {
			sq.max = cfg.Concurrency
		}
		w.slots.add(sq)
	}
	return w, nil
}

func checkQueues(cfg WorkerConfig) (errs []error) {
	bad := func(format string, args ...any) {
		errs = append(errs, invalidf("WorkerConfig.Queues: "+format, args...))
	}
	if len(cfg.Queues) == 0 {
		bad(`none is named; give pawl.Queues("emails")`)
	}
	seen, reserved := map[string]bool{}, 0
	for _, q := range cfg.Queues {
		if err := checkName(q.Name); err != nil {
			errs = append(errs, fmt.Errorf("WorkerConfig.Queues: %w", err))
		}
		if seen[q.Name] {
			bad("%q is named twice", q.Name)
		}
		seen[q.Name] = true
		if q.Weight < 0 || q.Weight > 1_000_000 {
			bad("the weight of %q must be 1 to 1000000", q.Name)
		}
		if q.Weight > 1 && cfg.Strict {
			bad("%q has a weight, which Strict does not heed: leave out one of them", q.Name)
		}
		if q.Max < 0 || q.Reserve < 0 || q.Max > 0 && q.Reserve > q.Max {
			bad("%q has Max %d and Reserve %d: neither may be negative, and Reserve not above Max", q.Name, q.Max, q.Reserve)
		}
		reserved += max(0, q.Reserve)
	}
	if reserved > max(0, cfg.Concurrency) {
		bad("they reserve %d slots of a Concurrency of %d", reserved, cfg.Concurrency)
	}
	if reserved > 0 && reserved == cfg.Concurrency {
		for _, q := range cfg.Queues {
			if q.Reserve == 0 {
				bad("the others reserve all %d slots, so %q would never run; raise Concurrency", reserved, q.Name)
			}
		}
	}
	return errs
}

// checkPool refuses a pool in which a worker would wait for itself: it needs a
// connection to settle, one to renew leases and one to block on.
func checkPool(rdb, blocking redis.UniversalClient) []error {
	need := 3
	if blocking != nil {
		need = 2
	}
	if c, ok := rdb.(oneServer); ok && c.Options().PoolSize < need {
		return []error{invalidf("the Redis client's PoolSize is %d; a worker needs %d connections", c.Options().PoolSize, need)}
	}
	return nil
}
