package pawl_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlq/pawl"
)

// The handler is found by the kind of the job's arguments. Options given here
// are for all jobs of the kind, those that wait already too.
func ExampleHandle() {
	m := inMemory()
	defer m.stop()
	must(m.Queue("emails").Enqueue(context.Background(), Welcome{UserID: 42}))

	w := m.worker("emails")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Welcome]) error {
		fmt.Printf("user %d, attempt %d of %d\n", job.Args.UserID, job.Attempt, job.MaxAttempts)
		return nil
	}, pawl.MaxAttempts(3))
	m.run(w, 1)
	// Output: user 42, attempt 1 of 3
}

// region define

// Receipt gives a kind to a type that cannot have a method of yours. Producer
// and worker share it.
var Receipt = pawl.Define[string]("receipt", pawl.MaxAttempts(12))

// endregion

func ExampleDefine() {
	m := inMemory()
	defer m.stop()
	must(m.Queue("emails").Enqueue(context.Background(), Receipt.Args("order 7")))

	w := m.worker("emails")
	Receipt.Handle(w, func(_ context.Context, job *pawl.Job[string]) error {
		fmt.Printf("%s for %s, at most %d attempts\n", job.Kind, job.Args, job.MaxAttempts)
		return nil
	})
	m.run(w, 1)
	// Output: receipt for order 7, at most 12 attempts
}

// renamed was "welcome" once, and jobs under that name may wait yet.
type renamed struct{ Welcome }

func (renamed) Kind() string          { return "welcome.v2" }
func (renamed) KindAliases() []string { return []string{"welcome"} }

func ExampleKindAliaser() {
	m := inMemory()
	defer m.stop()
	must(m.Queue("emails").Enqueue(context.Background(), Welcome{UserID: 42}))

	w := m.worker("emails")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[renamed]) error {
		fmt.Println(job.Kind, job.Args.UserID)
		return nil
	})
	m.run(w, 1)
	// Output: welcome 42
}

// reminder knows how it wants to be enqueued and run. What Enqueue is given
// itself wins, option by option.
type reminder struct {
	UserID int64
	Urgent bool
}

func (reminder) Kind() string { return "reminder" }

func (r reminder) JobOptions() []pawl.Option {
	opts := []pawl.Option{
		pawl.Unique{Key: pawl.Key("reminder", r.UserID)}, // read at enqueue
		pawl.MaxAttempts(2), // read where the job runs
	}
	if r.Urgent {
		opts = append(opts, pawl.Priority(9))
	}
	return opts
}

func ExampleOptioner() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	emails := m.Queue("emails")

	job := must(emails.Enqueue(ctx, reminder{UserID: 42, Urgent: true}))
	info := must(emails.Get(ctx, job.ID))
	fmt.Println(info.Unique, info.Priority)
	// Output: reminder:42 9
}

// Code far below the handler finds the job in the context.
func ExampleFromContext() {
	audit := func(ctx context.Context, what string) {
		if job, ok := pawl.FromContext(ctx); ok {
			what += " by a job of kind " + job.Kind
		}
		fmt.Println(what)
	}

	m := inMemory()
	defer m.stop()
	must(m.Queue("emails").Enqueue(context.Background(), Welcome{UserID: 42}))
	w := m.worker("emails")
	pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[Welcome]) error {
		audit(ctx, "mail sent")
		return nil
	})
	m.run(w, 1)
	audit(context.Background(), "mail sent")
	// Output:
	// mail sent by a job of kind welcome
	// mail sent
}

// Middleware wraps every handler of a worker; the first one is the outermost.
func ExampleMiddleware() {
	logged := func(next pawl.Handler) pawl.Handler {
		return func(ctx context.Context, job *pawl.RawJob) error {
			err := next(ctx, job)
			fmt.Println(job.Kind, "returned", err)
			return err
		}
	}

	m := inMemory()
	defer m.stop()
	must(m.Queue("emails").Enqueue(context.Background(), Welcome{UserID: 42}))
	w := must(pawl.NewWorker(m.Client, pawl.WorkerConfig{
		Queues:     pawl.Queues("emails"),
		Middleware: []pawl.Middleware{logged},
	}))
	pawl.Handle(w, func(context.Context, *pawl.Job[Welcome]) error { return nil })
	m.run(w, 1)
	// Output: welcome returned <nil>
}

// errNoSuchCard stands for an error of a library that does not know pawl.
var errNoSuchCard = errors.New("no such card")

// Errors of a library become outcomes in one place.
func ExampleClassify() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	job := must(m.Queue("emails").Enqueue(ctx, Receipt.Args("order 7")))

	w := must(pawl.NewWorker(m.Client, pawl.WorkerConfig{
		Queues: pawl.Queues("emails"),
		Middleware: []pawl.Middleware{pawl.Classify(func(err error) error {
			if errors.Is(err, errNoSuchCard) {
				return pawl.Permanent(err)
			}
			return err
		})},
	}))
	Receipt.Handle(w, func(context.Context, *pawl.Job[string]) error { return errNoSuchCard })
	m.run(w, 1)

	dead := must(m.Queue("emails").Dead().Get(ctx, job.ID))
	fmt.Println(dead.Reason, dead.Attempt, dead.Error)
	// Output: permanent 1 no such card
}
