// The program of the README: a producer and a worker, and the mail they send.
//
//	go run ./examples/readme
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/exampleredis"
)

// region welcome
type Welcome struct {
	UserID int64 `json:"user_id"`
}

func (Welcome) Kind() string { return "welcome" } // stored with each job; finds its handler

func serve(ctx context.Context, rdb redis.UniversalClient, namespace string) error {
	client, err := pawl.New(rdb, pawl.Config{Namespace: namespace, Logger: slog.Default()})
	if err != nil {
		return err
	}
	if _, err := client.Queue("emails").Enqueue(ctx, Welcome{UserID: 42}); err != nil {
		return err // nothing was enqueued, unless it is pawl.ErrUnconfirmed
	}
	w, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("emails"), Concurrency: 50})
	if err != nil {
		return err
	}
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[Welcome]) error {
		return sendWelcome(ctx, job.Args.UserID, job.IdempotencyKey()) // nil: done; an error: tried again
	})
	return w.Run(ctx) // until ctx ends; then running jobs may finish
}

// endregion

// sent is called after the mail, and ends the program.
var sent func()

func sendWelcome(_ context.Context, userID int64, _ string) error {
	fmt.Printf("welcome, user %d\n", userID)
	sent()
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	sent = stop
	rdb, namespace, cleanup, err := exampleredis.Open(ctx)
	if err == nil {
		err = serve(ctx, rdb, namespace)
		cleanup()
	}
	if err != nil {
		log.Fatal(err)
	}
}
