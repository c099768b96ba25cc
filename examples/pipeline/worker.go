package main

import (
	"context"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/examplefleet"
)

// visibility is how long a worker that says nothing keeps its jobs: 1 s, to end soon.
// The default is 30 s.
const visibility = time.Second

// report is a line that a worker process writes to its parent.
type report struct {
	What  string // "ready", or of a step: begins, effect, hands on, ended
	Chain string // such as "photo 1"; with begins and effect
	Kind  string
	Key   string // job.IdempotencyKey()
}

// work is a worker process.
func work(namespace string) error {
	ctx, rdb, stop, err := examplefleet.Open()
	if err != nil {
		return err
	}
	defer stop()
	client, err := pawl.New(rdb, pawl.Config{Namespace: namespace, Hooks: []pawl.Hook{witness{}}})
	if err != nil {
		return err
	}
	w, err := pawl.NewWorker(client, pawl.WorkerConfig{
		Queues:            pawl.Queues(workQueue, mailQueue),
		VisibilityTimeout: visibility,
		// The default of 3 is against jobs that kill their workers. Here something else
		// does, all the time.
		MaxCrashes: 255,
	})
	if err != nil {
		return err
	}
	pawl.Handle(w, fetch)
	pawl.Handle(w, resize)
	pawl.Handle(w, publish)
	pawl.Handle(w, mail)
	pawl.Handle(w, backup)
	pawl.Handle(w, verify)
	pawl.Handle(w, prune)
	examplefleet.Tell(report{What: "ready"})
	return w.Run(ctx)
}

// step stands for the work of a job. Its effect is a line in the store of the parent,
// under the job's key.
func step(ctx context.Context, job *pawl.RawJob, chain string) error {
	r := report{Chain: chain, Kind: job.Kind, Key: job.IdempotencyKey()}
	say := func(what string) { r.What = what; examplefleet.Tell(r) }
	say("begins")
	if err := pause(ctx, stepTime); err != nil {
		return err
	}
	say("effect")
	return pause(ctx, restTime)
}

// pause is nil after d, or why the context ended: the lease is lost, or the worker must
// stop.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// witness is a pawl.Hook: it tells the parent what Redis knows by now.
type witness struct{}

var (
	_ pawl.OnEnqueued = witness{}
	_ pawl.OnDone     = witness{}
)

// Enqueued is told of a mail before the end of the job that it follows is stored. Hooks
// should be quick, and this one is not: it leaves the parent time to kill the worker here.
func (witness) Enqueued(ctx context.Context, e pawl.EnqueuedEvent) {
	if job, ok := pawl.FromContext(ctx); ok && e.Err == nil && e.Queue == mailQueue {
		examplefleet.Tell(report{What: "hands on", Kind: job.Kind, Key: job.IdempotencyKey()})
		_ = pause(ctx, restTime)
	}
}

func (witness) Done(_ context.Context, e pawl.Event) {
	examplefleet.Tell(report{What: "ended", Kind: e.Job.Kind, Key: e.Job.IdempotencyKey()})
}
