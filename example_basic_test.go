package pawl_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// region enqueue

type Welcome struct {
	UserID int64 `json:"user_id"`
}

func (Welcome) Kind() string { return "welcome" } // stored with each job; finds its handler

func signUp(ctx context.Context, client *pawl.Client, userID int64) error {
	_, err := client.Queue("emails").Enqueue(ctx, Welcome{UserID: userID})
	return err // nothing was enqueued, unless it is pawl.ErrUnconfirmed
}

// endregion

// region worker

func serve(ctx context.Context, client *pawl.Client) error {
	w, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("emails"), Concurrency: 50})
	if err != nil {
		return err
	}
	pawl.Handle(w, sendWelcome)
	return w.Run(ctx) // until ctx ends; then running jobs may finish
}

func sendWelcome(ctx context.Context, job *pawl.Job[Welcome]) error {
	return mail(ctx, job.Args.UserID, job.IdempotencyKey()) // nil: done; an error: tried again
}

// endregion

// region test

func TestSendWelcome(t *testing.T) {
	t.Parallel()
	job := &pawl.Job[Welcome]{Args: Welcome{UserID: 42}}
	require.NoError(t, sendWelcome(t.Context(), job))
}

// endregion

// mail stands for a mail service. A service that knows idempotency keys sends
// one mail for a key, however often it is asked.
func mail(_ context.Context, userID int64, key string) error {
	if key != "" {
		fmt.Println("welcome, user", userID)
	}
	return nil
}

// A producer and a worker.
func Example() {
	m := inMemory()
	defer m.stop()
	ctx, cancel := context.WithCancel(context.Background())

	mustNil(signUp(ctx, m.Client, 42))

	go func() {
		<-m.ended // the job is done
		cancel()
	}()
	fmt.Println(serve(ctx, m.Client))
	// Output:
	// welcome, user 42
	// <nil>
}

// An enqueue returns once Redis has the job. The id is a UUIDv7 made by the
// server.
func ExampleQueue_Enqueue() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	emails := m.Queue("emails")

	job, err := emails.Enqueue(ctx, Welcome{UserID: 42})
	fmt.Println(err, job.ID.Version(), job.Queue)

	info, err := emails.Get(ctx, job.ID)
	fmt.Println(err, info.State, info.Kind, string(info.Payload))
	// Output:
	// <nil> VERSION_7 emails
	// <nil> ready welcome {"user_id":42}
}

// Many jobs take few round trips. Jobs of one call that share options are made
// by Items; others are written out.
func ExampleQueue_EnqueueMany() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	emails := m.Queue("emails")

	items := pawl.Items([]Welcome{{UserID: 1}, {UserID: 2}}, pawl.Priority(3))
	items = append(items, pawl.Item{Args: Welcome{UserID: 3}})
	jobs, err := emails.EnqueueMany(ctx, items)
	fmt.Println(len(jobs), err)

	stats := must(emails.Stats(ctx))
	fmt.Println(stats.Ready, "ready")
	// Output:
	// 3 <nil>
	// 3 ready
}

// Bytes that another program made, and a handler that sees bytes.
func ExampleQueue_EnqueueRaw() {
	m := inMemory()
	defer m.stop()

	must(m.Queue("images").EnqueueRaw(context.Background(), "thumbnail", []byte{0xff, 0xd8}))

	w := m.worker("images")
	w.HandleRaw("thumbnail", func(_ context.Context, job *pawl.RawJob) error {
		fmt.Printf("%s: % x\n", job.Kind, job.Payload)
		return nil
	})
	m.run(w, 1)
	// Output:
	// thumbnail: ff d8
}

// A job that waits is gone when Cancel returns. A running one has its context
// ended with the cause ErrCancelled.
func ExampleQueue_Cancel() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	emails := m.Queue("emails")

	job := must(emails.Enqueue(ctx, Welcome{UserID: 42}))
	fmt.Println(emails.Cancel(ctx, job.ID))
	fmt.Println(must(emails.Stats(ctx)).Total.Cancelled, "cancelled")
	// Output:
	// <nil>
	// 1 cancelled
}

// Check reads the whole queue: for tests and operators.
func ExampleQueue_Check() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	emails := m.Queue("emails")

	must(emails.Enqueue(ctx, Welcome{UserID: 42}))
	violations, err := emails.Check(ctx)
	fmt.Println(len(violations), err)

	// A program keeps something of its own under the queue's prefix.
	mustNil(m.rdb.Set(ctx, "pawl:{emails}:cache", "x", 0).Err())
	violations, err = emails.Check(ctx)
	fmt.Println(violations[0].Key, violations[0].Text, err)
	// Output:
	// 0 <nil>
	// pawl:{emails}:cache belongs to nothing <nil>
}
