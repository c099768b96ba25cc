package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlq/pawl"
)

// count looks at the one export that failed, and checks that the story went as it is told
// and that nothing is left.
func (s *story) count(ctx context.Context) error {
	fmt.Println("What the queue has counted:")
	dead, err := s.queue.Dead().Purge(ctx, pawl.DeadFilter{}) // somebody has looked at it
	if err != nil {
		return err
	}
	stats, err := s.settled(ctx)
	if err != nil {
		return err
	}
	violations, err := s.queue.Check(ctx)
	if err != nil {
		return err
	}
	n := stats.Total
	fmt.Printf("          enqueued %d, done %d, failed %d, dead %d, cancelled %d\n", n.Enqueued, n.Done, n.Failed, n.Dead, n.Cancelled)
	fmt.Printf("          left: %d waiting, %d running, %d dead, %d kept\n", stats.Depth(), stats.Running, stats.Dead, stats.Done)
	fmt.Printf("          check: %d violations\n", len(violations))

	var wrong []error
	// Started is not looked at: on a busy machine a worker may be leased a job too late to
	// begin with it, and gives it back.
	n.Started, n.Released, n.Purged = 0, 0, 0
	if want := (pawl.Counters{Enqueued: 4, Done: 2, Failed: 1, Dead: 1, Cancelled: 1}); n != want || dead != 1 {
		wrong = append(wrong, fmt.Errorf("the counters are %+v, not %+v, and %d were dead", n, want, dead))
	}
	if stats.Depth() != 0 || stats.Running != 0 || stats.Dead != 0 || stats.Done != 0 {
		wrong = append(wrong, fmt.Errorf("something is left: %+v", stats))
	}
	for _, v := range violations {
		wrong = append(wrong, fmt.Errorf("check: %s", v))
	}
	return errors.Join(wrong...)
}

// settled is the counts once the cancelled export is kept no more either.
func (s *story) settled(ctx context.Context) (pawl.Stats, error) {
	for {
		stats, err := s.queue.Stats(ctx)
		if err != nil || stats.Done == 0 {
			return stats, err
		}
		if err := pause(ctx, pageTime); err != nil {
			return stats, fmt.Errorf("waiting for results to go: %w", err)
		}
	}
}
