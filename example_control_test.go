package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// What waits, and for how long yet: the next that are due come first.
func ExampleQueue_List() {
	client := inMemory()
	defer client.stop()
	ctx := context.Background()
	for user := range int64(5) {
		must(client.Queue("emails").Enqueue(ctx, Welcome{UserID: user}, pawl.Delay(time.Duration(5-user)*time.Hour)))
	}

	// region list
	for job, err := range client.Queue("emails").List(ctx, pawl.StateDelayed, pawl.Filter{Limit: 3}) {
		if err != nil {
			fmt.Println(err) // the walk ends here
			break
		}
		fmt.Println(job.Kind, string(job.Payload), "in", time.Until(job.DueAt).Round(time.Hour))
	}
	// endregion

	// Output:
	// welcome {"user_id":4} in 1h0m0s
	// welcome {"user_id":3} in 2h0m0s
	// welcome {"user_id":2} in 3h0m0s
}

// What runs, where, and since when.
func ExampleQueue_List_running() {
	client := inMemory()
	defer client.stop()
	ctx := context.Background()
	w := must(pawl.NewWorker(client.Client, pawl.WorkerConfig{Queues: pawl.Queues("emails"), Name: "blue-3"}))
	running, end := make(chan bool), make(chan bool)
	pawl.Handle(w, func(context.Context, *pawl.Job[Welcome]) error {
		running <- true
		<-end
		return nil
	})
	stop := client.serving(w, "emails")
	defer stop()
	must(client.Queue("emails").Enqueue(ctx, Welcome{UserID: 42}))
	<-running

	// region running
	for job, err := range client.Queue("emails").List(ctx, pawl.StateRunning, pawl.Filter{}) {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Println(job.Kind, "attempt", job.Attempt, "on", job.Worker, "for", time.Since(job.StartedAt).Truncate(time.Minute))
	}
	// endregion
	close(end)
	// Output: welcome attempt 1 on blue-3 for 0s
}

// Filters are for all the calls that pick jobs: here, what one tenant has waiting
// since the morning.
func ExampleFilter() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	tenant := func(name string) pawl.Header { return pawl.Header{Key: "tenant", Value: name} }
	for user, name := range []string{"acme", "globex", "acme"} {
		must(m.Queue("emails").Enqueue(ctx, Welcome{UserID: int64(user)}, tenant(name)))
	}

	acme := pawl.Filter{Kind: "welcome", Header: tenant("acme"), Since: time.Now().Add(-6 * time.Hour)}
	for job, err := range m.Queue("emails").List(ctx, pawl.StateReady, acme) {
		mustNil(err)
		fmt.Println(job.Headers["tenant"], string(job.Payload))
	}
	// Output:
	// acme {"user_id":0}
	// acme {"user_id":2}
}

// The provider is down until noon, say: nothing is leased until then, and nobody
// has to remember to switch it on again.
func ExampleQueue_Pause() {
	client := inMemory()
	defer client.stop()
	ctx := context.Background()
	must(client.Queue("emails").Enqueue(ctx, Welcome{UserID: 42}))

	// region pause
	if err := client.Queue("emails").Pause(ctx, 2*time.Hour); err != nil {
		fmt.Println(err) // ErrNotFound: there is no such queue
	}
	stats, err := client.Queue("emails").Stats(ctx)
	fmt.Println(stats.Paused, time.Until(stats.PausedUntil).Round(time.Hour), stats.Ready, err)
	// endregion

	fmt.Println(errors.Is(client.Queue("emials").Pause(ctx, time.Hour), pawl.ErrNotFound))
	// Output:
	// true 2h0m0s 1 <nil>
	// true
}

// A pause without an end lasts until somebody says so.
func ExampleQueue_Resume() {
	client := inMemory()
	defer client.stop()
	ctx := context.Background()
	must(client.Queue("emails").Enqueue(ctx, Welcome{UserID: 42}))
	mustNil(client.Queue("emails").Pause(ctx, pawl.Forever))
	w := client.worker("emails")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Welcome]) error {
		fmt.Println("welcome, user", job.Args.UserID)
		return nil
	})
	stop := client.serving(w, "emails")
	defer stop()

	stats := must(client.Queue("emails").Stats(ctx))
	fmt.Println(stats.Paused, stats.PausedUntil.IsZero(), stats.Ready)
	// region resume
	err := client.Queue("emails").Resume(ctx) // workers hear of it at once
	// endregion
	<-client.ended
	fmt.Println(err)
	// Output:
	// true true 1
	// welcome, user 42
	// <nil>
}

// A customer asks to be billed tomorrow. The job stays the same.
func ExampleQueue_Reschedule() {
	client := inMemory()
	defer client.stop()
	ctx := context.Background()
	payments := client.Queue("payments")
	job := must(payments.Enqueue(ctx, Charge{Order: 7}))

	// region reschedule
	err := payments.Reschedule(ctx, job.ID, time.Now().Add(24*time.Hour))
	if errors.Is(err, pawl.ErrState) {
		fmt.Println("too late: it runs, or has died")
	}
	// endregion
	info := must(payments.Get(ctx, job.ID))
	fmt.Println(info.State, "in", time.Until(info.DueAt).Round(time.Hour))

	w := client.worker("payments")
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[Charge]) error {
		fmt.Println(errors.Is(payments.Reschedule(ctx, job.ID, time.Now().Add(time.Hour)), pawl.ErrState))
		return nil
	})
	mustNil(payments.RunNow(ctx, job.ID))
	client.run(w, 1)
	// Output:
	// delayed in 24h0m0s
	// true
}

// A fix is out: what waits for its retry need not wait on.
func ExampleQueue_RunNow() {
	client := inMemory()
	defer client.stop()
	ctx := context.Background()
	payments := client.Queue("payments")
	for order := range 3 {
		must(payments.Enqueue(ctx, Charge{Order: order}, pawl.Delay(time.Hour)))
	}

	// region runnow
	for job, err := range payments.List(ctx, pawl.StateDelayed, pawl.Filter{Kind: "charge"}) {
		if err == nil {
			err = payments.RunNow(ctx, job.ID)
		}
		if err != nil && !errors.Is(err, pawl.ErrNotFound) && !errors.Is(err, pawl.ErrState) {
			fmt.Println(err) // not merely another's doing
		}
	}
	// endregion
	stats := must(payments.Stats(ctx))
	fmt.Println(stats.Ready, "ready,", stats.Delayed, "delayed")
	// Output: 3 ready, 0 delayed
}

// A loop enqueued what nobody wants.
func ExampleQueue_Purge() {
	client := inMemory()
	defer client.stop()
	ctx := context.Background()
	for i := range 5 {
		must(client.Queue("emails").Enqueue(ctx, Welcome{UserID: int64(i)}, pawl.Header{Key: "campaign", Value: "spring"}))
	}
	must(client.Queue("emails").Enqueue(ctx, Welcome{UserID: 42}))

	// region purge
	wrong := pawl.Filter{Header: pawl.Header{Key: "campaign", Value: "spring"}}
	n, err := client.Queue("emails").Purge(ctx, pawl.StateReady, wrong)
	fmt.Println(n, "removed", err) // after an error too, n are gone
	// endregion
	fmt.Println(must(client.Queue("emails").Stats(ctx)).Ready, "left")
	// Output:
	// 5 removed <nil>
	// 1 left
}

// The end of a queue that nobody needs any more.
func ExampleQueue_Destroy() {
	client := inMemory()
	defer client.stop()
	ctx := context.Background()
	must(client.Queue("reports").Enqueue(ctx, Charge{Order: 7}, pawl.Delay(time.Hour)))

	// region destroy
	err := client.Queue("reports").Destroy(ctx)
	switch {
	case errors.Is(err, pawl.ErrState):
		fmt.Println("jobs run: stop its workers first")
	case errors.Is(err, pawl.ErrNotFound):
		fmt.Println("gone already")
	case err != nil:
		fmt.Println("call it again:", err)
	}
	// endregion
	fmt.Println(must(client.Queues(ctx)), must(client.rdb.Keys(ctx, "pawl:{reports}:jobs").Result()))
	// Output: [] []
}
