package pawl

import "sync"

// slots shares a worker's Concurrency among its queues. A queue asks for slots
// before it leases, so that no job is leased that cannot start now.
//
// Weights are served by stride scheduling: each grant moves a queue's clock by
// grant/weight, and of the queues that wait, the one whose clock is behind goes
// first. A queue that was idle rejoins at the clock of the others; it saves up
// nothing, and costs nothing: only the others are walked.
type slots struct {
	mu       sync.Mutex
	total    int
	used     int
	unfilled int // of the reserves of all queues
	strict   bool
	queues   []slotQueue
	active   []int // the queues that are not idle, in no order
}

type slotQueue struct {
	weight, max, reserve int
	used                 int
	clock                float64
	wants                bool // it would take more than it was given
	woken                bool // and is about to ask
	idle                 bool // its last lease found it empty
	place                int  // in active, if it is not idle
	wake                 func()
}

// unfilled is how many slots of its reserve are free.
func (q *slotQueue) unfilled() int { return max(0, q.reserve-q.used) }

// add is for one more queue, before any of them asks.
func (s *slots) add(q slotQueue) {
	q.place = len(s.active)
	s.active = append(s.active, len(s.queues))
	s.queues = append(s.queues, q)
	s.unfilled += q.unfilled()
}

// take gives queue q up to want slots. If it gives none, q is woken when it is
// worth asking again.
func (s *slots) take(q, want int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	me := &s.queues[q]
	me.woken = false
	if me.idle {
		me.clock = max(me.clock, s.slowest(q))
		me.idle, me.place = false, len(s.active)
		s.active = append(s.active, q)
	}
	n := min(want, s.open(q))
	open := n > 0
	switch {
	case open && s.strict && s.before(q):
		n = 0
	case open && !s.strict:
		n = s.share(q, n)
	}
	me.wants = n < want
	me.clock += float64(n) / float64(me.weight)
	s.use(q, n)
	if open {
		s.notify(q) // those who let this queue go first, or go before it
	}
	return n
}

// use counts n slots more for q, or less.
func (s *slots) use(q, n int) {
	me := &s.queues[q]
	s.unfilled -= me.unfilled()
	me.used += n
	s.used += n
	s.unfilled += me.unfilled()
}

// open is how many slots q could have if no other queue wanted any.
func (s *slots) open(q int) int {
	me := &s.queues[q]
	free := s.total - s.used - (s.unfilled - me.unfilled())
	return min(free, me.max-me.used)
}

// waits reports whether q wants slots that it could have but for the others.
func (s *slots) waits(q int) bool { return s.queues[q].wants && s.open(q) > 0 }

// before reports whether a queue in front of q may have work.
func (s *slots) before(q int) bool {
	for _, i := range s.active {
		if i < q && s.open(i) > 0 {
			return true
		}
	}
	return false
}

// share is how many of n open slots q gets beside the queues that wait.
func (s *slots) share(q, n int) int {
	weights, first := s.queues[q].weight, true
	for _, i := range s.active {
		if i != q && s.waits(i) {
			weights += s.queues[i].weight
			first = first && s.queues[i].clock >= s.queues[q].clock
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
	for _, i := range s.active {
		if other := &s.queues[i]; i != q && (!found || other.clock < least) {
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
	s.use(q, -n)
	s.notify(-1)
}

// freed is give of a run's slot, whose queue asks anyway when the outcome is sent.
func (s *slots) freed(q int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.use(q, -1)
	s.notify(q)
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
	if me := &s.queues[q]; !me.idle {
		me.idle, me.wants = true, false
		last := s.active[len(s.active)-1]
		s.active[me.place], s.queues[last].place = last, me.place
		s.active = s.active[:len(s.active)-1]
	}
	s.notify(q)
}

// free reports whether q could start a job now.
func (s *slots) free(q int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open(q) > 0
}

// notify wakes queues to which take would give slots, but not the one that asks. It
// wakes twice as many as there are slots, for one may be late: if thousands were
// woken for each slot, they would do nothing else. Who takes wakes the next.
func (s *slots) notify(but int) {
	front, least, weights := len(s.queues), -1, 0
	for _, i := range s.active {
		if s.open(i) <= 0 {
			continue
		}
		front = min(front, i)
		if q := &s.queues[i]; q.wants {
			weights += q.weight
			if least < 0 || q.clock < s.queues[least].clock {
				least = i
			}
		}
	}
	if least < 0 {
		return
	}
	spare := 2 * (s.total - s.used)
	for _, i := range s.active {
		q := &s.queues[i]
		if i == but || q.woken || !s.waits(i) {
			continue
		}
		gets := q.clock <= s.queues[least].clock || s.open(i)*q.weight >= weights
		if s.strict {
			gets = i == front
		}
		if gets {
			q.woken = true
			q.wake()
			if spare--; spare <= 0 {
				return
			}
		}
	}
}
