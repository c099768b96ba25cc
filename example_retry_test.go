package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// The waits of the default policy, without their jitter.
func ExampleBackoff_Delay() {
	policy := pawl.DefaultBackoff
	policy.Jitter = pawl.JitterNone
	for n := 1; n <= 7; n++ {
		fmt.Println(policy.Delay(n))
	}
	// Output:
	// 5s
	// 15s
	// 45s
	// 2m15s
	// 6m45s
	// 20m15s
	// 1h0m0s
}

// The last step repeats.
func ExampleBackoff_steps() {
	policy := pawl.Backoff{
		Steps:  []time.Duration{time.Second, time.Minute, time.Hour},
		Jitter: pawl.JitterNone,
	}
	fmt.Println(policy.Delay(1), policy.Delay(2), policy.Delay(3), policy.Delay(100))
	// Output: 1s 1m0s 1h0m0s 1h0m0s
}

// With equal jitter, the default, half of a wait is random; with full jitter
// all of it.
func ExampleJitter() {
	half := pawl.Backoff{Base: time.Minute}.Delay(1)
	full := pawl.Backoff{Base: time.Minute, Jitter: pawl.JitterFull}.Delay(1)
	fmt.Println(30*time.Second <= half && half <= time.Minute)
	fmt.Println(0 <= full && full <= time.Minute)
	// Output:
	// true
	// true
}

// Code sees the error and chooses the wait, or gives up.
func ExampleRetryFunc() {
	wait := pawl.RetryFunc(func(f pawl.Failure) time.Duration {
		if errors.Is(f.Err, errClosed) && f.Attempt >= 2 {
			return -1 // dead
		}
		return time.Millisecond
	})

	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	job := must(m.Queue("payments").Enqueue(ctx, Charge{Order: 7}))
	w := m.worker("payments")
	pawl.Handle(w, func(context.Context, *pawl.Job[Charge]) error { return errClosed }, wait)
	m.run(w, 1)

	dead := must(m.Queue("payments").Dead().Get(ctx, job.ID))
	fmt.Println(dead.Reason, dead.Attempt)
	// Output: permanent 2
}

// A policy given to Enqueue travels with the job and wins over that of the
// handler.
func ExamplePolicy() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	must(m.Queue("payments").Enqueue(ctx, Charge{Order: 0}, pawl.MaxAttempts(20), pawl.Timeout(time.Minute)))
	must(m.Queue("payments").Enqueue(ctx, Charge{Order: 0}))

	w := m.worker("payments")
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[Charge]) error {
		deadline, bounded := ctx.Deadline()
		fmt.Println(job.MaxAttempts, bounded && time.Until(deadline) <= time.Minute)
		return nil
	}, pawl.MaxAttempts(5), pawl.Timeout(pawl.NoTimeout))
	m.run(w, 2)
	// Output:
	// 20 true
	// 5 false
}

// Delay, At, Priority and ExpireIn say when a job may run.
func ExampleOption() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	q := m.Queue("emails")

	must(q.Enqueue(ctx, Welcome{UserID: 1}, pawl.Delay(time.Hour)))
	must(q.Enqueue(ctx, Welcome{UserID: 2}, pawl.At(time.Date(2100, 1, 1, 9, 0, 0, 0, time.UTC))))
	must(q.Enqueue(ctx, Welcome{UserID: 3}, pawl.Priority(9), pawl.ExpireIn(time.Minute)))
	stats := must(q.Stats(ctx))
	fmt.Println(stats.Ready, "ready,", stats.Delayed, "delayed")

	// What makes no sense is refused, with a text that says what to write.
	_, err := q.Enqueue(ctx, Welcome{UserID: 4}, pawl.Priority(10))
	fmt.Println(errors.Is(err, pawl.ErrInvalid))
	fmt.Println(err)
	// Output:
	// 1 ready, 2 delayed
	// true
	// pawl: enqueue emails: invalid: Priority(10): give 1 to 9, or 0 for none
}

// Headers travel outside the payload: by option, or from the caller's context.
func ExampleHeaders() {
	type traceKey struct{}
	m := inMemory()
	defer m.stop()
	client := must(pawl.New(m.rdb, pawl.Config{
		Inject: func(ctx context.Context, h pawl.Headers) {
			if trace, ok := ctx.Value(traceKey{}).(string); ok {
				h["trace"] = trace
			}
		},
	}))
	ctx := context.WithValue(context.Background(), traceKey{}, "4bf92f35")
	q := client.Queue("emails")
	job := must(q.Enqueue(ctx, Welcome{UserID: 42}, pawl.Header{Key: "tenant", Value: "acme"}))
	fmt.Println(must(q.Get(ctx, job.ID)).Headers)
	// Output: map[tenant:acme trace:4bf92f35]
}
