package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/exampleredis"
	"github.com/pawlq/pawl/pawlsql"
)

// assignment is what a worker process is told at its start.
type assignment struct {
	Namespace, Queue, Ledger, API string
	Guarded                       bool
}

// report is a line that a worker process writes to its parent.
type report struct {
	What string
	Job  pawl.ID
}

func tell(r report) { _ = json.NewEncoder(os.Stdout).Encode(r) }

// child is a worker process. It stops when the parent closes its standard input, and
// thus also when the parent is no more.
func child(text string) error {
	var a assignment
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	opts, err := redis.ParseURL(os.Getenv(exampleredis.Env))
	if err != nil {
		return err
	}
	rdb := redis.NewClient(opts)
	defer func() { _ = rdb.Close() }()
	db, err := openLedger(ctx, a.Ledger)
	if ctx.Err() != nil {
		return nil // it was stopped as it began
	}
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	inbox, err := newInbox()
	if err != nil {
		return err
	}
	w, err := newWorker(rdb, a, &cashier{api: newPaymentAPI(a.API), db: db, inbox: inbox})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

func newInbox() (*pawlsql.Inbox, error) {
	return pawlsql.NewInbox(pawlsql.InboxConfig{Dialect: pawlsql.SQLite})
}

func newWorker(rdb *redis.Client, a assignment, c *cashier) (*pawl.Worker, error) {
	client, err := pawl.New(rdb, pawl.Config{Namespace: a.Namespace, Hooks: []pawl.Hook{ends{}}})
	if err != nil {
		return nil, err
	}
	w, err := pawl.NewWorker(client, pawl.WorkerConfig{
		Queues:            pawl.Queues(a.Queue),
		Concurrency:       concurrent,
		VisibilityTimeout: visibility,
		// Quick, to end soon. In production the waits are minutes and hours, so that an API
		// that is down for a night leaves no dead jobs.
		MaxAttempts: 50,
		Backoff:     pawl.Backoff{Base: 20 * time.Millisecond, Max: 200 * time.Millisecond},
		// The default of 3 is against jobs that kill their workers. Here something else
		// does, all the time. A job that was buried for its crashes may have charged: so
		// redrive it, which keeps its key, and do not charge by hand.
		MaxCrashes: 255,
	})
	if err != nil {
		return nil, err
	}
	handler := c.charge
	if !a.Guarded {
		handler = c.unguarded
	}
	pawl.Handle(w, handler)
	return w, nil
}

// ends is a pawl.Hook: it tells the parent of runs that have ended, once Redis knows.
type ends struct{}

var (
	_ pawl.OnDone  = ends{}
	_ pawl.OnRetry = ends{}
)

func (ends) Done(_ context.Context, e pawl.Event)       { tell(report{What: "ended", Job: e.Job.ID}) }
func (ends) Retry(_ context.Context, e pawl.RetryEvent) { tell(report{What: "ended", Job: e.Job.ID}) }
