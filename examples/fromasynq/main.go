// Fromasynq moves the tasks that wait in a queue of asynq into pawl, as one does on the
// day of the change. The program that moves them dies in the middle, and is started again:
// every task is run, and none twice.
//
//	go run ./examples/fromasynq
//
// It needs nothing but Go, and takes about 5 s. With REDIS_URL set it uses that Redis
// instead of one of its own, in a namespace that it removes at the end; of asynq it then
// uses a queue with a name of its own, which it removes too.
//
// To read first: forward.go, which is all that a program of yours would take from here.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hibiken/asynq"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/exampleredis"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pawl fromasynq:", err)
		os.Exit(1)
	}
	fmt.Println("\npawl fromasynq: ok")
}

func run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	rdb, namespace, cleanup, err := exampleredis.Open(ctx)
	if err != nil {
		return err
	}
	defer cleanup()
	client, err := pawl.New(rdb, pawl.Config{Namespace: namespace})
	if err != nil {
		return err
	}
	s := &story{rdb: rdb, old: namespace, asynq: asynq.NewClientFromRedisClient(rdb), queue: client.Queue("mails"),
		client: client, ran: map[string]int{}, done: make(chan struct{}, 1000)}
	s.forwarder = forwarder{from: asynq.NewInspectorFromRedisClient(rdb), to: s.queue}
	defer func() { err = errors.Join(err, s.clean()) }()
	for _, chapter := range []func(context.Context) error{s.before, s.cutShort, s.again, s.after} {
		if err := chapter(ctx); err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("stopped before the end: %w", errors.Join(context.Cause(ctx), err))
			}
			return err
		}
	}
	return nil
}
