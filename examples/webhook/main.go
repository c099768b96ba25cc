// Webhook delivers events to the endpoints of customers over HTTP: one is well,
// one is busy, one is gone, one fails, one loses its answer, and one is down for
// a while.
//
//	go run ./examples/webhook
//
// It needs nothing but Go, and takes about 5 s. With REDIS_URL set it uses that
// Redis instead of one of its own, in a namespace that it removes at the end.
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
	"github.com/pawlq/pawl/internal/exampleredis"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pawl webhook:", err)
		os.Exit(1)
	}
	fmt.Println("pawl webhook: ok")
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	rdb, namespace, cleanup, err := exampleredis.Open(ctx)
	if err != nil {
		return err
	}
	defer cleanup()

	journal := newJournal()
	client, err := pawl.New(rdb, pawl.Config{Namespace: namespace, Hooks: []pawl.Hook{journal}})
	if err != nil {
		return err
	}
	customers, err := openCustomers(ctx, journal)
	defer customers.close()
	if err != nil {
		return err
	}
	s := &story{queue: client.Queue("webhooks"), journal: journal, customers: customers}
	if err := s.publishTwice(ctx); err != nil {
		return err
	}
	err = withWorker(ctx, client, newSender(customers.endpoints()), func() error {
		if err := s.answers(ctx); err != nil {
			return err
		}
		return s.outage(ctx)
	})
	if err != nil {
		return err
	}
	return s.count(ctx)
}

// withWorker runs a worker beside do. When do returns, as it does too when the
// program is told to stop, deliveries that were begun may finish.
func withWorker(ctx context.Context, client *pawl.Client, s *sender, do func() error) error {
	w, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("webhooks"), Name: "webhooks-1"})
	if err != nil {
		return err
	}
	pawl.Handle(w, s.deliver)

	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	err = do()
	stop()
	return errors.Join(err, <-ended)
}
