package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/pawlq/pawl"
)

// count checks that the story went as it is told, and that nothing is left.
func (s *studio) count(ctx context.Context) error {
	stats, err := s.queue.Stats(ctx)
	if err != nil {
		return err
	}
	violations, err := s.queue.Check(ctx)
	if err != nil {
		return err
	}
	files, err := os.ReadDir(s.tmp)
	if err != nil {
		return err
	}
	n := stats.Total
	fmt.Println("What the queue has counted:")
	fmt.Printf("          enqueued %d, done %d, failed %d, retried %d, dead %d, cancelled %d, released %d, crashed %d\n",
		n.Enqueued, n.Done, n.Failed, n.Retried, n.Dead, n.Cancelled, n.Released, n.Crashed)
	fmt.Printf("          left: %d waiting, %d running, %d dead, %d scratch files\n", stats.Depth(), stats.Running, stats.Dead, len(files))
	fmt.Printf("          check: %d violations\n", len(violations))

	var wrong []error
	// Started is not looked at: on a busy machine a worker may be leased a job
	// too late to begin with it, and gives it back.
	n.Started, n.Released, n.Purged = 0, 0, 0
	if want := (pawl.Counters{Enqueued: 5, Done: 3, Failed: 2, Retried: 1, Dead: 1, Cancelled: 1}); n != want {
		wrong = append(wrong, fmt.Errorf("the counters are %+v, not %+v", n, want))
	}
	if stats.Depth() != 0 || stats.Running != 0 || stats.Dead != 0 || len(files) != 0 {
		wrong = append(wrong, fmt.Errorf("something is left: %+v, %d files", stats, len(files)))
	}
	if kept := s.store.jobs(); kept != 3 {
		wrong = append(wrong, fmt.Errorf("the parts of %d videos are kept, not those of 3", kept))
	}
	for _, v := range violations {
		wrong = append(wrong, fmt.Errorf("check: %s", v))
	}
	return errors.Join(wrong...)
}
