package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// Counted from the enqueue, by the server's clock.
func ExampleDelay() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	job := must(m.Queue("emails").Enqueue(ctx, Welcome{UserID: 42}, pawl.Delay(time.Hour)))

	info := must(m.Queue("emails").Get(ctx, job.ID))
	fmt.Println(info.State, info.DueAt.Sub(info.EnqueuedAt).Round(time.Second))
	// Output: delayed 1h0m0s
}

// A time in any zone; one that is past is now.
func ExampleAt() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	newYear := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{newYear, newYear.AddDate(-200, 0, 0)} {
		job := must(m.Queue("emails").Enqueue(ctx, Welcome{UserID: 42}, pawl.At(at)))
		info := must(m.Queue("emails").Get(ctx, job.ID))
		fmt.Println(info.State, info.DueAt.Equal(at))
	}
	// Output:
	// delayed true
	// ready false
}

// The highest first, among the jobs that have one.
func ExamplePriority() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	for _, p := range []pawl.Priority{1, 9, 5} {
		must(m.Queue("payments").Enqueue(ctx, Charge{Order: int(p)}, p))
	}

	w := m.worker("payments")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
		fmt.Println(job.Args.Order)
		return nil
	})
	m.run(w, 3)
	// Output:
	// 9
	// 5
	// 1
}

// News that is old is no news. What has expired is not run: it dies.
func ExampleExpireIn() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	job := must(m.Queue("push").Enqueue(ctx, Welcome{UserID: 42}, pawl.ExpireIn(time.Millisecond)))
	<-time.After(10 * time.Millisecond) // no worker was there

	w := m.worker("push")
	pawl.Handle(w, func(context.Context, *pawl.Job[Welcome]) error { return nil })
	m.run(w, 1)
	dead := must(m.Queue("push").Dead().Get(ctx, job.ID))
	fmt.Println(dead.Reason, len(dead.Errors), "failures")
	// Output: expired 0 failures
}

// Headers are for middleware: the handler's arguments stay as they are.
func ExampleHeader() {
	m := inMemory()
	defer m.stop()
	must(m.Queue("emails").Enqueue(context.Background(), Welcome{UserID: 42}, pawl.Header{Key: "tenant", Value: "acme"}))

	forTenant := func(next pawl.Handler) pawl.Handler {
		return func(ctx context.Context, job *pawl.RawJob) error {
			fmt.Println("for", job.Headers["tenant"])
			return next(ctx, job)
		}
	}
	w := must(pawl.NewWorker(m.Client, pawl.WorkerConfig{
		Queues:     pawl.Queues("emails"),
		Middleware: []pawl.Middleware{forTenant},
	}))
	pawl.Handle(w, sendWelcome)
	m.run(w, 1)
	// Output:
	// for acme
	// welcome, user 42
}

// The first run counts: two attempts are one retry.
func ExampleMaxAttempts() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	job := must(m.Queue("payments").Enqueue(ctx, Charge{Order: 7}, pawl.MaxAttempts(2)))

	w := m.worker("payments")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
		return fmt.Errorf("failure %d of %d", job.Attempt, job.MaxAttempts)
	}, pawl.Backoff{Base: time.Millisecond})
	m.run(w, 1)
	dead := must(m.Queue("payments").Dead().Get(ctx, job.ID))
	fmt.Println(dead.Reason, dead.Error)
	// Output: exhausted failure 2 of 2
}

// A run that takes too long has its context ended, with the cause ErrTimeout.
func ExampleTimeout() {
	m := inMemory()
	defer m.stop()
	must(m.Queue("images").Enqueue(context.Background(), Thumbnail{Image: "cat.png"}, pawl.MaxAttempts(1)))

	w := m.worker("images")
	pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[Thumbnail]) error {
		<-ctx.Done() // long work that heeds its context
		fmt.Println(context.Cause(ctx))
		return context.Cause(ctx)
	}, pawl.Timeout(time.Millisecond))
	m.run(w, 1)
	// Output: pawl: timeout
}

// At most once: a job that must rather not run than run twice. A failure ends
// it, and so does the crash of its worker.
func ExampleMaxCrashes() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	atMostOnce := []pawl.HandleOption{pawl.MaxAttempts(1), pawl.MaxCrashes(1)}
	job := must(m.Queue("payments").Enqueue(ctx, Charge{Order: 7}))

	w := m.worker("payments")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
		return errors.New("no answer: charged, or not?")
	}, atMostOnce...)
	m.run(w, 1)
	dead := must(m.Queue("payments").Dead().Get(ctx, job.ID))
	fmt.Println(dead.Reason, dead.Attempt, "run:", dead.Error)
	// Output: exhausted 1 run: no answer: charged, or not?
}

// A job that must be taken over soon after a crash. The lease is renewed while
// it runs, however long that is.
func ExampleVisibilityTimeout() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	emails := m.Queue("emails")
	must(emails.Enqueue(ctx, Welcome{UserID: 42}, pawl.VisibilityTimeout(5*time.Second)))

	w := m.worker("emails")
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[Welcome]) error {
		info, err := emails.Get(ctx, job.ID)
		if err == nil {
			left := time.Until(info.LeaseUntil)
			fmt.Println(info.State, left > 0, left < 10*time.Second) // not the default of 30 s
		}
		return err
	})
	m.run(w, 1)
	// Output: running true true
}

// Each wait is three times the one before by default; a constant one has a
// Factor of 1.
func ExampleBackoff() {
	constant := pawl.Backoff{Base: time.Minute, Factor: 1, Jitter: pawl.JitterNone}
	doubling := pawl.Backoff{Base: time.Second, Factor: 2, Max: 5 * time.Second, Jitter: pawl.JitterNone}
	for n := 1; n <= 4; n++ {
		fmt.Println(constant.Delay(n), doubling.Delay(n))
	}
	// Output:
	// 1m0s 1s
	// 1m0s 2s
	// 1m0s 4s
	// 1m0s 5s
}

// One error decides by how often it came.
func ExampleFailure() {
	slower := pawl.RetryFunc(func(f pawl.Failure) time.Duration {
		if busy, ok := errors.AsType[*busyError](f.Err); ok {
			return busy.After
		}
		return time.Duration(f.Attempt*f.Attempt) * time.Minute
	})
	fmt.Println(slower(pawl.Failure{Attempt: 3, Err: errClosed}))
	fmt.Println(slower(pawl.Failure{Attempt: 3, Err: &busyError{time.Second}}))
	// Output:
	// 9m0s
	// 1s
}
