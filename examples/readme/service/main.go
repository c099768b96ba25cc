// The complete program of the README: a producer and a worker on the Redis at
// localhost:6379. It needs nothing from this repository but pawl.
//
//	go run ./examples/readme/service

// region service
package main

import (
	"context"
	"log"
	"log/slog"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
)

type Welcome struct {
	UserID int64 `json:"user_id"`
}

func (Welcome) Kind() string { return "welcome" }

func run() error {
	// SIGINT and SIGTERM end ctx, and with it w.Run below.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	client, err := pawl.New(rdb, pawl.Config{Logger: slog.Default()})
	if err != nil {
		return err
	}
	job, err := client.Queue("emails").Enqueue(ctx, Welcome{UserID: 42})
	if err != nil {
		return err
	}
	slog.Info("enqueued", "job", job.ID)

	w, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("emails")})
	if err != nil {
		return err
	}
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[Welcome]) error {
		job.Logger().Info("welcome", "user", job.Args.UserID) // your mail goes here
		return nil
	})
	return w.Run(ctx)
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// endregion
