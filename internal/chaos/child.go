package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/testhook"
)

// ChildEnv has the test binary be a producer or a worker instead of a test:
// TestMain calls Child if it is set.
const ChildEnv = "PAWL_CHAOS_CHILD"

// childConfig is what a child is told.
type childConfig struct {
	Role        string // worker or producer
	Name, Dir   string
	Addr        string
	Queues      []string
	Seed        uint64
	Jobs        int           // of a producer
	Total       int           // of all producers
	Callers     int           // that enqueue at once: their calls share round trips
	Risky       string        // the only queue with poison, if one is named
	Sample      time.Duration // of a soak: between two samples
	Pace        time.Duration // between two of its enqueues
	Only        string
	Keyed       bool
	Idem        bool // most jobs have an idempotency key
	Concurrency int  // of a worker
	Visibility  time.Duration
	Bugs        []Bug

	safe bool // of a draft: its queue has no poison
}

// Bug is a text of a script and what becomes of it.
type Bug struct{ Script, Old, New string } // Script "" means each that has the text

// plant makes the changes, and panics over a bug that no script can have.
func plant(bugs []Bug, name, body string, times map[Bug]int) string {
	for _, b := range bugs {
		if b.Script == "" || b.Script == name {
			times[b] += strings.Count(body, b.Old)
			body = strings.ReplaceAll(body, b.Old, b.New)
		}
	}
	return body
}

// Child is the main of a child process.
func Child() {
	go func() { // a parent that was killed closes it
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(2)
	}()
	var cfg childConfig
	must(json.Unmarshal([]byte(os.Getenv(ChildEnv)), &cfg))
	if len(cfg.Bugs) > 0 {
		times := map[Bug]int{}
		testhook.Scripts(func(name, body string) string { return plant(cfg.Bugs, name, body, times) })
	}
	redis.SetLogger(silent{})
	out, err := NewWriter(cfg.Dir, cfg.Name)
	must(err)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	rdb := redis.NewClient(&redis.Options{Addr: cfg.Addr, ReadTimeout: time.Second, DialTimeout: time.Second, PoolSize: 32})
	client, err := pawl.New(rdb, pawl.Config{Hooks: []pawl.Hook{scribe{out, cfg.Visibility}}})
	must(err)
	go watch(ctx, out, cfg.Visibility, nil)
	if cfg.Sample > 0 {
		go sampleSelf(ctx, cfg, rdb)
	}
	if cfg.Role == "producer" {
		produce(ctx, cfg, client, out)
	} else {
		work(ctx, cfg, client, out)
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos: child:", err)
		os.Exit(4)
	}
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func work(ctx context.Context, cfg childConfig, client *pawl.Client, out *Writer) {
	w, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues(cfg.Queues...), Concurrency: cfg.Concurrency, Name: cfg.Name,
		VisibilityTimeout: cfg.Visibility, MaxAttempts: maxAttempts, Backoff: backoff,
		MaxCrashes:   100, // what dies of the runner's kills would not be run
		DrainTimeout: 300 * time.Millisecond})
	must(err)
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[Task]) error { return job.Args.handle(ctx, &job.RawJob, out) })
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[Scrap]) error { return job.Args.handle(ctx, &job.RawJob, out) })
	_ = w.Run(ctx) // what it gave back, the history tells
}

// scribe is the hook that writes the history of a worker.
type scribe struct {
	out   *Writer
	lease time.Duration
}

func (s scribe) write(op Op, e pawl.Event, change func(*Event)) {
	line := Event{Type: OK, Op: op, Job: e.Job.ID.String(), Run: e.Job.Run, Attempt: e.Job.Attempt,
		MaxAttempts: e.Job.MaxAttempts, Crashes: e.Job.Crashes, Redrives: e.Job.Redrives}
	if e.Err != nil {
		line.Class = fmt.Sprintf("%.60s", e.Err)
	}
	if change != nil {
		change(&line)
	}
	s.out.Write(line)
}

// Started also notes what the lease was.
func (s scribe) Started(_ context.Context, e pawl.Event) {
	var task Task
	_ = json.Unmarshal(e.Job.Payload, &task) // what cannot be read has no ref, and is found so
	s.write(Start, e, func(line *Event) {
		line.Ref, line.Queue, line.Due, line.Lease = task.Ref, e.Job.Queue, e.Job.DueAt.UnixMilli(), s.lease.Milliseconds()
	})
}

func (s scribe) Done(_ context.Context, e pawl.Event)      { s.write(Done, e, nil) }
func (s scribe) Skipped(_ context.Context, e pawl.Event)   { s.write(Skip, e, nil) }
func (s scribe) Discarded(_ context.Context, e pawl.Event) { s.write(Discard, e, nil) }
func (s scribe) Cancelled(_ context.Context, e pawl.Event) { s.write(Cancel, e, nil) }
func (s scribe) Released(_ context.Context, e pawl.Event)  { s.write(Release, e, nil) }
func (s scribe) Crashed(_ context.Context, e pawl.Event)   { s.write(Crashed, e, nil) }
func (s scribe) LeaseLost(_ context.Context, e pawl.Event) { s.write(Lost, e, nil) }
func (s scribe) Retry(_ context.Context, e pawl.RetryEvent) {
	s.write(Retry, e.Event, func(line *Event) { line.Delay = e.Delay.Milliseconds() })
}
func (s scribe) Snoozed(_ context.Context, e pawl.RetryEvent) {
	s.write(Snooze, e.Event, func(line *Event) { line.Delay = e.Delay.Milliseconds() })
}
func (s scribe) Dead(_ context.Context, e pawl.DeadEvent) {
	s.write(Dead, e.Event, func(line *Event) { line.Class = string(e.Reason) })
}
