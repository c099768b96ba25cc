package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// A broker delivers an event twice, hours apart: each delivery becomes a job, and
// one of the jobs runs. The first failure does not count.
func ExampleIdempotency() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	payments := m.Queue("payments")
	once := pawl.Idempotency{Key: pawl.Key("charge", 7), Window: 48 * time.Hour}

	w := m.worker("payments")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
		fmt.Println("attempt", job.Attempt, "under the key", job.IdempotencyKey())
		if job.Attempt == 1 {
			return pawl.RetryAfter(time.Millisecond, errors.New("the gateway is busy"))
		}
		return nil
	})
	must(payments.Enqueue(ctx, Charge{Order: 7}, once))
	must(payments.Enqueue(ctx, Charge{Order: 7}, once, pawl.Delay(time.Second)))
	m.run(w, 2)

	stats := must(payments.Stats(ctx))
	fmt.Println("done:", stats.Total.Done, "skipped:", stats.Total.Skipped)
	// Output:
	// attempt 1 under the key charge:7
	// attempt 2 under the key charge:7
	// done: 2 skipped: 1
}

// skips tells of the duplicates that came.
type skips struct{}

var _ pawl.OnSkipped = skips{}

func (skips) Skipped(_ context.Context, e pawl.Event) {
	fmt.Println(e.Job.Kind, "was done before, under", e.Job.IdempotencyKey())
}

func ExampleOnSkipped() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	m.Client = m.with(skips{})
	once := pawl.Idempotency{Key: pawl.Key("charge", 7)}

	w := m.worker("payments")
	pawl.Handle(w, func(context.Context, *pawl.Job[Charge]) error { return nil })
	for range 2 {
		must(m.Queue("payments").Enqueue(ctx, Charge{Order: 7}, once))
	}
	m.run(w, 2)
	// Output: charge was done before, under charge:7
}
