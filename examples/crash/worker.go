package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/exampleredis"
)

const queue = "exports"

// Export is a job that takes as long as the visibility timeout. It may: the
// worker renews its lease while it runs.
type Export struct {
	Table string `json:"table"`
}

func (Export) Kind() string { return "export" }

const (
	steps    = 4
	stepTime = 500 * time.Millisecond
)

// report is a line that a worker process writes to its parent.
type report struct {
	Worker  string // filled in by the parent
	What    string
	Attempt int
	Crashes int
}

// child is a worker process. It stops when the parent closes its standard
// input, and thus also when the parent is no more.
func child(namespace string) error {
	opts, err := redis.ParseURL(os.Getenv(exampleredis.Env))
	if err != nil {
		return err
	}
	rdb := redis.NewClient(opts)
	defer func() { _ = rdb.Close() }()
	client, err := pawl.New(rdb, pawl.Config{Namespace: namespace})
	if err != nil {
		return err
	}
	w, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues(queue), VisibilityTimeout: visibility})
	if err != nil {
		return err
	}
	pawl.Handle(w, export)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	tell(report{What: "ready"})
	return w.Run(ctx)
}

// export has no trace of crashes in it: a job that ran halfway is run again
// from its start, and job.Crashes tells if it wants to know.
func export(ctx context.Context, job *pawl.Job[Export]) error {
	say := func(what string) { tell(report{What: what, Attempt: job.Attempt, Crashes: job.Crashes}) }
	say("starts")
	for step := 1; step <= steps; step++ {
		select {
		case <-time.After(stepTime):
			say(fmt.Sprintf("step %d", step))
		case <-ctx.Done(): // the lease is lost, or the worker must stop
			return context.Cause(ctx)
		}
	}
	say("done")
	return nil
}

func tell(r report) { _ = json.NewEncoder(os.Stdout).Encode(r) }
