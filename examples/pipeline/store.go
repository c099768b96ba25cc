package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// store stands for what the steps change, such as a blob store: it keeps one effect under
// each idempotency key, and what comes again under a key changes nothing. It also prints
// the steps of the chain that is followed, and hands on what is reported.
type store struct {
	start  time.Time
	events chan event // never full: workers must not wait

	mu       sync.Mutex
	effects  map[string]effect // by key
	again    int               // effects that were there already
	begun    int               // runs of steps
	followed string            // a chain
}

// effect is what a step did.
type effect struct{ chain, kind string }

type event struct {
	report
	worker string
}

func newStore() *store {
	return &store{start: time.Now(), events: make(chan event, 1<<14), effects: map[string]effect{}}
}

// hear takes what the workers tell, one line at a time.
func (s *store) hear(worker string, r report) {
	s.mu.Lock()
	note := ""
	switch r.What {
	case "begins":
		s.begun++
	case "effect":
		if _, ok := s.effects[r.Key]; ok {
			s.again++
			note = ", which is there already: nothing changes"
		}
		s.effects[r.Key] = effect{r.Chain, r.Kind}
	case "ended":
		r.Chain = s.effects[r.Key].chain
	}
	told := r.Chain == s.followed && r.Chain != ""
	s.mu.Unlock()
	switch {
	case r.What == "ready":
		s.line("worker "+worker, "is ready")
	case told:
		s.line("worker "+worker, "%-7s  %s%s", r.Kind, r.What, note)
	}
	s.events <- event{r, worker}
}

// follow has the steps of this chain printed, and of no other; "" is none.
func (s *store) follow(chain string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followed = chain
}

// await returns the first event that is wanted. Those before it are passed over.
func (s *store) await(ctx context.Context, what string, wanted func(event) bool) (event, error) {
	for {
		select {
		case e := <-s.events:
			if wanted(e) {
				return e, nil
			}
		case <-ctx.Done():
			return event{}, fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
		}
	}
}

// forget passes over what was reported and not looked at.
func (s *store) forget() {
	for {
		select {
		case <-s.events:
		default:
			return
		}
	}
}

func (s *store) line(who, format string, args ...any) {
	fmt.Printf("%5d ms  %-9s  %s\n", time.Since(s.start).Milliseconds(), who, fmt.Sprintf(format, args...))
}
