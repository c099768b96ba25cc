package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// What is to follow travels with the job.
func ExampleThen() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	must(m.Queue("orders").Enqueue(ctx, Charge{Order: 7},
		pawl.Then{Args: Welcome{UserID: 42}},
		pawl.Then{Args: Thumbnail{Image: "receipt.png"}, Options: []pawl.Option{
			pawl.Delay(time.Millisecond),
			pawl.Then{Args: Welcome{UserID: 43}}, // after the thumbnail
		}},
	))

	w := m.worker("orders")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
		fmt.Println("charged order", job.Args.Order)
		return nil
	})
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Thumbnail]) error {
		fmt.Println("drew", job.Args.Image)
		return nil
	})
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Welcome]) error {
		fmt.Println("wrote to user", job.Args.UserID)
		return nil
	})
	m.run(w, 4)
	// Unordered output:
	// charged order 7
	// wrote to user 42
	// drew receipt.png
	// wrote to user 43
}

// Staged by each run, enqueued with the acknowledgement of the one that succeeds.
func ExampleRawJob_Then() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	must(m.Queue("orders").Enqueue(ctx, Charge{Order: 7}))

	w := m.worker("orders")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
		job.Then(Welcome{UserID: 42}) // not before the charge is acknowledged
		if job.Attempt == 1 {
			return pawl.RetryAfter(time.Millisecond, errors.New("the gateway is busy"))
		}
		return nil
	})
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Welcome]) error {
		fmt.Println("wrote to user", job.Args.UserID)
		return nil
	})
	m.run(w, 2)
	fmt.Println(must(m.Queue("orders").Stats(ctx)).Total.Enqueued, "jobs")
	// Output:
	// wrote to user 42
	// 2 jobs
}

// Another queue, just before the acknowledgement, under a key that a second run of the
// job finds held.
func ExampleRawJob_ThenOn() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	must(m.Queue("orders").Enqueue(ctx, Charge{Order: 7}))

	w := m.worker("orders")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
		job.ThenOn("emails", Welcome{UserID: 42})
		return nil
	})
	m.run(w, 1)
	fmt.Println(must(m.Queue("emails").Stats(ctx)).Ready, "email waits")
	// Output: 1 email waits
}

// Who waits for a job does not wait for what follows it. The last job of a chain is found
// by what it was given: a header, and Retain.
func ExampleThen_lastOfAChain() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	orders := m.Queue("orders")
	// region last
	order := pawl.Header{Key: "order", Value: "7"}
	must(orders.Enqueue(ctx, Charge{Order: 7},
		pawl.Then{Args: Welcome{UserID: 42}, Options: []pawl.Option{order, pawl.Retain(time.Hour)}}))
	// endregion

	w := m.worker("orders")
	pawl.Handle(w, func(context.Context, *pawl.Job[Charge]) error { return nil })
	pawl.Handle(w, func(context.Context, *pawl.Job[Welcome]) error { return nil })
	m.run(w, 2)

	// region found
	for job, err := range orders.List(ctx, pawl.StateDone, pawl.Filter{Header: order}) {
		mustNil(err)
		fmt.Println(job.Kind, "is", job.State)
	}
	// endregion

	// Output: welcome is done
}

// A chain whose second step dies goes on from there once it is redriven.
func ExampleThen_aStepThatDies() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	orders := m.Queue("orders")
	must(orders.Enqueue(ctx, Charge{Order: 7},
		pawl.Then{Args: Thumbnail{Image: "receipt.png"}, Options: []pawl.Option{
			pawl.Then{Args: Welcome{UserID: 42}},
		}}))
	w := m.worker("orders")
	pawl.Handle(w, func(context.Context, *pawl.Job[Charge]) error { return nil })
	pawl.Handle(w, func(context.Context, *pawl.Job[Thumbnail]) error {
		return pawl.Permanent(errors.New("no such font"))
	})
	m.run(w, 2)

	// region step
	for dead, err := range orders.Dead().List(ctx, pawl.DeadFilter{}) {
		mustNil(err)
		fmt.Println(dead.Kind, "is dead:", dead.Error)
		must(orders.Dead().Redrive(ctx, dead.ID)) // the font is there now
	}
	// endregion
	w = m.worker("orders")
	pawl.Handle(w, func(context.Context, *pawl.Job[Thumbnail]) error { return nil })
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Welcome]) error {
		fmt.Println("wrote to user", job.Args.UserID)
		return nil
	})
	m.run(w, 2)
	// Output:
	// thumbnail is dead: no such font
	// wrote to user 42
}
