// Pipeline runs chains of jobs, each of which is enqueued by the acknowledgement of the
// one before, while the worker processes are killed between the steps and within them,
// and started again: every step of every chain is done, and none has two jobs.
//
//	go run ./examples/pipeline
//
// It needs nothing but Go, and takes about 10 s. With REDIS_URL set it uses that Redis
// instead of one of its own, in a namespace that it removes at the end.
//
// To read first: steps.go has the handlers, and how a chain is enqueued.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/examplefleet"
	"github.com/pawlq/pawl/internal/exampleredis"
)

func main() {
	run := parent
	if args, ok := examplefleet.Worker(); ok {
		run = func() error { return work(args[0]) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pawl pipeline:", err)
		os.Exit(1)
	}
}

func parent() error {
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
	s := &story{namespace: namespace, work: client.Queue(workQueue), mail: client.Queue(mailQueue), store: newStore()}
	s.fleet = examplefleet.New(rdb, s.store.hear)
	defer s.fleet.Close() // before the cleanup: what they do to Redis is over then
	if err := s.tell(ctx); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("stopped before the end: %w", errors.Join(context.Cause(ctx), err))
		}
		return err
	}
	fmt.Println("\npawl pipeline: ok")
	return nil
}
