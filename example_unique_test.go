package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// At most one job lives under a key. The second enqueue is no error: it is
// answered with the id of the first.
func ExampleUnique() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	payments := m.Queue("payments")
	once := pawl.Unique{Key: pawl.Key("order", 7), For: time.Hour}

	first := must(payments.Enqueue(ctx, Charge{Order: 7}, once))
	second := must(payments.Enqueue(ctx, Charge{Order: 7}, once))
	fmt.Println(first.Duplicate, second.Duplicate, first.ID == second.ID)
	// Output: false true true
}

// With RejectDuplicate the second enqueue is an error.
func ExampleOnDuplicate() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	payments := m.Queue("payments")
	once := pawl.Unique{Key: pawl.Key("order", 7), OnDuplicate: pawl.RejectDuplicate}

	must(payments.Enqueue(ctx, Charge{Order: 7}, once))
	_, err := payments.Enqueue(ctx, Charge{Order: 7}, once)
	fmt.Println(errors.Is(err, pawl.ErrDuplicate))
	// Output: true
}

// Debounce: each enqueue within ten seconds puts the one job off, and it runs with the
// last arguments.
func ExampleOnDuplicate_debounce() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	q := m.Queue("index")
	quiet := pawl.Unique{Key: "reindex", OnDuplicate: pawl.ReplaceWaiting}

	first := must(q.Enqueue(ctx, Receipt.Args("one product"), quiet, pawl.Delay(10*time.Second)))
	second := must(q.Enqueue(ctx, Receipt.Args("all products"), quiet, pawl.Delay(10*time.Second)))
	fmt.Println(second.Replaced, first.ID == second.ID)
	fmt.Println(string(must(q.Get(ctx, first.ID)).Payload))
	// Output:
	// true true
	// "all products"
}

// One runs, and of those that come meanwhile the newest runs after it.
func ExampleOnDuplicate_latest() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	q := m.Queue("sync")
	latest := pawl.Unique{Key: pawl.Key("user", 42), OnDuplicate: pawl.RunLatestAfter}

	must(q.Enqueue(ctx, Receipt.Args("version 1"), latest))
	w := m.worker("sync")
	Receipt.Handle(w, func(ctx context.Context, job *pawl.Job[string]) error {
		fmt.Println("run:", job.Args)
		if job.Args == "version 1" {
			second := must(q.Enqueue(ctx, Receipt.Args("version 2"), latest))
			fmt.Println("added:", !second.Duplicate, must(q.Get(ctx, second.ID)).State)
			third := must(q.Enqueue(ctx, Receipt.Args("version 3"), latest))
			fmt.Println("replaced:", third.Replaced, third.ID == second.ID)
		}
		return nil
	})
	m.run(w, 2)
	// Output:
	// run: version 1
	// added: true parked
	// replaced: true true
	// run: version 3
}

// Until the job has started: changes that come while it runs are not missed, for
// a second job waits behind the running one.
func ExampleUniqueUntil() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	q := m.Queue("index")
	reindex := pawl.Unique{Key: "reindex", Until: pawl.UntilStarted}

	must(q.Enqueue(ctx, Receipt.Args("products"), reindex))
	w := m.worker("index")
	runs := 0
	Receipt.Handle(w, func(ctx context.Context, job *pawl.Job[string]) error {
		if runs++; runs == 1 {
			again := must(job.Client().Queue(job.Queue).Enqueue(ctx, Receipt.Args("products"), reindex))
			fmt.Println("a duplicate of the running job:", again.Duplicate)
		}
		return nil
	})
	m.run(w, 2)
	fmt.Println(runs, "runs")
	// Output:
	// a duplicate of the running job: false
	// 2 runs
}

// A key is unambiguous, whatever its parts hold.
func ExampleKey() {
	fmt.Println(pawl.Key("order", 42))
	fmt.Println(pawl.Key("a:b", "c"), pawl.Key("a", "b:c"))
	// Output:
	// order:42
	// a\:b:c a:b\:c
}

// The same key in every run of a job, also after a redrive. Give it to a system
// that refuses to do a thing twice.
func ExampleRawJob_IdempotencyKey() {
	m := inMemory()
	defer m.stop()
	must(m.Queue("payments").Enqueue(context.Background(), Charge{Order: 7}))

	var keys []string
	w := m.worker("payments")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
		keys = append(keys, job.IdempotencyKey())
		if job.Attempt == 1 {
			return errClosed
		}
		return nil
	}, pawl.Backoff{Base: time.Millisecond})
	m.run(w, 1)
	fmt.Println(len(keys), keys[0] == keys[1])
	// Output: 2 true
}

// Run rises with every lease. A system that keeps the highest it has seen and
// refuses lower ones cannot be changed by a worker that lost its lease.
func ExampleRawJob() {
	m := inMemory()
	defer m.stop()
	must(m.Queue("payments").Enqueue(context.Background(), Charge{Order: 7}))

	var highest int64
	w := m.worker("payments")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
		fmt.Println("attempt", job.Attempt, "accepted:", job.Run > highest)
		highest = max(highest, job.Run)
		if !job.LastAttempt() {
			return errClosed
		}
		return nil
	}, pawl.MaxAttempts(2), pawl.Backoff{Base: time.Millisecond})
	m.run(w, 1)
	// Output:
	// attempt 1 accepted: true
	// attempt 2 accepted: true
}
