package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// background runs a worker until n jobs have ended; the returned function waits.
func background(m *memory, queue string, n int, handle func(order int) error) (wait func()) {
	w := m.worker(queue)
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error { return handle(job.Args.Order) })
	ended := make(chan struct{})
	go func() { defer close(ended); m.run(w, n) }()
	return func() { <-ended }
}

// region dead-redrive

// sendBack redrives what died of one kind of error, spread over a time, and gives
// up once 20 of the jobs have died again.
func sendBack(ctx context.Context, letters *pawl.DeadLetters, fingerprint string, over time.Duration) error {
	f := pawl.DeadFilter{Fingerprint: fingerprint}
	plan, err := letters.RedriveAll(ctx, f, pawl.Redrive{DryRun: true})
	if err != nil {
		return err
	}
	fmt.Println(plan.Matched, "match, of which", len(plan.Refused), "would be refused")

	done, err := letters.RedriveAll(ctx, f, pawl.Redrive{Over: over, StopAfter: 20})
	fmt.Println(done.Moved, "were moved, and", done.DiedAgain, "had died again by then")
	return err
}

// endregion

func ExampleDeadLetters_RedriveAll() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	leaveDeadOf(m, "payments", errors.New("gateway 7 is down"), errors.New("card declined"), errors.New("gateway 9 is down"))
	letters := m.Queue("payments").Dead()
	down := must(letters.Groups(ctx))[0]

	// The gateway is up again.
	wait := background(m, "payments", 2, func(int) error { return nil })
	fmt.Println(sendBack(ctx, letters, down.Fingerprint, 100*time.Millisecond))
	wait()
	fmt.Println(must(letters.Len(ctx)), "is dead still")
	// Output:
	// 2 match, of which 0 would be refused
	// 2 were moved, and 0 had died again by then
	// <nil>
	// 1 is dead still
}

// A redrive that only makes jobs die again stops early.
func ExampleRedrive() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	leaveDead(m, "payments", 10)

	// Somebody thinks that the bug is mended. One job at a time is tried.
	wait := background(m, "payments", 1, func(int) error { return pawl.Permanent(errDeclined) })
	report, err := m.Queue("payments").Dead().RedriveAll(ctx, pawl.DeadFilter{}, pawl.Redrive{StopAfter: 1})
	wait()
	fmt.Println(report.Moved, "moved,", report.DiedAgain, "died again", err)
	fmt.Println(must(m.Queue("payments").Dead().Len(ctx)), "are dead")
	// Output:
	// 1 moved, 1 died again <nil>
	// 10 are dead
}

// region repair

// repair sends a charge back whose order was no number.
func repair(ctx context.Context, letters *pawl.DeadLetters, id pawl.ID, order int) error {
	dead, err := letters.Get(ctx, id)
	if err != nil {
		return err
	}
	fmt.Println(dead.Reason, string(dead.Payload))
	return letters.RedriveWith(ctx, id, Charge{Order: order})
}

// endregion

// The producer wrote a word where a number belongs. The job is repaired.
func ExampleDeadLetters_RedriveWith() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	payments := m.Queue("payments")
	job := must(payments.EnqueueRaw(ctx, "charge", []byte(`{"Order":"seven"}`)))
	background(m, "payments", 1, nil)()

	fmt.Println(repair(ctx, payments.Dead(), job.ID, 7))

	background(m, "payments", 1, func(order int) error {
		fmt.Println("charged", order)
		return nil
	})()
	// Output:
	// undecodable {"Order":"seven"}
	// <nil>
	// charged 7
}

// What will never be of use is removed.
func ExampleDeadLetters_Purge() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	leaveDeadOf(m, "payments", errors.New("card declined"), errors.New("order is closed"), errors.New("card declined"))
	letters := m.Queue("payments").Dead()

	fmt.Println(letters.Purge(ctx, pawl.DeadFilter{Error: "declined", Until: time.Now().Add(time.Minute)}))
	fmt.Println(letters.Len(ctx))
	// Output:
	// 2 <nil>
	// 1 <nil>
}
