package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// Where a job can be, and what is known of it there.
func ExampleJobInfo() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	payments := m.Queue("payments")
	show := func(id pawl.ID) {
		info, err := payments.Get(ctx, id)
		if errors.Is(err, pawl.ErrNotFound) {
			fmt.Println("over, or never there")
			return
		}
		fmt.Println(info.State, "attempt", info.Attempt, "leased:", !info.LeaseUntil.IsZero())
	}

	job := must(payments.Enqueue(ctx, Charge{Order: 7}))
	show(job.ID)
	w := m.worker("payments")
	pawl.Handle(w, func(context.Context, *pawl.Job[Charge]) error {
		show(job.ID)
		return pawl.Permanent(errDeclined)
	})
	m.run(w, 1)
	show(job.ID)
	must(payments.Dead().Delete(ctx, job.ID))
	show(job.ID)
	// Output:
	// ready attempt 0 leased: false
	// running attempt 1 leased: true
	// dead attempt 1 leased: false
	// over, or never there
}

// A page for operators counts the jobs it shows by their states.
func ExampleState() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	emails := m.Queue("emails")
	count := map[pawl.State]int{}
	for _, opts := range [][]pawl.Option{nil, nil, {pawl.Delay(time.Hour)}} {
		job := must(emails.Enqueue(ctx, Welcome{UserID: 42}, opts...))
		count[must(emails.Get(ctx, job.ID)).State]++
	}
	fmt.Println(count[pawl.StateReady], count[pawl.StateDelayed], count[pawl.StateDead])
	// Output: 2 1 0
}

// What an autoscaler and an alarm look at.
func ExampleStats() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	must(m.Queue("emails").Enqueue(ctx, Welcome{UserID: 1}))
	must(m.Queue("emails").Enqueue(ctx, Welcome{UserID: 2}, pawl.Delay(time.Hour)))

	var stats pawl.Stats = must(m.Queue("emails").Stats(ctx))
	fmt.Println(stats.Ready, "ready,", stats.Delayed, "delayed: a depth of", stats.Depth())
	fmt.Println("a new job waits long:", stats.OldestReady > time.Minute)
	// Output:
	// 1 ready, 1 delayed: a depth of 2
	// a new job waits long: false
}

// Counters only grow: what happened between two looks is their difference.
func ExampleCounters() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	total := func() pawl.Counters { return must(m.Queue("payments").Stats(ctx)).Total }

	before := total()
	leaveDead(m, "payments", 3)
	after := total()
	fmt.Println(after.Enqueued-before.Enqueued, "enqueued,", after.Dead-before.Dead, "dead")
	// Output: 3 enqueued, 3 dead
}

// The context of a running job ends with the cause ErrCancelled; what its handler
// returns then is neither retried nor dead.
func ExampleQueue_Cancel_running() {
	m := inMemory()
	defer m.stop()
	ctx, stop := context.WithCancel(context.Background())
	emails := m.Queue("emails")
	job := must(emails.Enqueue(ctx, Welcome{UserID: 42}, pawl.VisibilityTimeout(time.Second)))

	w := m.worker("emails")
	pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[Welcome]) error {
		fmt.Println(emails.Cancel(ctx, job.ID)) // as an operator would
		<-ctx.Done()                            // within a third of the visibility timeout
		fmt.Println(context.Cause(ctx))
		stop()
		return context.Cause(ctx)
	})
	mustNil(w.Run(ctx))
	stats := must(emails.Stats(context.Background()))
	fmt.Println(stats.Total.Cancelled, stats.Total.Failed, stats.Depth())
	// Output:
	// <nil>
	// pawl: cancelled
	// 1 0 0
}

// Each queue has its dead letters.
func ExampleQueue_Dead() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	leaveDead(m, "payments", 2)
	for _, name := range []string{"payments", "emails"} {
		letters := m.Queue(name).Dead()
		fmt.Println(name, must(letters.Len(ctx)))
	}
	// Output:
	// payments 2
	// emails 0
}

// For an alarm. It is Stats.Dead without the rest.
func ExampleDeadLetters_Len() {
	m := inMemory()
	defer m.stop()
	leaveDead(m, "payments", 3)
	var letters *pawl.DeadLetters = m.Queue("payments").Dead()
	fmt.Println(letters.Len(context.Background()))
	// Output: 3 <nil>
}

// What an operator reads: the failed attempts, the last of them, and by whom.
func ExampleDeadJob() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	job := must(m.Queue("payments").Enqueue(ctx, Charge{Order: 7}))
	w := must(pawl.NewWorker(m.Client, pawl.WorkerConfig{Queues: pawl.Queues("payments"), Name: "blue-3"}))
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
		return fmt.Errorf("gateway answered %d", 500+job.Attempt)
	}, pawl.MaxAttempts(3), pawl.Backoff{Base: time.Millisecond})
	m.run(w, 1)

	var dead pawl.DeadJob = must(m.Queue("payments").Dead().Get(ctx, job.ID))
	fmt.Println(dead.Reason, "on", dead.Worker, "after", dead.Attempt, "attempts:", dead.Error)
	for _, failure := range dead.Errors {
		fmt.Println(failure.Attempt, failure.Error, !failure.At.Before(dead.FirstFailedAt))
	}
	// Output:
	// exhausted on blue-3 after 3 attempts: gateway answered 503
	// 1 gateway answered 501 true
	// 2 gateway answered 502 true
	// 3 gateway answered 503 true
}

// Reasons are compared: what no worker of this build could read may be sent back
// once a build is out that can.
func ExampleDeadReason() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	must(m.Queue("payments").EnqueueRaw(ctx, "charge", []byte(`{"Order":"seven"}`)))
	w := m.worker("payments")
	pawl.Handle(w, charge)
	m.run(w, 1)

	for dead, err := range m.Queue("payments").Dead().List(ctx, pawl.DeadFilter{Reason: pawl.ReasonUndecodable}) {
		mustNil(err)
		fmt.Println(dead.Reason, dead.Kind, string(dead.Payload))
	}
	// Output: undecodable charge {"Order":"seven"}
}

// A job whose unique key another one has taken meanwhile stays dead: there would
// be two of them.
func ExampleRedriveReport() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	payments := m.Queue("payments")
	once := pawl.Unique{Key: pawl.Key("order", 7)}
	dead := must(payments.Enqueue(ctx, Charge{Order: 7}, once))
	w := m.worker("payments")
	pawl.Handle(w, func(context.Context, *pawl.Job[Charge]) error { return pawl.Permanent(errDeclined) })
	m.run(w, 1)
	holder := must(payments.Enqueue(ctx, Charge{Order: 7}, once)) // with a new card

	var report pawl.RedriveReport = must(payments.Dead().Redrive(ctx, dead.ID))
	fmt.Println(report.Matched, "matched,", report.Moved, "moved")
	for _, refused := range report.Refused {
		fmt.Println(refused.ID == dead.ID, refused.Holder == holder.ID)
	}
	// Output:
	// 1 matched, 0 moved
	// true true
}

// For an operator's log, as text; for a program, by its fields.
func ExampleViolation() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	must(m.Queue("emails").Enqueue(ctx, Welcome{UserID: 42}, pawl.Delay(time.Hour)))
	mustNil(m.rdb.Del(ctx, "pawl:{emails}:held").Err()) // by hand, or by eviction

	var found []pawl.Violation = must(m.Queue("emails").Check(ctx))
	for _, v := range found {
		fmt.Println(v.Key)
		fmt.Println(v.Text)
		fmt.Println(v.String() == v.Key+": "+v.ID+" "+v.Text)
	}
	// Output:
	// pawl:{emails}:due
	// has a place and no record
	// true
}

// Strict order: reports run only while no payment waits.
func ExampleQueues() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	for order := range 3 {
		must(m.Queue("reports").Enqueue(ctx, Charge{Order: order}))
		must(m.Queue("payments").Enqueue(ctx, Charge{Order: order}))
	}

	w := must(pawl.NewWorker(m.Client, pawl.WorkerConfig{
		Queues:      pawl.Queues("payments", "reports"),
		Strict:      true,
		Concurrency: 1,
	}))
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
		fmt.Println(job.Queue, job.Args.Order)
		return nil
	})
	m.run(w, 6)
	// Output:
	// payments 0
	// payments 1
	// payments 2
	// reports 0
	// reports 1
	// reports 2
}
