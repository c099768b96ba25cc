// Quickstart is a morning in a shop that does its slow work with pawl: a mail,
// a payment whose gateway is down for a moment, a double click, and a bug.
//
//	go run ./examples/quickstart
//
// It needs nothing but Go. With REDIS_URL set it uses that Redis instead of one
// of its own, in a namespace that it removes at the end.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/exampleredis"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pawl quickstart:", err)
		os.Exit(1)
	}
	fmt.Println("pawl quickstart: ok")
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
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
	s := &shop{client: client, queue: client.Queue("shop"), journal: journal, gateway: &gateway{charges: map[string]int{}}}
	for _, chapter := range []func(context.Context) error{s.sell, s.work, s.repair, s.count} {
		fmt.Println()
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	fmt.Println()
	return nil
}

// shop is the program: in production its producer and its workers would be
// different processes that share nothing but a Redis.
type shop struct {
	client  *pawl.Client
	queue   *pawl.Queue
	journal *journal
	gateway *gateway
}

// sell enqueues. No worker runs yet, and none is needed: the jobs wait in Redis.
func (s *shop) sell(ctx context.Context) error {
	fmt.Println("Two orders come in, and one customer clicks twice.")
	if _, err := s.enqueue(ctx, SendReceipt{Order: 1001, To: "ada@example.com"}); err != nil {
		return err
	}
	first, err := s.enqueue(ctx, ChargeCard{Order: 1001, Cents: 4990})
	if err != nil {
		return err
	}
	second, err := s.enqueue(ctx, ChargeCard{Order: 1001, Cents: 4990})
	if err != nil {
		return err
	}
	if !second.Duplicate || second.ID != first.ID {
		return fmt.Errorf("the second click made a job of its own: %+v after %+v", second, first)
	}
	_, err = s.enqueue(ctx, RenderInvoice{Order: 1002})
	return err
}

func (s *shop) enqueue(ctx context.Context, args pawl.Args) (pawl.Enqueued, error) {
	job, err := s.queue.Enqueue(ctx, args)
	if err != nil {
		return job, err
	}
	note := ""
	if job.Duplicate {
		note = " is there already: no second job"
	}
	s.journal.line("enqueue", "%-14s  job %s%s", args.Kind(), short(job.ID.String()), note)
	return job, nil
}

// work runs the first release of the worker until all jobs have ended.
func (s *shop) work(ctx context.Context) error {
	fmt.Println("A worker starts. The gateway is down for a moment, and invoices have a bug.")
	return s.withWorker(ctx, "shop-v1", renderInvoice1, func() error {
		return s.journal.await(ctx, 3)
	})
}

// repair looks at what died, deploys the fix, and sends the dead job back.
func (s *shop) repair(ctx context.Context) error {
	fmt.Println("The dead job left a post-mortem:")
	dead, err := s.onlyDead(ctx)
	if err != nil {
		return err
	}
	printPostMortem(dead)

	fmt.Println("\nThe bug is fixed, the fix deployed, and the job sent back.")
	return s.withWorker(ctx, "shop-v2", renderInvoice2, func() error {
		report, err := s.queue.Dead().Redrive(ctx, dead.ID)
		if err != nil {
			return err
		}
		s.journal.line("redrive", "%-14s  %d of %d", dead.Kind, report.Moved, report.Matched)
		return s.journal.await(ctx, 1)
	})
}

// withWorker runs a worker beside do. When do returns the worker is told to
// stop; jobs it is running may finish, and then it has stopped.
func (s *shop) withWorker(ctx context.Context, name string, renderInvoice func(context.Context, *pawl.Job[RenderInvoice]) error, do func() error) error {
	w, err := pawl.NewWorker(s.client, pawl.WorkerConfig{Queues: pawl.Queues("shop"), Name: name})
	if err != nil {
		return err
	}
	pawl.Handle(w, sendReceipt)
	pawl.Handle(w, s.gateway.chargeCard)
	pawl.Handle(w, renderInvoice)

	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	s.journal.line("worker", "%s starts", name)
	go func() { ended <- w.Run(ctx) }()
	err = do()
	stop()
	err = errors.Join(err, <-ended)
	s.journal.line("worker", "%s has stopped", name)
	return err
}
