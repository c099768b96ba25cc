// Payments charges every order of a shop once, though the shop sends orders again, the
// payment API fails and loses answers, and the worker processes are killed at random
// with SIGKILL. Then it does the same without the guards, and prints side by side what
// became of the money.
//
//	go run ./examples/payments
//	go run ./examples/payments -for 60s
//
// It needs nothing but Go, and takes about 11 s. With REDIS_URL set it uses that Redis
// instead of one of its own, in a namespace that it removes at the end. It ends with
// status 1 if, with the guards, an order was charged or booked twice, or not at all.
//
// To read first: shop.go is the door, handler.go the job. Each guard has its comment
// there. Take one out, and run it again: it tells what breaks. Without Unique nothing
// does, since the others stand behind it; it spares them work.
//
// None of them is for a Redis that forgets jobs (docs/guarantees.md, Durability): what
// is lost with them is found by comparing the orders with the ledger, and placed again
// under the same key, which the API had better still know.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/exampleredis"
)

const (
	// visibility is how long a worker that says nothing keeps its jobs: 500 ms, to end
	// soon. The default is 30 s.
	visibility = 500 * time.Millisecond
	processes  = 3
	concurrent = 6 // jobs at once in each of them
	patience   = 45 * time.Second
)

func main() {
	run := parent
	if len(os.Args) == 3 && os.Args[1] == "worker" {
		run = func() error { return child(os.Args[2]) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pawl payments:", err)
		os.Exit(1)
	}
}

func parent() error {
	length := flag.Duration("for", 4*time.Second, "how long orders come in and workers are killed, with the guards and again without")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	rdb, namespace, cleanup, err := exampleredis.Open(ctx)
	if err != nil {
		return err
	}
	defer cleanup()
	tmp, err := os.MkdirTemp("", "pawl-payments-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()

	fmt.Printf("\nFor %v orders come in, some of them more than once. %d worker processes charge them; every\n"+
		"quarter of a second or so one is killed (SIGKILL) and another started. First with the guards:\n", *length, processes)
	guarded, err := play(ctx, rdb, namespace, tmp, true, *length)
	if err != nil {
		return err
	}
	fmt.Println("\nThe same without Unique, without Idempotency, without a key for the API, without an inbox:")
	bare, err := play(ctx, rdb, namespace, tmp, false, *length)
	if err != nil {
		return err
	}
	printTallies(guarded, bare)
	if err := guarded.wrong(); err != nil {
		return fmt.Errorf("with the guards every order was to be charged and booked once:\n%w", err)
	}
	// pawl runs a job at least once, whatever its handler does.
	if n := bare.charges.never + bare.entries.never; n > 0 {
		return fmt.Errorf("without the guards too, no order was to be lost, and %d were", n)
	}
	fmt.Println("\npawl payments: ok")
	return nil
}

// play runs shop, payment API, workers and kills for so long, waits until all jobs
// have ended, and counts.
func play(ctx context.Context, rdb *redis.Client, namespace, tmp string, guarded bool, length time.Duration) (t tally, err error) {
	ctx, cancel := context.WithTimeout(ctx, length+patience)
	defer cancel()
	client, err := pawl.New(rdb, pawl.Config{Namespace: namespace})
	if err != nil {
		return t, err
	}
	name := map[bool]string{true: "guarded", false: "unguarded"}[guarded]
	books, err := openLedger(ctx, filepath.Join(tmp, name+".db"))
	if err != nil {
		return t, err
	}
	defer func() { _ = books.Close() }()
	if err := createLedger(ctx, books); err != nil {
		return t, err
	}
	api, err := openGateway()
	if err != nil {
		return t, err
	}
	defer api.close()

	r := &round{queue: client.Queue(name), books: books, api: api, start: time.Now(),
		shop: &shop{guarded: guarded, queue: client.Queue(name), sent: map[int]int{}},
		fleet: &fleet{redis: exampleredis.URL(rdb), job: assignment{
			Namespace: namespace, Queue: name, Ledger: filepath.Join(tmp, name+".db"), API: api.url(), Guarded: guarded}}}
	if err := r.run(ctx, length); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("stopped before the end: %w", errors.Join(context.Cause(ctx), err))
		}
		return t, err
	}
	return r.count(ctx)
}
