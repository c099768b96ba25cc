package main

import "sync"

// store stands for a blob store that all workers share. It keeps the parts of a
// job under its idempotency key: that is the checkpoint. pawl keeps none, and
// starts each run of a job with nothing but its arguments.
type store struct {
	journal *journal
	mu      sync.Mutex
	parts   map[string]map[int]bool
}

// stored is how many parts are there, without a gap.
func (s *store) stored(key string) (n int) {
	s.mu.Lock()
	for s.parts[key][n+1] {
		n++
	}
	s.mu.Unlock()
	if n > 0 {
		s.journal.line("resume", s.journal.video(key), "after part %d, where the run before stopped", n)
	}
	return n
}

func (s *store) put(key string, part int) {
	s.mu.Lock()
	if s.parts[key] == nil {
		s.parts[key] = map[int]bool{}
	}
	s.parts[key][part] = true
	s.mu.Unlock()
	s.journal.part(s.journal.video(key), part)
}

func (s *store) remove(key string) {
	s.mu.Lock()
	n := len(s.parts[key])
	delete(s.parts, key)
	s.mu.Unlock()
	s.journal.line("clear up", s.journal.video(key), "%d parts removed", n)
}

// count is how many parts are kept of a job.
func (s *store) count(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.parts[key])
}

// jobs is how many jobs have left parts here.
func (s *store) jobs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.parts)
}
