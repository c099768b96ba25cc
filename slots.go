package pawl

import "sync"

// slots shares a worker's Concurrency among its queues. A queue asks for slots
// before it leases, so that no job is leased that cannot start now.
//
// Weights are served by stride scheduling: each grant moves a queue's clock by
// grant/weight, and of the queues that wait, the one whose clock is behind goes
// first. A queue that was idle rejoins at the clock of the others; it saves up
// nothing.
type slots struct {
	mu     sync.Mutex
	total  int
	used   int
	strict bool
	queues []slotQueue
}

type slotQueue struct {
	weight, max, reserve int
	used                 int
	clock                float64
	wants                bool // it would take more than it was given
	idle                 bool // its last lease found it empty
	wake                 func()
}

// take gives queue q up to want slots. If it gives none, q is woken when it is
// worth asking again.
func (s *slots) take(q, want int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	me := &s.queues[q]
	if me.idle {
		me.idle = false
		me.clock = max(me.clock, s.slowest(q))
	}
	n := min(want, s.open(q))
	if n > 0 && s.strict && s.before(q) {
		n = 0
	} else if n > 0 && !s.strict {
		n = s.share(q, n)
	}
	me.wants = n < want
	me.used += n
	me.clock += float64(n) / float64(me.weight)
	s.used += n
	if n > 0 {
		s.notify(q) // those who let this queue go first
	}
	return n
}

// open is how many slots q could have if no other queue wanted any.
func (s *slots) open(q int) int {
	free := s.total - s.used
	for i := range s.queues {
		if other := &s.queues[i]; i != q {
			free -= max(0, other.reserve-other.used)
		}
	}
	return min(free, s.queues[q].max-s.queues[q].used)
}

// before reports whether a queue in front of q may have work.
func (s *slots) before(q int) bool {
	for i := range q {
		if !s.queues[i].idle && s.open(i) > 0 {
			return true
		}
	}
	return false
}

// share is how many of n open slots q gets beside the queues that wait.
func (s *slots) share(q, n int) int {
	weights, first := s.queues[q].weight, true
	for i := range s.queues {
		other := &s.queues[i]
		if i == q || !other.wants || s.open(i) <= 0 {
			continue
		}
		weights += other.weight
		if other.clock < s.queues[q].clock {
			first = false
			other.wake()
		}
	}
	part := n * s.queues[q].weight / weights
	if first {
		return max(1, part)
	}
	return part
}

// slowest is the least clock among the queues that are at work beside q.
func (s *slots) slowest(q int) float64 {
	least, found := 0.0, false
	for i := range s.queues {
		other := &s.queues[i]
		if i != q && !other.idle && (!found || other.clock < least) {
			least, found = other.clock, true
		}
	}
	return least
}

// give returns n slots of q and wakes the queues that wait for one.
func (s *slots) give(q, n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[q].used -= n
	s.used -= n
	s.notify(-1)
}

// unused is give for slots that no job was found for.
func (s *slots) unused(q, n int) {
	s.mu.Lock()
	s.queues[q].clock -= float64(n) / float64(s.queues[q].weight)
	s.mu.Unlock()
	s.give(q, n)
}

// rest says that q has nothing to do, or cannot do it, until it takes again.
func (s *slots) rest(q int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[q].idle, s.queues[q].wants = true, false
	s.notify(q)
}

// free reports whether q could start a job now.
func (s *slots) free(q int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open(q) > 0
}

// notify wakes the queues that want slots, but the one that asks.
func (s *slots) notify(but int) {
	for i := range s.queues {
		if i != but && s.queues[i].wants && s.open(i) > 0 {
			s.queues[i].wake()
		}
	}
}
