package pawl

import (
	"crypto/rand"
	"strconv"
	"sync"
	"time"
)

// laneMemory is how long Redis remembers the last call of a lane after it was
// made; laneTrust is how long pawl relies on it, counted from the first send.
const (
	laneMemory = 2 * time.Minute
	laneTrust  = laneMemory / 2
)

// A lane is a line of calls, one at a time, each with a number above the one
// before. Redis keeps the last number and its answer, so a call that is sent
// again is answered and not repeated, and one that arrives late is refused.
type lane struct {
	key string
	seq int64
}

// next starts a new call and returns its sequence.
func (l *lane) next() string {
	l.seq++
	return strconv.FormatInt(l.seq, 10)
}

func newLane(k *keyspace) *lane {
	return &lane{key: k.lane(rand.Text()[:16])}
}

// lanePool lends lanes. A lane comes back only when its call has really ended:
// never while a packet of it may still be under way without a newer call's
// number to refuse it.
type lanePool struct {
	keys *keyspace
	mu   sync.Mutex
	free []*lane
}

func (p *lanePool) get() *lane {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		l := p.free[n-1]
		p.free = p.free[:n-1]
		return l
	}
	return newLane(p.keys)
}

func (p *lanePool) put(l *lane) {
	p.mu.Lock()
	p.free = append(p.free, l)
	p.mu.Unlock()
}
