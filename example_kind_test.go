package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/pawlq/pawl"
)

// Thumbnail names its kind: that is all there is to a job. The fields are its
// arguments, and the codec's tags go for them.
type Thumbnail struct {
	Image string `json:"image"`
	Width int    `json:"width,omitempty"`
}

func (Thumbnail) Kind() string { return "thumbnail" }

func ExampleArgs() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	job := must(m.Queue("images").Enqueue(ctx, Thumbnail{Image: "cat.png"}))

	info := must(m.Queue("images").Get(ctx, job.ID))
	fmt.Println(info.Kind, string(info.Payload))
	// Output: thumbnail {"image":"cat.png"}
}

// Fetch is a kind of a type of another package, which can have no method of ours.
var Fetch = pawl.Define[url.URL]("fetch", pawl.MaxAttempts(3))

func ExampleKind() {
	m := inMemory()
	defer m.stop()
	must(m.Queue("web").Enqueue(context.Background(), Fetch.Args(url.URL{Host: "example.com", Path: "/feed"})))

	w := m.worker("web")
	Fetch.Handle(w, func(_ context.Context, job *pawl.Job[url.URL]) error {
		fmt.Println(job.Kind, job.Args.Host, job.Args.Path)
		return nil
	})
	m.run(w, 1)
	// Output: fetch example.com /feed
}

// The codec sees the value itself: another program finds plain JSON.
func ExampleKind_Args() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	args := Receipt.Args("order 7")
	job := must(m.Queue("emails").Enqueue(ctx, args))
	fmt.Println(args.Kind(), string(must(m.Queue("emails").Get(ctx, job.ID)).Payload))
	// Output: receipt "order 7"
}

// What Handle is given wins over the options of Define.
func ExampleKind_Handle() {
	m := inMemory()
	defer m.stop()
	must(m.Queue("emails").Enqueue(context.Background(), Receipt.Args("order 7")))

	w := m.worker("emails")
	Receipt.Handle(w, func(_ context.Context, job *pawl.Job[string]) error {
		fmt.Println(job.Args, job.MaxAttempts)
		return nil
	}, pawl.MaxAttempts(2))
	m.run(w, 1)
	// Output: order 7 2
}

// One policy for several kinds is a list.
func ExampleHandleOption() {
	m := inMemory()
	defer m.stop()
	gentle := []pawl.HandleOption{
		pawl.MaxAttempts(20),
		pawl.RetryFunc(func(f pawl.Failure) (wait time.Duration) {
			return time.Duration(f.Attempt) * time.Minute
		}),
	}
	must(m.Queue("mixed").Enqueue(context.Background(), Welcome{UserID: 42}))
	must(m.Queue("mixed").Enqueue(context.Background(), Receipt.Args("order 7")))

	w := m.worker("mixed")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Welcome]) error {
		fmt.Println(job.Kind, job.MaxAttempts)
		return nil
	}, gentle...)
	Receipt.Handle(w, func(_ context.Context, job *pawl.Job[string]) error {
		fmt.Println(job.Kind, job.MaxAttempts)
		return nil
	}, gentle...)
	m.run(w, 2)
	// Output:
	// welcome 20
	// receipt 20
}

// Bytes that no type of Go describes. Whether they can be read is for the
// handler to say.
func ExampleWorker_HandleRaw() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	job := must(m.Queue("images").EnqueueRaw(ctx, "jpeg", []byte("GIF89a")))

	w := m.worker("images")
	w.HandleRaw("jpeg", func(_ context.Context, job *pawl.RawJob) error {
		if len(job.Payload) < 2 || job.Payload[0] != 0xff || job.Payload[1] != 0xd8 {
			return pawl.Permanent(errors.New("no JPEG"))
		}
		return nil
	})
	m.run(w, 1)
	dead := must(m.Queue("images").Dead().Get(ctx, job.ID))
	fmt.Println(dead.Reason, dead.Error, string(dead.Payload))
	// Output: permanent no JPEG GIF89a
}

// A Handler is a function: what middleware wraps, and what a test can call.
func ExampleHandler() {
	var h pawl.Handler = func(_ context.Context, job *pawl.RawJob) error {
		fmt.Println(job.Kind, string(job.Payload))
		return nil
	}
	fmt.Println(h(context.Background(), &pawl.RawJob{Kind: "thumbnail", Payload: []byte("cat.png")}))
	// Output:
	// thumbnail cat.png
	// <nil>
}

// A literal is enough to call a handler: no queue, no Redis.
func ExampleJob() {
	handler := func(_ context.Context, job *pawl.Job[Thumbnail]) error {
		job.Logger().Info("to the void")
		if job.Args.Width > 4096 {
			return pawl.Permanent(fmt.Errorf("%d is too wide", job.Args.Width))
		}
		return nil
	}
	ctx := context.Background()
	fmt.Println(handler(ctx, &pawl.Job[Thumbnail]{Args: Thumbnail{Image: "cat.png"}}))

	err := handler(ctx, &pawl.Job[Thumbnail]{Args: Thumbnail{Image: "cat.png", Width: 10_000}})
	fmt.Println(pawl.IsPermanent(err), err)
	// Output:
	// <nil>
	// true 10000 is too wide
}

// A handler enqueues what comes next by the client of its worker. The key makes
// it once, however often this handler runs.
func ExampleRawJob_Client() {
	m := inMemory()
	defer m.stop()
	must(m.Queue("orders").Enqueue(context.Background(), Charge{Order: 7}))

	w := m.worker("orders")
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[Charge]) error {
		next := Receipt.Args(fmt.Sprint("order ", job.Args.Order))
		once := pawl.Unique{Key: pawl.Key("receipt of", job.IdempotencyKey()), For: 24 * time.Hour}
		_, err := job.Client().Queue("orders").Enqueue(ctx, next, once)
		return err
	})
	Receipt.Handle(w, func(_ context.Context, job *pawl.Job[string]) error {
		fmt.Println("receipt for", job.Args)
		return nil
	})
	m.run(w, 2)
	// Output: receipt for order 7
}

// The last try may fall back on something worse.
func ExampleRawJob_LastAttempt() {
	m := inMemory()
	defer m.stop()
	must(m.Queue("images").Enqueue(context.Background(), Thumbnail{Image: "cat.png"}))

	w := m.worker("images")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Thumbnail]) error {
		if job.LastAttempt() {
			fmt.Println("attempt", job.Attempt, "a placeholder")
			return nil
		}
		return errors.New("renderer is down")
	}, pawl.MaxAttempts(3), pawl.Backoff{Base: time.Millisecond})
	m.run(w, 1)
	// Output: attempt 3 a placeholder
}
