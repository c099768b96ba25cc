package pawl

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// market is the queues of a worker, as slots sees them: they ask when they have
// work or were woken, lease what they were given room for, and rest when that was
// the last.
type market struct {
	s        slots
	r        *rand.Rand
	backlog  []int
	running  []int
	inFlight []int  // slots of the lease under way
	hungry   []bool // it may have work
	asks     []bool // its loop is about to look
}

func newMarket(r *rand.Rand, strict bool) *market {
	m := &market{r: r}
	m.s.total, m.s.strict = 1+r.IntN(12), strict
	spare := m.s.total - 1 // one slot is nobody's, as NewWorker demands
	for i := range 1 + r.IntN(12) {
		q := slotQueue{weight: 1, max: m.s.total, wake: func() { m.asks[i] = true }}
		if !strict {
			q.weight += r.IntN(4)
		}
		if r.IntN(3) == 0 && spare > 0 {
			q.reserve = 1 + r.IntN(spare)
			spare -= q.reserve
		}
		if r.IntN(3) == 0 {
			q.max = max(1, q.reserve, r.IntN(m.s.total+1))
		}
		m.s.add(q)
		m.asks, m.hungry = append(m.asks, true), append(m.hungry, true)
	}
	n := len(m.asks)
	m.backlog, m.running, m.inFlight = make([]int, n), make([]int, n), make([]int, n)
	return m
}

// ask is the queue's loop, woken: one lease at a time.
func (m *market) ask(q int) {
	m.asks[q] = false
	if m.hungry[q] && m.inFlight[q] == 0 {
		m.inFlight[q] = m.s.take(q, m.s.total)
	}
}

// answer is the lease, come back.
func (m *market) answer(q int) {
	held := m.inFlight[q]
	got := min(held, m.backlog[q])
	m.inFlight[q] = 0
	m.backlog[q] -= got
	m.running[q] += got
	m.s.unused(q, held-got)
	if got < held && m.backlog[q] == 0 {
		m.hungry[q] = false
		m.s.rest(q)
	}
	m.asks[q] = true
}

// settle lets the queues ask, and leases be answered, in any order, until none has
// anything to do.
func (m *market) settle() {
	for {
		var busy []func()
		for q := range m.asks {
			if m.inFlight[q] > 0 {
				busy = append(busy, func() { m.answer(q) })
			}
			if m.asks[q] {
				busy = append(busy, func() { m.ask(q) })
			}
		}
		if len(busy) == 0 {
			return
		}
		busy[m.r.IntN(len(busy))]()
	}
}

func TestNoSlotStaysFreeThatAQueueWaitsFor(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		m := newMarket(rand.New(rand.NewPCG(seed, 1)), seed%3 == 0)
		for range 60 {
			for range m.r.IntN(4) {
				q := m.r.IntN(len(m.asks))
				m.backlog[q] += m.r.IntN(5)
				m.asks[q], m.hungry[q] = true, true
			}
			m.settle()
			for range m.r.IntN(4) {
				if q := m.r.IntN(len(m.asks)); m.running[q] > 0 {
					m.running[q]--
					m.s.freed(q)
					m.asks[q] = true // when the outcome is sent
				}
			}
			m.settle()
			m.check(t, seed)
		}
	}
}

// check asks what is open of the queues themselves, as slots must not on its way.
func (m *market) check(t *testing.T, seed uint64) {
	t.Helper()
	used, active := 0, 0
	for q := range m.asks {
		me := &m.s.queues[q]
		require.Equal(t, m.running[q], me.used, "seed %d", seed)
		used += me.used
		open := m.s.total
		for i, other := range m.s.queues {
			open -= other.used
			if i != q {
				open -= max(0, other.reserve-other.used)
			}
		}
		open = min(open, me.max-me.used)
		require.Equal(t, open, m.s.open(q), "seed %d", seed)
		require.Equal(t, m.hungry[q], !me.idle, "seed %d: queue %d", seed, q)
		require.True(t, m.hungry[q] || m.backlog[q] == 0, "seed %d: queue %d has work and rests", seed, q)
		if !me.idle {
			active++
			require.Equal(t, q, m.s.active[me.place], "seed %d", seed)
			require.LessOrEqual(t, open, 0, "seed %d: queue %d waits for a slot that is free", seed, q)
		}
	}
	require.Equal(t, used, m.s.used, "seed %d", seed)
	require.Len(t, m.s.active, active, "seed %d", seed)
}

// A worker with thousands of queues that ask at once would do nothing else if each
// slot woke them all.
func TestASlotWakesFewOfManyThatWait(t *testing.T) {
	t.Parallel()
	woken := 0
	s := slots{total: 2}
	for range 1000 {
		s.add(slotQueue{weight: 1, max: 2, wake: func() { woken++ }})
	}
	for q := range 1000 {
		s.take(q, 2)
	}
	woken = 0
	s.give(0, 1)
	require.Positive(t, woken)
	require.LessOrEqual(t, woken, 2)
}

// The first job of a batch to end does not wake its queue, which waits for the others.
func TestAQueueThatFreesASlotIsNotWokenByIt(t *testing.T) {
	t.Parallel()
	var woken []int
	s := slots{total: 2}
	for q := range 3 {
		s.add(slotQueue{weight: 1, max: 2, wake: func() { woken = append(woken, q) }})
	}
	require.Equal(t, 2, s.take(0, 10))
	s.freed(0)
	require.Empty(t, woken)
	require.Equal(t, 1, s.take(1, 1)+s.take(2, 1), "one slot is free")
	woken = nil
	s.freed(0)
	require.NotContains(t, woken, 0)
	require.NotEmpty(t, woken, "the others are")
}
