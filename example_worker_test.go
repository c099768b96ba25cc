package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/pawlq/pawl"
)

// Graceful shutdown: a signal ends the context, running jobs may finish, and Run
// returns.
func ExampleWorker_Run() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	m := inMemory()
	defer m.stop()
	must(m.Queue("emails").Enqueue(ctx, Welcome{UserID: 42}))

	w := must(pawl.NewWorker(m.Client, pawl.WorkerConfig{
		Queues:       pawl.Queues("emails"),
		DrainTimeout: 10 * time.Second, // less than the grace of what sends the signal
	}))
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[Welcome]) error {
		stop() // as a signal would, in the middle of a job
		fmt.Println("finishing; the handler's context is untouched:", ctx.Err() == nil)
		return nil
	})
	fmt.Println(w.Run(ctx))
	// Output:
	// finishing; the handler's context is untouched: true
	// <nil>
}

// A job that is still running after DrainTimeout has its context ended. It goes
// back with no attempt spent, and Run says which jobs those are.
func ExampleDrainError() {
	m := inMemory()
	defer m.stop()
	ctx, stop := context.WithCancel(context.Background())
	must(m.Queue("emails").Enqueue(ctx, Welcome{UserID: 42}))

	w := must(pawl.NewWorker(m.Client, pawl.WorkerConfig{
		Queues:       pawl.Queues("emails"),
		DrainTimeout: time.Millisecond,
	}))
	pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[Welcome]) error {
		stop()
		<-ctx.Done() // long work that heeds its context
		fmt.Println(errors.Is(context.Cause(ctx), pawl.ErrShutdown))
		return ctx.Err()
	})
	err := w.Run(ctx)
	if late, ok := errors.AsType[*pawl.DrainError](err); ok {
		fmt.Println(len(late.Released), "released,", len(late.Stuck), "stuck")
	}
	// Output:
	// true
	// 1 released, 0 stuck
}

// Queues by weight: beside busy queues, payments gets three slots of four. One
// slot is kept for it even while the other queue is full.
func ExampleWorkerQueue() {
	m := inMemory()
	defer m.stop()
	_, err := pawl.NewWorker(m.Client, pawl.WorkerConfig{
		Concurrency: 20,
		Queues: []pawl.WorkerQueue{
			{Name: "payments", Weight: 3, Reserve: 1},
			{Name: "reports", Weight: 1, Max: 5},
		},
	})
	fmt.Println(err)
	// Output: <nil>
}

// Weights is short for queues of which only the weights matter.
func ExampleWeights() {
	m := inMemory()
	defer m.stop()
	_, err := pawl.NewWorker(m.Client, pawl.WorkerConfig{
		Queues: pawl.Weights(map[string]int{"payments": 3, "reports": 1}),
	})
	fmt.Println(err)
	// Output: <nil>
}

// All that is wrong with a configuration is in one error.
func ExampleNewWorker() {
	m := inMemory()
	defer m.stop()
	_, err := pawl.NewWorker(m.Client, pawl.WorkerConfig{Concurrency: 20_000, Queues: pawl.Queues("emails", "emails")})
	fmt.Println(errors.Is(err, pawl.ErrInvalid))
	fmt.Println(err)
	// Output:
	// true
	// pawl: invalid: WorkerConfig.Concurrency is 20000: give 1 to 10000
	// pawl: invalid: WorkerConfig.Queues: "emails" is named twice
}

// For a readiness probe.
func ExampleWorker_Healthy() {
	m := inMemory()
	defer m.stop()
	w := m.worker("emails")
	fmt.Println(w.Healthy())

	ctx, stop := context.WithCancel(context.Background())
	pawl.Handle(w, func(context.Context, *pawl.Job[Welcome]) error {
		fmt.Println(w.Healthy())
		stop()
		return nil
	})
	must(m.Queue("emails").Enqueue(ctx, Welcome{UserID: 42}))
	mustNil(w.Run(ctx))
	// Output:
	// pawl: worker was not started
	// <nil>
}

// Counters of a lifetime, and how it stands now.
func ExampleQueue_Stats() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	leaveDead(m, "payments", 2)
	must(m.Queue("payments").Enqueue(ctx, Charge{Order: 7}, pawl.Delay(time.Hour)))

	stats := must(m.Queue("payments").Stats(ctx))
	fmt.Println(stats.Ready, stats.Delayed, stats.Running, stats.Dead)
	fmt.Println(stats.Total.Enqueued, stats.Total.Failed, stats.Depth())
	// Output:
	// 0 1 0 2
	// 3 2 1
}

// The state of one job.
func ExampleQueue_Get() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	q := m.Queue("emails")

	job := must(q.Enqueue(ctx, Welcome{UserID: 42}, pawl.Delay(time.Hour)))
	info := must(q.Get(ctx, job.ID))
	fmt.Println(info.State, info.DueAt.Sub(info.EnqueuedAt).Round(time.Second))

	_, err := q.Get(ctx, pawl.ID{})
	fmt.Println(errors.Is(err, pawl.ErrNotFound))
	// Output:
	// delayed 1h0m0s
	// true
}
