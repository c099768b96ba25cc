package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/pawlq/pawl"
)

const queue = "emails"

// Mail is a job.
type Mail struct {
	To int `json:"to"`
}

func (Mail) Kind() string { return "mail" }

func newWorker(client *pawl.Client) (*pawl.Worker, error) {
	w, err := pawl.NewWorker(client, pawl.WorkerConfig{
		Queues:       pawl.Queues(queue),
		DrainTimeout: 25 * time.Second, // 5 s less than terminationGracePeriodSeconds
	})
	if err != nil {
		return nil, err
	}
	pawl.Handle(w, send)
	return w, nil
}

func send(_ context.Context, job *pawl.Job[Mail]) error {
	if job.Args.To%10 == 9 {
		return pawl.Permanent(fmt.Errorf("user %d has no such mailbox", job.Args.To))
	}
	return nil
}

// produce enqueues a job now and then, until ctx ends, through outages too.
func produce(ctx context.Context, q *pawl.Queue, log *slog.Logger) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// Whoever asked for the mail would be told, and ask again: here nobody has.
		if _, err := q.Enqueue(ctx, Mail{n}); err != nil && ctx.Err() == nil {
			log.Warn("a mail was not enqueued", "to", n, "error", err)
		}
	}
}
