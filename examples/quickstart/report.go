package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pawlq/pawl"
)

// onlyDead is the one job that died.
func (s *shop) onlyDead(ctx context.Context) (pawl.DeadJob, error) {
	var all []pawl.DeadJob
	for job, err := range s.queue.Dead().List(ctx, pawl.DeadFilter{}) {
		if err != nil {
			return pawl.DeadJob{}, err
		}
		all = append(all, job)
	}
	if len(all) != 1 || all[0].Reason != pawl.ReasonExhausted || len(all[0].Errors) != 2 {
		return pawl.DeadJob{}, fmt.Errorf("one job dead after two attempts was to be found, not %+v", all)
	}
	return all[0], nil
}

func printPostMortem(d pawl.DeadJob) {
	field := func(name, format string, args ...any) {
		fmt.Printf("          %-8s  %s\n", name, fmt.Sprintf(format, args...))
	}
	field("job", "%s %s", d.Kind, d.ID)
	field("payload", "%s", d.Payload)
	field("reason", "%s", d.Reason)
	field("error", "%s", d.Error)
	for _, e := range d.Errors {
		field("attempt", "%d failed %d ms after the enqueue", e.Attempt, e.At.Sub(d.EnqueuedAt).Milliseconds())
	}
	field("stack", "%s", ownFrame(d.Stack))
	field("worker", "%s", d.Worker)
	field("build", "%s", d.Build)
}

// ownFrame is the first place in a stack that lies in this program. What is
// above it is how Go panics.
func ownFrame(stack string) string {
	lines := strings.Split(stack, "\n")
	for i, function := range lines[:len(lines)-1] {
		if name, _, ok := strings.Cut(function, "("); ok && strings.HasPrefix(name, "main.") {
			place, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
			return name + " at " + filepath.Base(place)
		}
	}
	return stack
}

// count prints what the queue has counted, and checks that the story went as
// it is told.
func (s *shop) count(ctx context.Context) error {
	fmt.Println("What the queue has counted:")
	stats, err := s.queue.Stats(ctx)
	if err != nil {
		return err
	}
	n := stats.Total
	fmt.Printf("          enqueued %d, duplicate %d, started %d, done %d, failed %d, retried %d, dead %d, redriven %d\n",
		n.Enqueued, n.Duplicate, n.Started, n.Done, n.Failed, n.Retried, n.Dead, n.Redriven)
	fmt.Printf("          left: %d waiting, %d running, %d dead\n", stats.Depth(), stats.Running, stats.Dead)

	// Check walks every key of the queue: it finds nothing unless somebody
	// edited or lost some.
	violations, err := s.queue.Check(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("          check: %d violations\n", len(violations))

	var wrong []error
	want := pawl.Counters{Enqueued: 3, Duplicate: 1, Started: 7, Done: 3, Failed: 4, Retried: 3, Dead: 1, Redriven: 1}
	if n != want {
		wrong = append(wrong, fmt.Errorf("the counters are %+v, not %+v", n, want))
	}
	if stats.Depth() != 0 || stats.Running != 0 || stats.Dead != 0 {
		wrong = append(wrong, fmt.Errorf("jobs are left: %+v", stats))
	}
	for _, v := range violations {
		wrong = append(wrong, fmt.Errorf("check: %s", v))
	}
	if charges := len(s.gateway.charges); charges != 1 {
		wrong = append(wrong, fmt.Errorf("the card was charged %d times", charges))
	}
	return errors.Join(wrong...)
}
