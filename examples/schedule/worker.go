package main

import (
	"context"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/examplefleet"
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

// work is a worker process. It knows of no schedule: those of its queue lie in Redis.
func work(namespace string) error {
	ctx, rdb, stop, err := examplefleet.Open()
	if err != nil {
		return err
	}
	defer stop()
	client, err := pawl.New(rdb, pawl.Config{Namespace: namespace})
	if err != nil {
		return err
	}
	w, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues(queue), VisibilityTimeout: 2 * time.Second})
	if err != nil {
		return err
	}
	pawl.Handle(w, sumUp)
	return w.Run(ctx)
}

// sumUp goes by the time that the job was made for, and not by the clock.
func sumUp(_ context.Context, job *pawl.Job[Report]) error {
	examplefleet.Tell(report{What: job.Schedule, Tick: job.ScheduledAt.Format("15:04:05.000"), Job: job.ID.String()})
	return nil
}
