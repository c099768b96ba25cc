package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/pawlq/pawl"
)

// journal prints what happens and when. It is a pawl.Hook: it has methods for
// the events it wants to see, and is called once Redis holds the outcome.
type journal struct {
	start   time.Time
	changed chan struct{}

	mu     sync.Mutex
	ended  int             // jobs that are done or dead
	failed map[pawl.ID]int // attempts, by job
}

var (
	_ pawl.OnDone  = (*journal)(nil)
	_ pawl.OnRetry = (*journal)(nil)
	_ pawl.OnDead  = (*journal)(nil)
)

func newJournal() *journal {
	return &journal{start: time.Now(), changed: make(chan struct{}, 1), failed: map[pawl.ID]int{}}
}

func (j *journal) Done(_ context.Context, e pawl.Event) {
	j.job("done", e.Job, "attempt %d", e.Job.Attempt)
	j.note(func() { j.ended++ })
}

func (j *journal) Retry(_ context.Context, e pawl.RetryEvent) {
	j.job("failed", e.Job, "attempt %d, again in %d ms: %v", e.Job.Attempt, e.Delay.Milliseconds(), e.Err)
	j.note(func() { j.failed[e.Job.ID]++ })
}

func (j *journal) Dead(_ context.Context, e pawl.DeadEvent) {
	j.job("dead", e.Job, "attempt %d, %s: %v", e.Job.Attempt, e.Reason, e.Err)
	j.note(func() { j.ended++ })
}

func (j *journal) job(what string, job *pawl.RawJob, format string, args ...any) {
	var d Delivery
	if err := json.Unmarshal(job.Payload, &d); err != nil {
		d.Event, d.Endpoint = "?", "?"
	}
	j.line(what, d.Event, d.Endpoint, format, args...)
}

// line prints one event with the milliseconds since the start.
func (j *journal) line(what, event, endpoint, format string, args ...any) {
	fmt.Printf("%5d ms  %-8s  %-5s  %-6s  %s\n",
		time.Since(j.start).Milliseconds(), what, event, endpoint, fmt.Sprintf(format, args...))
}

// note changes the journal and wakes await. A hook must not wait, so where a
// wake-up is pending already it leaves it at that.
func (j *journal) note(change func()) {
	j.mu.Lock()
	change()
	j.mu.Unlock()
	select {
	case j.changed <- struct{}{}:
	default:
	}
}

// awaitEnds returns when so many jobs are done or dead, from the start on.
func (j *journal) awaitEnds(ctx context.Context, n int) error {
	return j.await(ctx, func() bool { return j.ended >= n })
}

// awaitFailures returns when each of the jobs has failed at least twice.
func (j *journal) awaitFailures(ctx context.Context, jobs []pawl.Enqueued) error {
	return j.await(ctx, func() bool {
		for _, job := range jobs {
			if j.failed[job.ID] < 2 {
				return false
			}
		}
		return true
	})
}

func (j *journal) await(ctx context.Context, enough func() bool) error {
	for {
		j.mu.Lock()
		ok := enough()
		j.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-j.changed:
		case <-ctx.Done():
			return fmt.Errorf("stopped before the end: %w", context.Cause(ctx))
		}
	}
}
