package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlq/pawl"
)

// verdict is how many steps were done by one job, by none, by several, and how many were
// done that nobody asked for.
type verdict struct{ once, missing, doubled, unasked int }

// judge looks for each step of each chain. Two effects of a step under one key are one
// job, which ran twice; under two keys they are two jobs, of which one is too many.
func judge(photos, nights int, effects map[string]effect) (v verdict) {
	jobs := map[effect]int{}
	for _, e := range effects {
		jobs[e]++
	}
	look := func(chain string, kinds []string) {
		for _, kind := range kinds {
			step := effect{chain, kind}
			switch jobs[step] {
			case 0:
				v.missing++
			case 1:
				v.once++
			default:
				v.doubled++
			}
			delete(jobs, step)
		}
	}
	for n := range photos {
		look(photo(n+1), chains["photo"])
	}
	for n := range nights {
		look(night(n+1), chains["night"])
	}
	v.unasked = len(jobs)
	return v
}

func (v verdict) wrong() error {
	if v.missing == 0 && v.doubled == 0 && v.unasked == 0 {
		return nil
	}
	return fmt.Errorf("steps: %+v", v)
}

// count says what became of it all, and checks it.
func (s *story) count(ctx context.Context) error {
	fmt.Println("What became of it:")
	field := func(name, format string, args ...any) {
		fmt.Printf("          %-8s  %s\n", name, fmt.Sprintf(format, args...))
	}
	s.store.mu.Lock()
	v, begun, again := judge(s.photos, s.nights, s.store.effects), s.store.begun, s.store.again
	s.store.mu.Unlock()
	field("chains", "%d photos of %d steps, %d nights of %d", s.photos, len(chains["photo"]), s.nights, len(chains["night"]))
	field("workers", "%d started, %d killed", s.started, s.killed)
	field("runs", "%d begun; %d effects came again under their key, and changed nothing", begun, again)
	field("steps", "%d done by one job each, %d missing, %d doubled", v.once, v.missing, v.doubled)

	photoSteps, nightSteps := len(chains["photo"]), len(chains["night"])
	return errors.Join(v.wrong(),
		countQueue(ctx, s.work, s.photos*(photoSteps-1)+s.nights*nightSteps, field),
		countQueue(ctx, s.mail, s.photos, field))
}

// countQueue checks that so many jobs were enqueued and done, and that nothing is left.
func countQueue(ctx context.Context, q *pawl.Queue, jobs int, field func(name, format string, args ...any)) error {
	stats, err := q.Stats(ctx)
	if err != nil {
		return err
	}
	violations, err := q.Check(ctx)
	if err != nil {
		return err
	}
	n, left := stats.Total, stats.Depth()+stats.Running+stats.Dead
	field(q.Name(), "enqueued %d, duplicate %d, done %d, failed %d; left %d waiting, %d running, %d dead; check: %d violations",
		n.Enqueued, n.Duplicate, n.Done, n.Failed, stats.Depth(), stats.Running, stats.Dead, len(violations))
	var wrong []error
	if n.Enqueued != int64(jobs) || n.Done != int64(jobs) || n.Failed != 0 || left != 0 {
		wrong = append(wrong, fmt.Errorf("queue %s: not %d jobs, all of them done: %+v", q.Name(), jobs, stats))
	}
	for _, v := range violations {
		wrong = append(wrong, fmt.Errorf("check of queue %s: %s", q.Name(), v))
	}
	return errors.Join(wrong...)
}
