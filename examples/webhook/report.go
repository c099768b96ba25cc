package main

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/pawlq/pawl"
)

// count prints what became of it all, and checks that it is as it was told.
func (s *story) count(ctx context.Context) error {
	fmt.Println("\nWhat became of it:")
	var wrong []error
	for _, c := range s.customers {
		effects, repeats := c.events()
		field("customer", "%-6s  %d events had their effect, %d came again", c.name, len(effects), repeats)
		wrong = append(wrong, verifyCustomer(c.name, effects, repeats))
	}
	dead := 0
	for job, err := range s.queue.Dead().List(ctx, pawl.DeadFilter{}) {
		if err != nil {
			return err
		}
		dead++
		field("dead", "%s, %s after attempt %d: %s", short(job.ID), job.Reason, job.Attempt, job.Error)
	}
	stats, err := s.queue.Stats(ctx)
	if err != nil {
		return err
	}
	// Check walks every key of the queue: it finds nothing unless somebody
	// edited or lost some.
	violations, err := s.queue.Check(ctx)
	if err != nil {
		return err
	}
	n := stats.Total
	field("counted", "enqueued %d, duplicate %d, done %d, dead %d", n.Enqueued, n.Duplicate, n.Done, n.Dead)
	field("left", "%d waiting, %d running, %d dead", stats.Depth(), stats.Running, stats.Dead)
	field("check", "%d violations", len(violations))
	fmt.Println()

	if n.Enqueued != 11 || n.Duplicate != 6 || n.Done != 9 || dead != 2 || stats.Depth() != 0 || stats.Running != 0 || stats.Dead != 2 {
		wrong = append(wrong, fmt.Errorf("the queue says %+v", stats))
	}
	for _, v := range violations {
		wrong = append(wrong, fmt.Errorf("check: %s", v))
	}
	return errors.Join(wrong...)
}

func field(name, format string, args ...any) {
	fmt.Printf("          %-8s  %s\n", name, fmt.Sprintf(format, args...))
}

// verifyCustomer is nil if each event had its effect once, or none where the
// customer refused it.
func verifyCustomer(name string, effects map[string]int, repeats int) error {
	want, came := map[string]int{firstEvent: 1}, 0
	switch name {
	case "well":
		for n := 2; n <= 6; n++ {
			want[fmt.Sprintf("evt_%d", n)] = 1
		}
	case "gone", "strict":
		want = map[string]int{}
	case "mute":
		came = 1
	}
	if !maps.Equal(effects, want) || repeats < came {
		return fmt.Errorf("customer %s: effects %v, %d came again", name, effects, repeats)
	}
	return nil
}
