package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
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
	within  = moment{"begins", "within a step"}
	after   = moment{"effect", "after the effect of a step, before its end is stored"}
	handsOn = moment{"hands on", "after the mail was enqueued, before the end of the step is stored"}
	between = moment{"ended", "between two steps"}
)

// killAt kills the worker that reports the moment, of a step of this kind unless that is
// "", as one of the events after so many, and starts another in its place.
func (s *story) killAt(ctx context.Context, from int, m moment, kind string) error {
	running := s.fleet.Running()
	e, err := s.store.await(ctx, from, strings.TrimSpace(kind+" "+m.what), func(e event) bool {
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
