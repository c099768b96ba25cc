package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
)

// processes is how many workers run at a time.
const processes = 2

// launch starts as many workers as there should be.
func (s *story) launch(ctx context.Context) error {
	for len(s.fleet.Running()) < processes {
		s.started++
		if err := s.fleet.Start(ctx, strconv.Itoa(s.started), s.namespace); err != nil {
			return err
		}
	}
	return nil
}

// moment is one at which a worker is killed: when it reports this of a step.
type moment struct{ what, text string }

var (
	between = moment{"ended", "between two steps"}
	within  = moment{"begins", "within a step"}
	after   = moment{"effect", "after the effect of a step, before its end is stored"}
)

// killAt kills the worker that reports the moment, of a step of this kind unless that is
// "", and starts another in its place.
func (s *story) killAt(ctx context.Context, m moment, kind string) error {
	running := s.fleet.Running()
	e, err := s.store.await(ctx, fmt.Sprintf("%s %s", kind, m.what), func(e event) bool {
		// A report of one that was killed may still be there.
		return e.What == m.what && (kind == "" || e.Kind == kind) && slices.Contains(running, e.worker)
	})
	if err != nil {
		return err
	}
	if err := s.fleet.Kill(e.worker); err != nil {
		return err
	}
	s.killed++
	s.store.line("parent", "kills worker %s (SIGKILL) %s: %s of %s", e.worker, m.text, e.Kind, e.Chain)
	return s.launch(ctx)
}
