package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// store stands for what the steps change, such as a blob store: it keeps one effect under
// each idempotency key, and what comes again under a key changes nothing. It also prints
// the steps of the chain that is followed, and remembers what was reported.
type store struct {
	start time.Time

	mu       sync.Mutex
	events   []event           // in the order in which they were heard
	more     chan struct{}     // closed when there is one more
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
	return &store{start: time.Now(), more: make(chan struct{}), effects: map[string]effect{}}
}

// hear takes what the workers tell, one line at a time.
func (s *store) hear(worker string, r report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	note := ""
	switch r.What {
	case "ready":
		s.line("worker "+worker, "is ready")
	case "begins":
		s.begun++
	case "effect":
		if _, ok := s.effects[r.Key]; ok {
			s.again++
			note = ", which is there already: nothing changes"
		}
		s.effects[r.Key] = effect{r.Chain, r.Kind}
	case "hands on", "ended":
		r.Chain = s.effects[r.Key].chain
	}
	if r.Chain != "" && r.Chain == s.followed {
		s.line("worker "+worker, "%-7s  %s%s", r.Kind, r.What, note)
	}
	s.events = append(s.events, event{r, worker})
	close(s.more)
	s.more = make(chan struct{})
}

// follow has the steps of this chain printed, and of no other; "" is none.
func (s *store) follow(chain string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followed = chain
}

// heard is how many events there were so far.
func (s *store) heard() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.events)
}

// await returns the first event after so many that is wanted. Events of two workers may be
// heard in another order than they happened.
func (s *store) await(ctx context.Context, from int, what string, wanted func(event) bool) (event, error) {
	for {
		s.mu.Lock()
		events, more := s.events[from:], s.more
		s.mu.Unlock()
		for _, e := range events {
			if wanted(e) {
				return e, nil
			}
		}
		from += len(events)
		select {
		case <-more:
		case <-ctx.Done():
			return event{}, fmt.Errorf("waiting until %s: %w", what, context.Cause(ctx))
		}
	}
}

func (s *store) line(who, format string, args ...any) {
	fmt.Printf("%5d ms  %-9s  %s\n", time.Since(s.start).Milliseconds(), who, fmt.Sprintf(format, args...))
}
