package pawl_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// Export writes a table to a file; Publish puts that where customers find it.
type (
	Export  struct{ Table string }
	Publish struct{ File string }
)

func (Export) Kind() string  { return "export" }
func (Publish) Kind() string { return "publish" }

// region overtime

// export is a job that takes a while, has a result, and is followed by another job.
func export(ctx context.Context, job *pawl.Job[Export]) (string, error) {
	if err := job.Progress(ctx, 50, "half of "+job.Args.Table); err != nil { // seen by Get
		return "", err
	}
	file := job.Args.Table + ".csv"
	job.Then(Publish{File: file}) // enqueued if, and only if, this job is done
	return file, nil              // kept, if the job was enqueued with Retain
}

// nightly is called at each start, by each process: it is one schedule all the same.
func nightly(ctx context.Context, q *pawl.Queue) error {
	return q.Schedule(ctx, pawl.Schedule{
		ID:   "nightly",
		When: pawl.CronIn("Europe/Berlin", "30 2 * * *"), // or pawl.Every(2 * time.Second)
		Args: Export{Table: "orders"},
	})
}

// exportNow waits for the file until ctx ends.
func exportNow(ctx context.Context, q *pawl.Queue, table string) (string, error) {
	job, err := q.Enqueue(ctx, Export{Table: table}, pawl.Retain(time.Hour))
	if err != nil {
		return "", err
	}
	return pawl.Await[string](ctx, q, job.ID)
}

// endregion

// Recurring jobs, results, waiting, progress and follow-ups, together.
func Example_workOverTime() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	files := m.Queue("files")
	mustNil(nightly(ctx, files))

	w := m.worker("files")
	pawl.HandleResult(w, export)
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Publish]) error {
		fmt.Println("published", job.Args.File)
		return nil
	})
	ended := make(chan struct{})
	go func() { defer close(ended); m.run(w, 2) }()
	file := must(exportNow(ctx, files, "users"))
	<-ended
	fmt.Println("made", file)
	// Output:
	// published users.csv
	// made users.csv
}
