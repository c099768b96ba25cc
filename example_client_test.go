package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
)

// One client serves a whole program. What is wrong with a configuration is said
// at once, since New asks nothing of Redis.
func ExampleNew() {
	m := inMemory()
	defer m.stop()

	client, err := pawl.New(m.rdb, pawl.Config{
		Namespace:  "shop:staging", // beside "shop:production" on the same Redis
		Logger:     slog.Default(), // without it nobody hears of an outage
		Hooks:      []pawl.Hook{m}, // metrics, traces
		MaxPayload: 64 << 10,       // what is larger is ErrTooLarge
	})
	fmt.Println(client != nil, err)

	_, err = pawl.New(m.rdb, pawl.Config{Namespace: "my shop"})
	fmt.Println(errors.Is(err, pawl.ErrInvalid))
	// Output:
	// true <nil>
	// true
}

// A Queue is a handle, to make where it is needed. The name is looked at when it
// is used.
func ExampleClient_Queue() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()

	stats, err := m.Queue("never.used").Stats(ctx)
	fmt.Println(stats.Depth(), err)

	_, err = m.Queue("my emails").Enqueue(ctx, Welcome{UserID: 42})
	fmt.Println(errors.Is(err, pawl.ErrName), errors.Is(err, pawl.ErrInvalid))
	// Output:
	// 0 <nil>
	// true true
}

// A log line or a metric wants the name.
func ExampleQueue_Name() {
	m := inMemory()
	defer m.stop()
	for _, q := range []*pawl.Queue{m.Queue("emails"), m.Queue("payments")} {
		fmt.Println(q.Name(), must(q.Stats(context.Background())).Depth())
	}
	// Output:
	// emails 0
	// payments 0
}

// What an error of an enqueue leaves behind. ErrUnconfirmed is looked for first,
// since it may hold the context's error too.
func ExampleQueue_Enqueue_errors() {
	m := inMemory()
	defer m.stop()
	emails := must(pawl.New(m.rdb, pawl.Config{MaxPayload: 20})).Queue("emails")
	enqueue := func(ctx context.Context, name string, opts ...pawl.Option) string {
		job, err := emails.Enqueue(ctx, Receipt.Args(name), opts...)
		switch {
		case err == nil && job.Duplicate:
			return "a job with this key is there already"
		case err == nil:
			return "enqueued"
		case errors.Is(err, pawl.ErrUnconfirmed):
			return "perhaps enqueued: again, with the same unique key"
		case errors.Is(err, pawl.ErrTooLarge):
			return "nothing was sent: store it elsewhere, enqueue where"
		case errors.Is(err, pawl.ErrInvalid):
			return "nothing was sent: a bug of the caller"
		case errors.Is(err, pawl.ErrFull):
			return "not enqueued: Redis is full"
		}
		return "not enqueued: " + err.Error()
	}

	ctx, cancel := context.WithCancel(context.Background())
	once := pawl.Unique{Key: pawl.Key("order", 7), For: time.Hour}
	fmt.Println(enqueue(ctx, "order 7", once))
	fmt.Println(enqueue(ctx, "order 7", once))
	fmt.Println(enqueue(ctx, strings.Repeat("order ", 7)))
	fmt.Println(enqueue(ctx, "order 7", pawl.Delay(-1)))
	cancel()
	fmt.Println(enqueue(ctx, "order 8"))
	// Output:
	// enqueued
	// a job with this key is there already
	// nothing was sent: store it elsewhere, enqueue where
	// nothing was sent: a bug of the caller
	// not enqueued: pawl: enqueue emails: context canceled
}

// An HTTP handler answers with the id of the job that now stands for the call.
func ExampleEnqueued() {
	m := inMemory()
	defer m.stop()
	accept := func(order int) (pawl.Enqueued, error) {
		return m.Queue("payments").Enqueue(context.Background(), Charge{Order: order}, pawl.Unique{})
	}
	first, second := must(accept(7)), must(accept(7))
	fmt.Println(first.Queue, first.Duplicate, second.Duplicate, first.ID == second.ID)
	// Output: payments false true true
}

// Shared options go with each of the arguments.
func ExampleItems() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	digests := []Welcome{{UserID: 1}, {UserID: 2}}

	jobs := must(m.Queue("emails").EnqueueMany(ctx, pawl.Items(digests, pawl.MaxAttempts(2), pawl.Priority(1))))
	for _, job := range jobs {
		info := must(m.Queue("emails").Get(ctx, job.ID))
		fmt.Println(string(info.Payload), info.MaxAttempts, info.Priority)
	}
	// Output:
	// {"user_id":1} 2 1
	// {"user_id":2} 2 1
}

// Jobs of one call may differ in kind and options. Those that are duplicates are
// told by their results.
func ExampleItem() {
	m := inMemory()
	defer m.stop()
	jobs := must(m.Queue("orders").EnqueueMany(context.Background(), []pawl.Item{
		{Args: Charge{Order: 7}, Options: []pawl.Option{pawl.Unique{}}},
		{Args: Charge{Order: 7}, Options: []pawl.Option{pawl.Unique{}}},
		{Args: Receipt.Args("order 7"), Options: []pawl.Option{pawl.Delay(time.Minute)}},
	}))
	for _, job := range jobs {
		fmt.Println(job.ID == jobs[0].ID, job.Duplicate)
	}
	// Output:
	// true false
	// true true
	// false false
}

// Everything that a handler logs says which job it is.
func ExampleRawJob_Logger() {
	m := inMemory()
	defer m.stop()
	// Errors alone: a worker whose warnings are heard asks Doctor, and miniredis does not
	// bear to be closed while it answers INFO.
	text := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelError, ReplaceAttr: withoutTimeAndID}))
	client := must(pawl.New(m.rdb, pawl.Config{Logger: text, Hooks: []pawl.Hook{m}}))
	must(client.Queue("emails").Enqueue(context.Background(), Welcome{UserID: 42}))

	w := must(pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("emails")}))
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Welcome]) error {
		job.Logger().Error("no such user", "user", job.Args.UserID)
		return nil
	})
	m.run(w, 1)
	// Output: level=ERROR msg="no such user" queue=emails kind=welcome attempt=1 user=42
}

// withoutTimeAndID leaves out what is new in each run.
func withoutTimeAndID(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == "job" {
		return slog.Attr{}
	}
	return a
}

// The user of docs/security.md has no more rights than pawl needs.
func ExampleNew_user() {
	addr, password := "localhost:6379", os.Getenv("REDIS_PASSWORD")
	// region login
	rdb := redis.NewClient(&redis.Options{Addr: addr, Username: "pawl", Password: password})
	// endregion
	defer func() { _ = rdb.Close() }()

	client, err := pawl.New(rdb, pawl.Config{})
	fmt.Println(client != nil, err)
	// Output: true <nil>
}
