package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// The trap of docs/idempotency.md: a job that is marked before its work, and never
// worked on.
func Example_setNXThenWork() {
	m := inMemory()
	defer m.stop()
	ctx, payments, w := context.Background(), m.Queue("payments"), m.worker("payments")
	charged := 0
	charge := func(attempt int) error {
		if attempt == 1 {
			return errors.New("the gateway is busy")
		}
		charged++
		return nil
	}

	// region SET NX, then work
	// Do not do this.
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[Charge]) error {
		key := fmt.Sprint("charged:", job.Args.Order)
		first, err := m.rdb.SetNX(ctx, key, "1", 24*time.Hour).Result()
		if err != nil {
			return err
		}
		if !first {
			return nil // it was done before, was it not?
		}
		return charge(job.Attempt) // fails, and is tried again
	})
	// endregion
	must(payments.Enqueue(ctx, Charge{Order: 7}, pawl.Backoff{Base: time.Millisecond}))
	m.run(w, 1)

	stats := must(payments.Stats(ctx))
	fmt.Println("done:", stats.Total.Done, "charged:", charged)
	// Output: done: 1 charged: 0
}

// The same with Idempotency: what fails gives the key up.
func Example_idempotencyInstead() {
	m := inMemory()
	defer m.stop()
	ctx, payments, w := context.Background(), m.Queue("payments"), m.worker("payments")
	charged := 0
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
		if job.Attempt == 1 {
			return errors.New("the gateway is busy")
		}
		charged++
		return nil
	})
	for range 2 { // a broker that delivers an event twice
		// region Idempotency
		_, err := payments.Enqueue(ctx, Charge{Order: 7},
			pawl.Idempotency{Key: pawl.Key("charge", 7), Window: 24 * time.Hour},
			pawl.Backoff{Base: time.Millisecond})
		// endregion
		mustNil(err)
	}
	m.run(w, 2)

	stats := must(payments.Stats(ctx))
	fmt.Println("done:", stats.Total.Done, "skipped:", stats.Total.Skipped, "charged:", charged)
	// Output: done: 2 skipped: 1 charged: 1
}

// An enqueue that may be repeated: by a user who clicks twice, or by the program,
// whose first call had no answer.
func Example_uniqueAtTheDoor() {
	m := inMemory()
	defer m.stop()
	ctx, payments := context.Background(), m.Queue("payments")

	// region Unique
	order := Charge{Order: 7}
	once := pawl.Unique{Key: pawl.Key("charge", order.Order), For: 24 * time.Hour}
	first, err := payments.Enqueue(ctx, order, once)
	again, err2 := payments.Enqueue(ctx, order, once)
	// endregion
	mustNil(errors.Join(err, err2))
	fmt.Println("one job:", first.ID == again.ID, "duplicate:", again.Duplicate)
	// Output: one job: true duplicate: true
}
