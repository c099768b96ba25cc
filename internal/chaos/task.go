package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/pawlq/pawl"
)

// Task is what the jobs carry: how they are to go, as a function of job and
// attempt alone, so that every worker decides alike.
type Task struct {
	Ref   string // of its enqueue
	Shape string
	Work  int // ms
	Pad   string
}

// Kind is that of most jobs.
func (Task) Kind() string { return "task" }

// Scrap is a Task that the operator may purge.
type Scrap struct{ Task }

// Kind is that of the jobs that may be purged.
func (Scrap) Kind() string { return "scrap" }

// The waits of retries: short, so that a run sees many.
var backoff = pawl.Backoff{Base: 40 * time.Millisecond, Factor: 2, Max: 200 * time.Millisecond}

const (
	maxAttempts = 3
	snoozeFor   = 150 * time.Millisecond
	retryAfter  = 70 * time.Millisecond
	snoozeUntil = 400 * time.Millisecond // after the enqueue
)

var errTask = errors.New("this attempt fails")

// A verdict is what a handler does at its end.
type verdict struct {
	class       string // as in an Effect
	err         error
	panics      bool
	least, most time.Duration // of the delay that follows
}

// shapes are how often each shape comes, of a hundred.
var shapes = map[string]int{"plain": 29, "flaky": 16, "panic": 6, "doomed": 8, "permanent": 6, "snooze": 8,
	"discard": 6, "after": 6, "slow": 4, "deaf": 3, "long": 5, "once": 2, "poison": 1}

// verdict is what a job of this shape does in a run. A job that was redriven
// succeeds: whatever was wrong has been mended.
func (t Task) verdict(job *pawl.RawJob) verdict {
	n := job.Attempt
	retry := func(err error) verdict {
		d := min(backoff.Base<<(n-1), backoff.Max)
		return verdict{class: "retry", err: err, least: d / 2, most: d}
	}
	if job.Redrives > 0 {
		return verdict{class: "done"}
	}
	switch t.Shape {
	case "flaky":
		if n < 1+len(t.Ref)%maxAttempts || n == 1 {
			return retry(errTask)
		}
	case "panic":
		if n == 1 {
			v := retry(errTask)
			v.panics = true
			return v
		}
	case "doomed", "deaf doomed":
		return retry(fmt.Errorf("doomed: %w", errTask))
	case "permanent":
		return verdict{class: "dead", err: pawl.Permanent(errTask)}
	case "snooze":
		if time.Since(job.EnqueuedAt) < snoozeUntil {
			return verdict{class: "snooze", err: pawl.Snooze(snoozeFor), least: snoozeFor, most: snoozeFor}
		}
	case "discard":
		return verdict{class: "discard", err: pawl.Discard(errTask)}
	case "after":
		if n < maxAttempts {
			return verdict{class: "retry", err: pawl.RetryAfter(retryAfter, errTask), least: retryAfter, most: retryAfter}
		}
	}
	return verdict{class: "done"}
}

// work takes its time: until the context ends, unless the handler is deaf.
func (t Task) work(ctx context.Context) error {
	timer := time.NewTimer(time.Duration(t.Work) * time.Millisecond)
	defer timer.Stop()
	if strings.HasPrefix(t.Shape, "deaf") {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// handle runs a job and writes down what it is about to do.
func (t Task) handle(ctx context.Context, job *pawl.RawJob, out *Writer) error {
	err := t.work(ctx)
	v := t.verdict(job)
	switch {
	case err != nil:
		v.class, v.err, v.panics = "retry", err, false
	case t.Shape == "poison" && job.Redrives == 0:
		v = verdict{class: "exit"}
	}
	out.Write(Event{Type: OK, Op: Effect, Ref: t.Ref, Job: job.ID.String(), Run: job.Run, Attempt: job.Attempt,
		Class: v.class, Cause: cause(ctx), Least: v.least.Milliseconds(), Most: v.most.Milliseconds()})
	if v.class == "exit" {
		os.Exit(3)
	}
	if v.panics {
		panic(v.err)
	}
	return v.err
}

func cause(ctx context.Context) string {
	switch err := context.Cause(ctx); {
	case err == nil:
		return ""
	case errors.Is(err, pawl.ErrLeaseLost):
		return "lost"
	case errors.Is(err, pawl.ErrCancelled):
		return "cancelled"
	case errors.Is(err, pawl.ErrShutdown):
		return "shutdown"
	default:
		return err.Error()
	}
}

// A draft is a job about to be enqueued.
type draft struct {
	args    pawl.Args
	options []pawl.Option
	invoke  Event
	rejects bool // it is an error if the key is held
}

// newDraft makes a job of mixed shape.
func newDraft(random *rand.Rand, ref string, cfg childConfig) draft {
	task, visibility := Task{Ref: ref, Shape: pickShape(random, cfg), Work: random.IntN(12)}, cfg.Visibility
	switch task.Shape {
	case "slow", "deaf": // outlive their leases, unless these are renewed
		task.Work = int(visibility.Milliseconds()) + random.IntN(300)
	case "long":
		task.Work = 100 + random.IntN(200)
	case "once": // a drain finds it at work
		task.Work = 200 + random.IntN(400)
	case "epic":
		task.Work = 4000
	case "snail": // is frozen in its work, and fails
		task.Work, task.Shape = int(visibility.Milliseconds())+random.IntN(300), "deaf doomed"
	}
	if random.IntN(10) == 0 {
		task.Pad = strings.Repeat("x", random.IntN(20_000))
	}
	d := draft{args: task, invoke: Event{Type: Invoke, Op: Enqueue, Ref: ref, Class: task.Shape}}
	switch task.Shape {
	case "poison":
		d.options = append(d.options, pawl.MaxCrashes(2))
	case "once":
		d.options = append(d.options, pawl.MaxAttempts(1), pawl.MaxCrashes(1))
	}
	switch {
	case random.IntN(12) == 0:
		d.args, d.invoke.Scrap = Scrap{task}, true
		d.delay(1000 + random.IntN(1500))
	case random.IntN(6) == 0:
		d.delay(1 + random.IntN(600))
	}
	if random.IntN(8) == 0 {
		d.options = append(d.options, pawl.Priority(1+random.IntN(9)))
	}
	if cfg.Keyed || random.IntN(5) == 0 {
		d.unique(random)
	}
	if cfg.Idem || cfg.Only == "" && random.IntN(8) == 0 {
		d.idempotent(random)
	}
	return d
}

// idempotent gives it one of a few idempotency keys.
func (d *draft) idempotent(random *rand.Rand) {
	i := pawl.Idempotency{Key: fmt.Sprint("i", random.IntN(12)), Window: 300 * time.Millisecond}
	d.invoke.Idem, d.invoke.Keep = i.Key, i.Window.Milliseconds()
	d.options = append(d.options, i)
}

func (d *draft) delay(ms int) {
	d.invoke.Delay = int64(ms)
	d.options = append(d.options, pawl.Delay(time.Duration(ms)*time.Millisecond))
}

// unique takes one of a few keys, each used in one mode, by many jobs.
func (d *draft) unique(random *rand.Rand) {
	mode := random.IntN(4)
	u := pawl.Unique{Key: fmt.Sprintf("%d-%d", mode, random.IntN(3))}
	switch mode {
	case 1:
		u.Until = pawl.UntilStarted
	case 2:
		u.For = 300 * time.Millisecond
	case 3:
		u.OnDuplicate, d.rejects = pawl.RejectDuplicate, true
	}
	d.invoke.Key, d.invoke.Window, d.invoke.Started = u.Key, u.For.Milliseconds(), mode == 1
	d.options = append(d.options, u)
}

// pickShape takes one of the words of Only, if there are any.
func pickShape(random *rand.Rand, cfg childConfig) string {
	if words := strings.Fields(cfg.Only); len(words) > 0 {
		return words[random.IntN(len(words))]
	}
	n := random.IntN(100)
	for _, name := range shapeNames {
		if n -= shapes[name]; n < 0 {
			if name == "poison" && cfg.safe {
				return "plain"
			}
			// Of a large run's as many are plain as makes the rest the limit.
			if limit := rare[name]; limit > 0 && random.IntN(max(1, cfg.Total*shapes[name]/100)) >= limit {
				return "plain"
			}
			return name
		}
	}
	return "plain"
}

// rare is about how many there are in a run, however large it is, of the shapes
// that hold a slot for long or cost a process.
var rare = map[string]int{"slow": 60, "deaf": 40, "long": 300, "once": 150, "poison": 8}

// shapeNames gives the shapes an order, which a map has not.
var shapeNames = []string{"plain", "flaky", "panic", "doomed", "permanent", "snooze", "discard", "after", "slow", "deaf", "long", "once", "poison"}
