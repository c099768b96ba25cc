package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// leaveDeadOf leaves one dead job for each error.
func leaveDeadOf(m *memory, queue string, errs ...error) {
	for i := range errs {
		must(m.Queue(queue).Enqueue(context.Background(), Charge{Order: i}))
	}
	w := m.worker(queue)
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error { return pawl.Permanent(errs[job.Args.Order]) })
	m.run(w, len(errs))
}

// region dead-groups

// report says what the dead of a queue died of, the largest group first.
func report(ctx context.Context, letters *pawl.DeadLetters) error {
	groups, err := letters.Groups(ctx)
	if err != nil {
		return err
	}
	for _, group := range groups {
		fmt.Println(group.Count, group.Kind, "jobs, such as:", group.Example)
		for dead, err := range letters.List(ctx, pawl.DeadFilter{Fingerprint: group.Fingerprint, Limit: 2}) {
			if err != nil {
				return err
			}
			fmt.Println("  ", string(dead.Payload), dead.Reason)
		}
	}
	return nil
}

// endregion

// Numbers, ids and addresses do not make an error another one.
func ExampleDeadLetters_Groups() {
	m := inMemory()
	defer m.stop()
	leaveDeadOf(m, "payments",
		errors.New("dial tcp 10.0.0.7:443: connection refused"),
		errors.New("customer cus_8f3Kd2 has no card"),
		errors.New("dial tcp 10.0.0.9:443: connection refused"),
		errors.New("dial tcp 10.0.1.4:443: connection refused"))

	fmt.Println(report(context.Background(), m.Queue("payments").Dead()))
	// Output:
	// 3 charge jobs, such as: dial tcp 10.0.1.4:443: connection refused
	//    {"Order":0} permanent
	//    {"Order":2} permanent
	// 1 charge jobs, such as: customer cus_8f3Kd2 has no card
	//    {"Order":1} permanent
	// <nil>
}

// A group tells when it began and whether it goes on.
func ExampleDeadGroup() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	leaveDeadOf(m, "payments", errors.New("order 7 not found"), errors.New("order 8 not found"))

	groups := must(m.Queue("payments").Dead().Groups(ctx))
	var largest pawl.DeadGroup = groups[0]
	fmt.Println(largest.Count, "times, the last time:", largest.Example)
	fmt.Println("goes on:", time.Since(largest.Last) < time.Hour, "and began:", !largest.First.After(largest.Last))
	// Output:
	// 2 times, the last time: order 8 not found
	// goes on: true and began: true
}

func ExampleDeadLetters_List_filtered() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	leaveDeadOf(m, "payments", errors.New("card declined"), errors.New("timeout of the gateway"), errors.New("card expired"))

	recent := time.Now().Add(-15 * time.Minute)
	f := pawl.DeadFilter{Kind: "charge", Reason: pawl.ReasonPermanent, Error: "card", Since: recent, Limit: 10}
	for dead, err := range m.Queue("payments").Dead().List(ctx, f) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(dead.Payload), dead.Error)
	}
	// Output:
	// {"Order":0} card declined
	// {"Order":2} card expired
}

// region dead-watch

// alert sends a message for each job that dies, until ctx ends. load and store
// keep the position, so that a restart neither misses a death nor tells one twice.
func alert(ctx context.Context, letters *pawl.DeadLetters, load func() string, store func(string), send func(string)) error {
	for dead, err := range letters.Watch(ctx, load()) {
		if errors.Is(err, pawl.ErrInvalid) {
			return err // what was stored is no position
		}
		if err != nil {
			send("the dead-letter queue cannot be read: " + err.Error())
			continue // it goes on when Redis is back
		}
		send(fmt.Sprintf("%s %s is dead: %s: %s", dead.Kind, dead.Payload, dead.Reason, dead.Error))
		store(dead.Position)
	}
	return nil
}

// endregion

func ExampleDeadLetters_Watch() {
	m := inMemory()
	defer m.stop()
	letters := m.Queue("payments").Dead()
	position := "0-0" // from the beginning

	// One process tells of the first death, and is stopped.
	leaveDeadOf(m, "payments", errors.New("card declined"))
	ctx, stop := context.WithCancel(context.Background())
	load := func() string { return position }
	store := func(at string) { position = at; stop() }
	send := func(text string) { fmt.Println(text) }
	fmt.Println(alert(ctx, letters, load, store, send))
	stop()

	// While it is away another job dies. The next process begins where it ended.
	leaveDeadOf(m, "payments", errors.New("gateway is gone"))
	ctx, stop = context.WithCancel(context.Background())
	defer stop()
	fmt.Println(alert(ctx, letters, load, store, send))
	// Output:
	// charge {"Order":0} is dead: permanent: card declined
	// <nil>
	// charge {"Order":0} is dead: permanent: gateway is gone
	// <nil>
}
