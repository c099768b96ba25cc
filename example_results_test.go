package pawl_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// Size is the result of a Thumbnail.
type Size struct{ Width, Height int }

// A finished job is gone, unless it is kept.
func ExampleRetain() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	images := m.Queue("images")
	kept := must(images.Enqueue(ctx, Thumbnail{Image: "cat.png"}, pawl.Retain(time.Hour)))
	plain := must(images.Enqueue(ctx, Thumbnail{Image: "dog.png"}))

	w := m.worker("images")
	pawl.Handle(w, func(context.Context, *pawl.Job[Thumbnail]) error { return nil })
	m.run(w, 2)

	info := must(images.Get(ctx, kept.ID))
	_, err := images.Get(ctx, plain.ID)
	fmt.Println(info.State, !info.DoneAt.IsZero(), string(info.Payload))
	fmt.Println(err != nil, must(images.Stats(ctx)).Done)
	// Output:
	// done true {"image":"cat.png"}
	// true 1
}

// What the handler returns is stored with the acknowledgement, in one step.
func ExampleHandleResult() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	images := m.Queue("images")
	job := must(images.Enqueue(ctx, Thumbnail{Image: "cat.png"}, pawl.Retain(time.Hour)))

	w := m.worker("images")
	pawl.HandleResult(w, func(_ context.Context, job *pawl.Job[Thumbnail]) (Size, error) {
		return Size{Width: 80, Height: 60}, nil
	})
	m.run(w, 1)

	info := must(images.Get(ctx, job.ID))
	fmt.Println(info.State, string(info.Result))
	// Output: done {"Width":80,"Height":60}
}

// For handlers of bytes, of a Kind, and for middleware.
func ExampleRawJob_SetResult() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	job := must(m.Queue("reports").EnqueueRaw(ctx, "report", []byte("2026-03"), pawl.Retain(time.Hour)))

	w := m.worker("reports")
	w.HandleRaw("report", func(_ context.Context, job *pawl.RawJob) error {
		job.SetResult(map[string]string{"file": "reports/" + string(job.Payload) + ".pdf"})
		return nil
	})
	m.run(w, 1)

	info := must(m.Queue("reports").Get(ctx, job.ID))
	fmt.Println(string(info.Result))
	// Output: {"file":"reports/2026-03.pdf"}
}

func printFinished(ctx context.Context, images *pawl.Queue) error {
	// region finished
	for job, err := range images.List(ctx, pawl.StateDone, pawl.Filter{}) {
		if err != nil {
			return err
		}
		fmt.Println(job.Kind, job.State, len(job.Result))
	}
	_, err := images.Purge(ctx, pawl.StateDone, pawl.Filter{Kind: "thumbnail"})
	// endregion
	return err
}

// Cancelled and discarded jobs that are kept are among those that are over.
func Example_finishedJobs() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	images := m.Queue("images")
	job := must(images.Enqueue(ctx, Thumbnail{Image: "cat.png"}, pawl.Retain(time.Hour)))
	mustNil(images.Cancel(ctx, job.ID))
	mustNil(printFinished(ctx, images))
	fmt.Println(must(images.Stats(ctx)).Done)
	// Output:
	// thumbnail cancelled 0
	// 0
}
