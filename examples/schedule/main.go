// Schedule has recurring jobs fire in three worker processes, one of which is killed,
// and shows that each time gives one job. There is no leader, and no scheduler.
//
//	go run ./examples/schedule
//
// It needs nothing but Go, and takes about 15 s. With REDIS_URL set it uses that
// Redis instead of one of its own, in a namespace that it removes at the end.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/examplefleet"
	"github.com/pawlq/pawl/internal/exampleredis"
)

// ticks is how many times are waited for.
const ticks = 12

func main() {
	run := parent
	if args, ok := examplefleet.Worker(); ok {
		run = func() error { return work(args[0]) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pawl schedule:", err)
		os.Exit(1)
	}
}

func parent() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
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
	s := &story{start: time.Now(), queue: client.Queue(queue), jobs: map[string]map[string]string{},
		reports: make(chan report, 1000)} // many more than there are
	s.fleet = examplefleet.New(rdb, s.hear)
	defer s.fleet.Close()
	if err := s.register(ctx); err != nil {
		return err
	}
	for _, name := range []string{"a", "b", "c"} {
		if err := s.fleet.Start(ctx, name, namespace); err != nil {
			return err
		}
		s.line("worker "+name, "starts")
	}
	for _, chapter := range []func(context.Context) error{s.watch, s.trigger, s.end} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	fmt.Println("\npawl schedule: ok")
	return nil
}
