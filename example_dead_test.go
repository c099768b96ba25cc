package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// leaveDead leaves n dead jobs in a queue.
func leaveDead(m *memory, queue string, n int) (ids []pawl.ID) {
	for i := range n {
		job := must(m.Queue(queue).Enqueue(context.Background(), Charge{Order: i}))
		ids = append(ids, job.ID)
	}
	w := m.worker(queue)
	pawl.Handle(w, func(context.Context, *pawl.Job[Charge]) error { return pawl.Permanent(errDeclined) })
	m.run(w, n)
	return ids
}

// A redriven job runs again from its first attempt. Id, history and idempotency
// key stay.
func ExampleDeadLetters_Redrive() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	ids := leaveDead(m, "payments", 1) // by a bug, which is fixed now

	report, err := m.Queue("payments").Dead().Redrive(ctx, ids...)
	fmt.Println(report.Moved, err)

	w := m.worker("payments")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
		fmt.Println("attempt", job.Attempt, "redrives", job.Redrives, "after:", job.LastError)
		return nil
	})
	m.run(w, 1)
	// Output:
	// 1 <nil>
	// attempt 1 redrives 1 after: card declined
}

// A post-mortem has what is needed to find the cause.
func ExampleDeadLetters_Get() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	ids := leaveDead(m, "payments", 1)

	dead, err := m.Queue("payments").Dead().Get(ctx, ids[0])
	fmt.Println(err, dead.Kind, string(dead.Payload), dead.Reason)
	for _, failure := range dead.Errors {
		fmt.Println("attempt", failure.Attempt, failure.Error)
	}
	// Output:
	// <nil> charge {"Order":0} permanent
	// attempt 1 card declined
}

func ExampleDeadLetters_List() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	leaveDead(m, "payments", 3)

	since := time.Now().Add(-time.Hour)
	for dead, err := range m.Queue("payments").Dead().List(ctx, pawl.DeadFilter{Kind: "charge", Since: since, Limit: 2}) {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(string(dead.Payload), dead.Error)
	}
	// Output:
	// {"Order":0} card declined
	// {"Order":1} card declined
}

func ExampleDeadLetters_Delete() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	ids := leaveDead(m, "payments", 2)
	letters := m.Queue("payments").Dead()

	fmt.Println(letters.Delete(ctx, ids...))
	_, err := letters.Get(ctx, ids[0])
	fmt.Println(errors.Is(err, pawl.ErrNotFound))
	// Output:
	// 2 <nil>
	// true
}
