package main

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

const (
	workQueue = "work"
	mailQueue = "mail"
)

// The steps of a photo. Only the handler of one knows what the next needs.
type (
	Fetch   struct{ Photo int }
	Resize  struct{ Photo, Bytes int }
	Publish struct{ Photo, Sizes int }
	Mail    struct{ Photo int }
)

func (Fetch) Kind() string   { return "fetch" }
func (Resize) Kind() string  { return "resize" }
func (Publish) Kind() string { return "publish" }
func (Mail) Kind() string    { return "mail" }

// region pipeline-then

// fetch is the first step of a photo. The second needs what the first has found.
func fetch(ctx context.Context, job *pawl.Job[Fetch]) error {
	if err := step(ctx, &job.RawJob, photo(job.Args.Photo)); err != nil {
		return err // and nothing follows
	}
	job.Then(Resize{Photo: job.Args.Photo, Bytes: 1000 * job.Args.Photo})
	return nil // with this one's end the next is enqueued: both, or neither
}

// resize passes on less: a big thing belongs in a blob store, its key in the job.
func resize(ctx context.Context, job *pawl.Job[Resize]) error {
	if err := step(ctx, &job.RawJob, photo(job.Args.Photo)); err != nil {
		return err
	}
	job.Then(Publish{Photo: job.Args.Photo, Sizes: 3})
	return nil
}

// publish is followed by a job of another queue. That one is enqueued a moment before
// the end of this one, under a key of this job: a run that is killed in between comes
// again, and adds no second mail.
func publish(ctx context.Context, job *pawl.Job[Publish]) error {
	if err := step(ctx, &job.RawJob, photo(job.Args.Photo)); err != nil {
		return err
	}
	job.ThenOn(mailQueue, Mail{Photo: job.Args.Photo})
	return nil
}

// endregion

func mail(ctx context.Context, job *pawl.Job[Mail]) error {
	return step(ctx, &job.RawJob, photo(job.Args.Photo))
}

// The steps of a night. Their handlers know of no chain: who enqueues the first says
// what follows.
type (
	Backup struct{ Night int }
	Verify struct{ Night int }
	Prune  struct{ Night int }
)

func (Backup) Kind() string { return "backup" }
func (Verify) Kind() string { return "verify" }
func (Prune) Kind() string  { return "prune" }

// region pipeline-nested

// enqueueNight enqueues one job, which carries the two that follow.
func enqueueNight(ctx context.Context, q *pawl.Queue, night int) error {
	_, err := q.Enqueue(ctx, Backup{Night: night},
		pawl.Then{Args: Verify{Night: night}, Options: []pawl.Option{
			pawl.Then{Args: Prune{Night: night}}, // of a backup that was verified
		}})
	return err
}

// endregion

func backup(ctx context.Context, job *pawl.Job[Backup]) error {
	return step(ctx, &job.RawJob, night(job.Args.Night))
}

func verify(ctx context.Context, job *pawl.Job[Verify]) error {
	return step(ctx, &job.RawJob, night(job.Args.Night))
}

func prune(ctx context.Context, job *pawl.Job[Prune]) error {
	return step(ctx, &job.RawJob, night(job.Args.Night))
}

func photo(n int) string { return fmt.Sprint("photo ", n) }
func night(n int) string { return fmt.Sprint("night ", n) }

// chains are the kinds of the steps of each sort of chain.
var chains = map[string][]string{
	"photo": {"fetch", "resize", "publish", "mail"},
	"night": {"backup", "verify", "prune"},
}

const (
	stepTime = 80 * time.Millisecond
	// restTime is how long a step goes on after its effect. A worker that is killed in it
	// has done the work, and nobody but the store knows.
	restTime = 250 * time.Millisecond
)
