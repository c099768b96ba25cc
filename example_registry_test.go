package pawl_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// serving runs w until stop, and returns when it is on the list of workers with
// each of its queues.
func (m *memory) serving(w *pawl.Worker, queues ...string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	// Each queue is told by a beat of its own.
	for listed := 0; listed < len(queues); <-time.After(time.Millisecond) {
		listed = 0
		for _, info := range must(m.Workers(ctx)) {
			listed += len(info.Queues)
		}
	}
	return func() {
		cancel()
		mustNil(<-done)
	}
}

// A page for operators begins with the queues there are.
func ExampleClient_Queues() {
	client := inMemory()
	defer client.stop()
	ctx := context.Background()
	must(client.Queue("payments").Enqueue(ctx, Charge{Order: 7}))
	must(client.Queue("emails").Enqueue(ctx, Welcome{UserID: 42}, pawl.Delay(time.Hour)))

	// region queues
	names, err := client.Queues(ctx)
	if err != nil {
		fmt.Println(err)
	}
	for _, name := range names {
		stats, err := client.Queue(name).Stats(ctx)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(name, stats.Ready, "ready", stats.Delayed, "delayed", stats.Running, "running", stats.Dead, "dead")
	}
	// endregion

	// Output:
	// emails 0 ready 1 delayed 0 running 0 dead
	// payments 1 ready 0 delayed 0 running 0 dead
}

// What a collector of metrics asks for: all queues in one call.
func ExampleClient_Stats() {
	client := inMemory()
	defer client.stop()
	ctx := context.Background()
	must(client.Queue("payments").Enqueue(ctx, Charge{Order: 7}))
	must(client.Queue("emails").Enqueue(ctx, Welcome{UserID: 42}, pawl.Delay(time.Hour)))

	all, err := client.Stats(ctx) // after an error it has the queues that were answered for
	for name, stats := range all {
		fmt.Println(name, stats.Depth(), "waiting,", stats.Workers, "workers")
	}
	fmt.Println(err)
	// Unordered output:
	// emails 1 waiting, 0 workers
	// payments 1 waiting, 0 workers
	// <nil>
}

// Who works, on what, and which build it is.
func ExampleClient_Workers() {
	client := inMemory()
	defer client.stop()
	ctx := context.Background()
	w := must(pawl.NewWorker(client.Client, pawl.WorkerConfig{
		Queues: pawl.Queues("payments", "emails"), Name: "blue-3", Concurrency: 20,
	}))
	pawl.Handle(w, charge)
	stop := client.serving(w, "payments", "emails")

	// region workers
	workers, err := client.Workers(ctx)
	if err != nil {
		fmt.Println(err)
	}
	for _, w := range workers {
		fmt.Println(w.Name, w.Queues, w.Running, "of", w.Concurrency, "busy")
	}
	// endregion
	stop()
	fmt.Println(len(must(client.Workers(ctx))))
	// Output:
	// blue-3 [emails payments] 0 of 20 busy
	// 0
}

// A worker that has not beaten for 20 seconds is dead, cut off or frozen: it is
// listed for a minute, while another may take its jobs.
func ExampleWorkerInfo() {
	m := inMemory()
	defer m.stop()
	w := must(pawl.NewWorker(m.Client, pawl.WorkerConfig{Queues: pawl.Queues("payments"), Name: "blue-3"}))
	pawl.Handle(w, charge)
	defer m.serving(w, "payments")()

	var info pawl.WorkerInfo = must(m.Workers(context.Background()))[0]
	switch silent := time.Since(info.SeenAt); {
	case silent > 20*time.Second:
		fmt.Println(info.Name, "is not heard of")
	case info.Draining:
		fmt.Println(info.Name, "stops")
	default:
		fmt.Println(info.Name, "serves", info.Queues, "as process", info.PID > 0, "of", info.Host != "")
	}
	// Output: blue-3 serves [payments] as process true of true
}

// A rate is the counter of a minute: no second look is needed.
func ExampleQueue_Minutes() {
	client := inMemory()
	defer client.stop()
	ctx := context.Background()
	leaveDead(client, "payments", 3)

	// region minutes
	minutes, err := client.Queue("payments").Minutes(ctx, time.Now().Add(-time.Hour), time.Time{})
	if err != nil {
		fmt.Println(err)
	}
	var started, dead int64
	for _, m := range minutes { // each is there, idle ones too
		started += m.Started
		dead += m.Dead
	}
	fmt.Println(dead, "of", started, "died in the last hour")
	// endregion

	// Output: 3 of 3 died in the last hour
}

// A Minute is the beginning of a minute, and what was counted until the next.
func ExampleMinute() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	must(m.Queue("payments").Enqueue(ctx, Charge{Order: 7}))

	day := must(m.Queue("payments").Minutes(ctx, time.Time{}, time.Time{}))
	busiest := pawl.Minute{}
	for _, minute := range day {
		if minute.Enqueued > busiest.Enqueued {
			busiest = minute
		}
	}
	fmt.Println(len(day), "minutes; most in one:", busiest.Enqueued, "not long ago:", time.Since(busiest.At) < time.Hour)
	// Output: 1440 minutes; most in one: 1 not long ago: true
}

// A deployment's test fails at what would hurt, and is told when nobody looked.
func ExampleFinding() {
	m := inMemory()
	defer m.stop()
	bad, unseen := 0, 0
	var findings []pawl.Finding = must(m.Doctor(context.Background()))
	for _, f := range findings {
		switch {
		case f.Unknown:
			unseen++ // Redis does not tell; f.Text says where else to look
		case !f.OK:
			bad++
			fmt.Println(f.Check, f.Text)
		}
	}
	fmt.Println(bad, "bad,", unseen > 0, "that some were not seen")
	// Output: 0 bad, true that some were not seen
}

// What Check finds is for a person to read, and to look at more than once: the
// workers mend most of it.
func ExampleQueue_Check_printed() {
	client := inMemory()
	defer client.stop()
	ctx := context.Background()
	must(client.Queue("emails").Enqueue(ctx, Welcome{UserID: 42}))

	// region check
	found, err := client.Queue("emails").Check(ctx)
	for _, violation := range found {
		fmt.Println(violation)
	}
	fmt.Println(len(found), "found", err)
	// endregion

	// Output: 0 found <nil>
}
