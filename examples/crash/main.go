// Crash kills a worker in the middle of a job and shows that another finishes
// it: how long that takes, and that the job has lost no attempt by it.
//
//	go run ./examples/crash
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
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/exampleredis"
)

// visibility is how long a worker that says nothing keeps its job: 2 s, to end
// soon. The default is 30 s.
const visibility = 2 * time.Second

// recovery is what pawl promises when another worker has a free slot.
const recovery = visibility + 2*time.Second

func main() {
	run := parent
	if len(os.Args) == 3 && os.Args[1] == "worker" {
		run = func() error { return child(os.Args[2]) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pawl crash:", err)
		os.Exit(1)
	}
}

func parent() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
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
	f := &fleet{start: time.Now(), reports: make(chan report)}
	defer f.killAll()
	for _, name := range []string{"a", "b"} {
		if err := f.launch(ctx, name, exampleredis.URL(rdb), namespace); err != nil {
			return err
		}
	}
	if err := story(ctx, client.Queue(queue), f); err != nil {
		return err
	}
	fmt.Println("\npawl crash: ok")
	return nil
}

// story enqueues a job, kills the worker that runs it, and waits for the other.
func story(ctx context.Context, q *pawl.Queue, f *fleet) error {
	if err := errors.Join(f.await(ctx, "ready", nil), f.await(ctx, "ready", nil)); err != nil {
		return err
	}
	job, err := q.Enqueue(ctx, Export{Table: "orders"})
	if err != nil {
		return err
	}
	f.line("parent", "enqueues job %s", job.ID)

	var first, second report
	if err := f.await(ctx, "step 2", &first); err != nil {
		return err
	}
	killedAt := time.Now()
	if err := f.kill(first.Worker); err != nil {
		return err
	}
	f.line("parent", "kills worker %s (SIGKILL) in the middle of the job", first.Worker)
	info, err := q.Get(ctx, job.ID)
	if err != nil {
		return err
	}
	f.line("parent", "sees the job as %s: its lease has not run out", info.State)

	if err := f.await(ctx, "starts", &second); err != nil {
		return err
	}
	took := time.Since(killedAt)
	if err := f.await(ctx, "done", nil); err != nil {
		return err
	}
	if err := f.stop(second.Worker); err != nil {
		return err
	}
	fmt.Printf("\nrun again %.2f s after the kill, with a visibility timeout of %v\n", took.Seconds(), visibility)
	fmt.Printf("attempt %d before the kill and attempt %d after it: no attempt was spent; crashes %d\n",
		first.Attempt, second.Attempt, second.Crashes)
	return verify(ctx, q, took, first, second)
}

// verify checks that it all went as it is told.
func verify(ctx context.Context, q *pawl.Queue, took time.Duration, first, second report) error {
	var wrong []error
	if first.Worker == second.Worker || first.Attempt != 1 || second.Attempt != 1 || second.Crashes != 1 {
		wrong = append(wrong, fmt.Errorf("the runs were %+v and %+v", first, second))
	}
	if took > recovery {
		wrong = append(wrong, fmt.Errorf("recovery took %v, more than %v", took, recovery))
	}
	stats, err := q.Stats(ctx)
	wrong = append(wrong, err)
	// Started and Released are not looked at: on a busy machine a worker may be
	// leased the job too late to begin with it, and gives it back.
	n := stats.Total
	if err == nil && (n.Enqueued != 1 || n.Done != 1 || n.Crashed != 1 || n.Failed != 0 || stats.Running != 0 || stats.Dead != 0) {
		wrong = append(wrong, fmt.Errorf("the queue says %+v", stats))
	}
	violations, err := q.Check(ctx)
	wrong = append(wrong, err)
	for _, v := range violations {
		wrong = append(wrong, fmt.Errorf("check: %s", v))
	}
	return errors.Join(wrong...)
}
