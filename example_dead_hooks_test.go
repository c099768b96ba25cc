package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// region dead-archive

// archive keeps what leaves the dead-letter queue unread. A real one writes a row
// or a blob; it has the whole post-mortem.
type archive struct{ kept func(pawl.DeadJob) }

var _ pawl.OnDropped = archive{}

func (a archive) Dropped(_ context.Context, dead pawl.DeadJob) { a.kept(dead) }

// endregion

func ExampleOnDropped() {
	m := inMemory()
	defer m.stop()
	leaveDead(m, "payments", 1)
	<-time.After(5 * time.Millisecond) // the retention goes by

	ctx, stop := context.WithCancel(context.Background())
	hook := archive{func(dead pawl.DeadJob) {
		fmt.Println("archived:", dead.Kind, string(dead.Payload), dead.Error)
		stop()
	}}
	client := must(pawl.New(m.rdb, pawl.Config{DeadRetention: time.Millisecond, Hooks: []pawl.Hook{hook}}))
	w := must(pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("payments")}))
	pawl.Handle(w, func(context.Context, *pawl.Job[Charge]) error { return nil })
	fmt.Println(w.Run(ctx))
	fmt.Println(must(client.Queue("payments").Stats(context.Background())).Total.Dropped, "dropped")
	// Output:
	// archived: charge {"Order":0} card declined
	// <nil>
	// 1 dropped
}

// revoked tells of jobs that Queue.Cancel ended.
type revoked struct{ stop func() }

var _ pawl.OnCancelled = revoked{}

func (r revoked) Cancelled(_ context.Context, e pawl.Event) {
	fmt.Println(e.Job.Kind, string(e.Job.Payload), "has ended:", errors.Is(e.Err, pawl.ErrCancelled))
	r.stop()
}

func ExampleOnCancelled() {
	m := inMemory()
	defer m.stop()
	ctx, stop := context.WithCancel(context.Background())
	client := m.with(revoked{stop})
	payments := client.Queue("payments")
	must(payments.Enqueue(ctx, Charge{Order: 7}))

	// A handler hears of it within a third of the visibility timeout.
	w := must(pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("payments"), VisibilityTimeout: 300 * time.Millisecond}))
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[Charge]) error {
		mustNil(payments.Cancel(ctx, job.ID)) // somebody does so, while it runs
		<-ctx.Done()
		return context.Cause(ctx)
	})
	fmt.Println(w.Run(ctx))
	// Output:
	// charge {"Order":7} has ended: true
	// <nil>
}
