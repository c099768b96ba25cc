package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/exampleredis"
)

const queue = "reports"

// Report is a job that sums up some time.
type Report struct {
	Of string `json:"of"`
}

func (Report) Kind() string { return "report" }

// report is a line that a worker process writes to its parent.
type report struct {
	Worker string // filled in by the parent
	What   string // the schedule
	Tick   string
	Job    string
}

// child is a worker process. It knows of no schedule: those of its queue lie in
// Redis. It stops when the parent closes its standard input, and thus also when the
// parent is no more.
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
	w, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues(queue), VisibilityTimeout: 2 * time.Second})
	if err != nil {
		return err
	}
	pawl.Handle(w, sumUp)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return w.Run(ctx)
}

// sumUp goes by the time that the job was made for, and not by the clock.
func sumUp(_ context.Context, job *pawl.Job[Report]) error {
	return json.NewEncoder(os.Stdout).Encode(report{
		What: job.Schedule, Tick: job.ScheduledAt.Format("15:04:05.000"), Job: job.ID.String()})
}
