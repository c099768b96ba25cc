package pawl_test

import (
	"context"
	"fmt"

	"github.com/pawlq/pawl"
)

// Transcode cuts a film into pieces, one after another.
type Transcode struct {
	Film   string `json:"film"`
	Pieces int    `json:"pieces"`
}

func (Transcode) Kind() string { return "transcode" }

// region transcode

func transcode(ctx context.Context, job *pawl.Job[Transcode]) error {
	for i := range job.Args.Pieces {
		done := 100 * float64(i) / float64(job.Args.Pieces)
		if err := job.Progress(ctx, done, fmt.Sprintf("piece %d of %d", i+1, job.Args.Pieces)); err != nil {
			return err // another worker has the job: stop
		}
		cutPiece(ctx, job.Args.Film, i)
	}
	return nil
}

// endregion

var cutPiece = func(context.Context, string, int) {}

// A handler may call it in its innermost loop: about one value a second is sent.
func ExampleRawJob_Progress() {
	m := inMemory()
	defer m.stop()
	films := m.Queue("films")
	job := must(films.Enqueue(context.Background(), Transcode{"metropolis", 4}))

	cutPiece = func(ctx context.Context, _ string, i int) {
		if i == 0 {
			// region look
			info := must(films.Get(ctx, job.ID))
			fmt.Println(info.State, info.Percent, info.Note)
			// endregion
		}
	}
	w := m.worker("films")
	pawl.Handle(w, transcode)
	m.run(w, 1)
	// Output: running 0 piece 1 of 4
}
