package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawlq/pawl"
)

// journal prints what happens and when, and tells the story, which waits for
// some of it. It is a pawl.Hook; for what has no hook, it is middleware.
type journal struct {
	start  time.Time
	events chan event // never full: hooks must not wait

	mu     sync.Mutex
	videos map[string]string // by idempotency key
	runs   map[string]int    // by video
}

type event struct {
	what, video string
	at          time.Time
}

var (
	_ pawl.OnStarted  = (*journal)(nil)
	_ pawl.OnDone     = (*journal)(nil)
	_ pawl.OnRetry    = (*journal)(nil)
	_ pawl.OnDead     = (*journal)(nil)
	_ pawl.OnReleased = (*journal)(nil)
)

func newJournal() *journal {
	return &journal{start: time.Now(), events: make(chan event, 1024), videos: map[string]string{}, runs: map[string]int{}}
}

func (j *journal) Started(_ context.Context, e pawl.Event) {
	var args Transcode
	_ = json.Unmarshal(e.Job.Payload, &args) // the handler would not run if this failed
	j.mu.Lock()
	j.videos[e.Job.IdempotencyKey()] = args.Video
	j.runs[args.Video]++
	j.mu.Unlock()
	j.happened("start", e.Job, "%s", attempt(e.Job))
}

func (j *journal) Done(_ context.Context, e pawl.Event) {
	j.happened("done", e.Job, "%s, after %d ms", attempt(e.Job), e.Took.Milliseconds())
}

func (j *journal) Retry(_ context.Context, e pawl.RetryEvent) {
	j.happened("failed", e.Job, "%s, again in %d ms: %v", attempt(e.Job), e.Delay.Milliseconds(), e.Err)
}

func (j *journal) Dead(_ context.Context, e pawl.DeadEvent) {
	j.happened("dead", e.Job, "%s, %s: %v", attempt(e.Job), e.Reason, e.Err)
}

func (j *journal) Released(_ context.Context, e pawl.Event) {
	j.happened("released", e.Job, "%s, which is not spent", attempt(e.Job))
}

// endings is middleware that tells when a run was ended by its context. Of a
// cancelled job no hook does.
func (j *journal) endings(next pawl.Handler) pawl.Handler {
	return func(ctx context.Context, job *pawl.RawJob) error {
		err := next(ctx, job)
		if err != nil && ctx.Err() != nil {
			j.happened("stopped", job, "the cause: %v", context.Cause(ctx))
		}
		return err
	}
}

// part tells of a part that is stored; only some are worth a line.
func (j *journal) part(video string, part int) {
	if part%16 == 0 {
		j.line("part", video, "%d", part)
	}
	j.events <- event{fmt.Sprint("part ", part), video, time.Now()}
}

func (j *journal) happened(what string, job *pawl.RawJob, format string, args ...any) {
	video := j.video(job.IdempotencyKey())
	j.line(what, video, format, args...)
	j.events <- event{what, video, time.Now()}
}

func (j *journal) video(key string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.videos[key]
}

func (j *journal) runsOf(video string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.runs[video]
}

// line prints one event with the milliseconds since the start.
func (j *journal) line(what, video, format string, args ...any) {
	fmt.Printf("%5d ms  %-8s  %-11s  %s\n", time.Since(j.start).Milliseconds(), what, video, fmt.Sprintf(format, args...))
}

func attempt(job *pawl.RawJob) string {
	return fmt.Sprintf("attempt %d of %d", job.Attempt, job.MaxAttempts)
}

// await returns when what has happened to the video. Events before it are
// passed over. A death that was not waited for is an error.
func (j *journal) await(ctx context.Context, what, video string) (event, error) {
	for {
		select {
		case e := <-j.events:
			switch {
			case e.what == what && e.video == video:
				return e, nil
			case e.what == "dead":
				return event{}, errors.New(e.video + " is dead")
			}
		case <-ctx.Done():
			return event{}, fmt.Errorf("waiting for %q of %s: %w", what, video, context.Cause(ctx))
		}
	}
}
