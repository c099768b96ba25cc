package main

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// journal prints what happens and when. It is a pawl.Hook: it has methods for
// the events it wants to see, and is called once Redis holds the outcome.
type journal struct {
	start time.Time
	ended chan pawl.ID // jobs that are done or dead
}

var (
	_ pawl.OnDone  = (*journal)(nil)
	_ pawl.OnRetry = (*journal)(nil)
	_ pawl.OnDead  = (*journal)(nil)
)

func newJournal() *journal {
	return &journal{start: time.Now(), ended: make(chan pawl.ID, 16)}
}

func (j *journal) Done(_ context.Context, e pawl.Event) {
	j.line("done", "%-14s  %s", e.Job.Kind, attempt(e.Job))
	j.ended <- e.Job.ID
}

func (j *journal) Retry(_ context.Context, e pawl.RetryEvent) {
	j.line("failed", "%-14s  %s, again in %d ms: %s", e.Job.Kind, attempt(e.Job), e.Delay.Milliseconds(), begin(e.Err))
}

func (j *journal) Dead(_ context.Context, e pawl.DeadEvent) {
	j.line("dead", "%-14s  %s, %s: %s", e.Job.Kind, attempt(e.Job), e.Reason, begin(e.Err))
	j.ended <- e.Job.ID
}

// line prints one event with the milliseconds since the start.
func (j *journal) line(what, format string, args ...any) {
	fmt.Printf("%5d ms  %-8s  %s\n", time.Since(j.start).Milliseconds(), what, fmt.Sprintf(format, args...))
}

func attempt(job *pawl.RawJob) string {
	return fmt.Sprintf("attempt %d of %d", job.Attempt, job.MaxAttempts)
}

// begin is an error's text, cut to fit a line.
func begin(err error) string {
	text := err.Error()
	if len(text) > 40 {
		text = text[:40] + "..."
	}
	return text
}

// short is the end of an id, where those of one moment differ.
func short(id string) string { return id[len(id)-12:] }

// await returns when n more jobs are done or dead.
func (j *journal) await(ctx context.Context, n int) error {
	for range n {
		select {
		case <-j.ended:
		case <-ctx.Done():
			return fmt.Errorf("waiting for jobs to end: %w", context.Cause(ctx))
		}
	}
	return nil
}
