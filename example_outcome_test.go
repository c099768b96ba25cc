package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

type Charge struct{ Order int }

func (Charge) Kind() string { return "charge" }

// What a payment gateway may say.
var (
	errDeclined = errors.New("card declined")
	errClosed   = errors.New("closed for maintenance")
	errPaid     = errors.New("paid already")
)

type busyError struct{ After time.Duration }

func (e *busyError) Error() string { return "too many requests" }

// region outcomes

func charge(ctx context.Context, job *pawl.Job[Charge]) error {
	err := pay(ctx, job.Args.Order, job.IdempotencyKey())
	if busy, ok := errors.AsType[*busyError](err); ok {
		return pawl.RetryAfter(busy.After, err) // instead of what the policy says
	}
	switch {
	case errors.Is(err, errDeclined):
		return pawl.Permanent(err) // dead now, with its post-mortem
	case errors.Is(err, errClosed):
		return pawl.Snooze(time.Hour) // not its turn yet: no attempt is spent
	case errors.Is(err, errPaid):
		return pawl.Discard(err) // gone, and counted
	}
	return err // nil: done. Another error, or a panic: tried again by policy
}

// endregion

// pay answers by the number of the order.
func pay(_ context.Context, order int, _ string) error {
	return []error{nil, errDeclined, errClosed, errPaid, &busyError{30 * time.Second}, errors.New("timeout")}[order]
}

// An error that no retry will cure ends the job at once.
func ExamplePermanent() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	job := must(m.Queue("payments").Enqueue(ctx, Charge{Order: 7}))

	w := m.worker("payments")
	pawl.Handle(w, func(context.Context, *pawl.Job[Charge]) error {
		return pawl.Permanent(errDeclined)
	})
	m.run(w, 1)

	dead := must(m.Queue("payments").Dead().Get(ctx, job.ID))
	fmt.Println(dead.Reason, dead.Attempt, dead.Error)
	// Output: permanent 1 card declined
}

// The attempt counts, as after any other failure.
func ExampleRetryAfter() {
	m := inMemory()
	defer m.stop()
	must(m.Queue("payments").Enqueue(context.Background(), Charge{Order: 7}))

	w := m.worker("payments")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
		fmt.Println("attempt", job.Attempt)
		if job.Attempt == 1 {
			return pawl.RetryAfter(time.Millisecond, &busyError{})
		}
		return nil
	})
	m.run(w, 1)
	// Output:
	// attempt 1
	// attempt 2
}

// A snooze spends no attempt.
func ExampleSnooze() {
	m := inMemory()
	defer m.stop()
	must(m.Queue("payments").Enqueue(context.Background(), Charge{Order: 7}))

	w := m.worker("payments")
	open := false
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
		fmt.Println("attempt", job.Attempt)
		if !open {
			open = true
			return pawl.Snooze(time.Millisecond)
		}
		return nil
	})
	m.run(w, 1)
	// Output:
	// attempt 1
	// attempt 1
}

// What is discarded is counted and leaves no post-mortem.
func ExampleDiscard() {
	m := inMemory()
	defer m.stop()
	must(m.Queue("payments").Enqueue(context.Background(), Charge{Order: 7}))

	w := m.worker("payments")
	pawl.Handle(w, func(context.Context, *pawl.Job[Charge]) error {
		return pawl.Discard(errPaid)
	})
	m.run(w, 1)

	stats := must(m.Queue("payments").Stats(context.Background()))
	fmt.Println(stats.Total.Discarded, stats.Total.Done, stats.Dead)
	// Output: 1 0 0
}

// printer is a hook: it has one or more of the On… methods.
type printer struct{}

func (printer) Retry(_ context.Context, e pawl.RetryEvent) {
	fmt.Printf("%s failed: %v; again in %v\n", e.Job.Kind, e.Err, e.Delay)
}

func (printer) Dead(_ context.Context, e pawl.DeadEvent) {
	fmt.Printf("%s is dead, %s: %v\n", e.Job.Kind, e.Reason, e.Err)
}

func ExampleHook() {
	m := inMemory()
	defer m.stop()
	client := must(pawl.New(m.rdb, pawl.Config{Hooks: []pawl.Hook{m, printer{}}}))
	must(client.Queue("payments").Enqueue(context.Background(), Charge{Order: 5}))

	w := must(pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("payments")}))
	pawl.Handle(w, charge, pawl.MaxAttempts(2), pawl.Backoff{Base: time.Millisecond, Jitter: pawl.JitterNone})
	m.run(w, 1)
	// Output:
	// charge failed: timeout; again in 1ms
	// charge is dead, exhausted: timeout
}

func ExampleIsPermanent() {
	err := fmt.Errorf("order 7: %w", pawl.Permanent(errDeclined))
	fmt.Println(err)
	fmt.Println(pawl.IsPermanent(err), errors.Is(err, errDeclined))
	fmt.Println(pawl.IsPermanent(errDeclined))
	// Output:
	// order 7: card declined
	// true true
	// false
}

// A panic is an error, retried like others. What was panicked with is kept.
func ExamplePanicError() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	job := must(m.Queue("payments").Enqueue(ctx, Charge{99}, pawl.MaxAttempts(1)))
	w := m.worker("payments")
	pawl.Handle(w, charge)
	m.run(w, 1)

	dead := must(m.Queue("payments").Dead().Get(ctx, job.ID))
	fmt.Println(dead.Error)
	fmt.Println(dead.Stack != "")
	// Output:
	// panic: runtime error: index out of range [99] with length 6
	// true
}
