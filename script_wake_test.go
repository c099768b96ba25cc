//go:build !race

package pawl

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Tokens are hints that there is work, two at most, and never for work that
// nobody could lease now or within ten seconds.
func TestTokensArePushedForWhatCanBeLeased(t *testing.T) {
	t.Parallel()
	const soon, later = 5 * time.Second, time.Minute
	cases := map[string]struct {
		want int64
		do   func(r *rig)
	}{
		"an enqueue of one job":                 {1, func(r *rig) { r.fresh(1) }},
		"an enqueue of many":                    {2, func(r *rig) { r.fresh(5) }},
		"two enqueues":                          {2, func(r *rig) { r.fresh(1); r.fresh(1) }},
		"three":                                 {2, func(r *rig) { r.fresh(1); r.fresh(1); r.fresh(3) }},
		"an enqueue with a priority":            {1, func(r *rig) { r.enqueue(nil, ranked(1, 5)...) }},
		"a delay that is long":                  {0, func(r *rig) { r.many(3, newJob{rec(long), "d 60000 0 0 d 0"}) }},
		"a delay that is short, and the first":  {1, func(r *rig) { r.many(3, newJob{rec(long), "d 5000 0 0 d 0"}) }},
		"a time that is past":                   {1, func(r *rig) { r.many(1, newJob{rec(long), "a 1000 0 0 d 0"}) }},
		"a duplicate":                           {0, func(r *rig) { r.unique("a", "d 0 0 1 d 0"); r.enqueue([]string{"a"}, newJob{rec(), "d 0 0 1 d 0"}) }},
		"a lease that is full and leaves none":  {0, func(r *rig) { r.fresh(2); r.lease(ask{n: 2}) }},
		"a lease that is full and leaves one":   {1, func(r *rig) { r.fresh(3); r.lease(ask{n: 2}) }},
		"a lease that is full and leaves many":  {2, func(r *rig) { r.fresh(9); r.lease(ask{n: 2}) }},
		"a lease that leaves a due job":         {1, func(r *rig) { r.due(2); r.lease(ask{n: 1}) }},
		"a lease that leaves a priority":        {1, func(r *rig) { r.enqueue(nil, ranked(2, 5)...); r.lease(ask{n: 1}) }},
		"a lease that leaves what ran out":      {2, func(r *rig) { r.expired(4); r.lease(ask{n: 1}) }},
		"a lease that is not full":              {0, func(r *rig) { r.fresh(3); r.lease(ask{n: 5}) }},
		"a lease that is full, a job due soon":  {1, func(r *rig) { r.put(soon); r.fresh(1); r.lease(ask{n: 1}) }},
		"a lease that is full, a job due later": {0, func(r *rig) { r.put(later); r.fresh(1); r.lease(ask{n: 1}) }},
		"a lease of a paused queue":             {0, func(r *rig) { r.fresh(3); r.pause(time.Hour); r.lease(ask{n: 1}) }},
		"a release":                             {1, func(r *rig) { h := r.one(); r.must("k", r.releaseShot(h)) }},
		"a release by one who had lost it":      {0, func(r *rig) { h := r.one(); r.lost(h, "second"); r.must("l", r.releaseShot(h)) }},
		"a redrive":                             {1, func(r *rig) { r.redriven(r.one()) }},
		"a retry soon":                          {1, func(r *rig) { r.must("k", r.retryShot("retried", soon, rec(long), r.one())) }},
		"a retry later":                         {0, func(r *rig) { r.must("k", r.retryShot("retried", later, rec(long), r.one())) }},
		"a retry soon, but after another": {0, func(r *rig) {
			r.put(soon / 2)
			h := r.fresh2()
			r.must("k", r.retryShot("retried", soon, rec(long), h))
		}},
		"a settle, a bury and an extend": {0, func(r *rig) {
			h := r.one()
			r.fire(r.extendShot(h))
			r.fire(r.settleShot("done", "", h))
			r.fire(r.buryShot("", r.one()))
		}},
		"an enqueue where two tokens wait by hand": {5, func(r *rig) { r.do("LPUSH", r.k.wake, 1, 1, 1, 1, 1); r.fresh(4) }},
	}
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, c := range cases {
			r := open(t)
			c.do(r)
			require.Equal(t, c.want, r.do("LLEN", r.k.wake), name)
			r.check()
		}
	})
}

// put adds a job that is due after d, and takes its token.
func (r *rig) put(d time.Duration) {
	r.many(1, newJob{rec(long), "d " + num(d.Milliseconds()) + " 0 0 d 0"})
	r.do("DEL", r.k.wake)
}

// fresh2 leases a fresh job out of some.
func (r *rig) fresh2() hold {
	id := r.fresh(1)[0]
	got := r.lease(ask{n: 1})
	require.Equal(r.t, id, got.jobs[0].id)
	r.do("DEL", r.k.wake)
	return hold{id, got.token}
}

func TestAPausedQueueIsNotLeased(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		r.fresh(2)
		r.pause(time.Hour)
		before := r.dump()
		delete(before, r.k.wake)
		got := r.lease(ask{n: 2})
		require.Empty(t, got.jobs)
		require.InDelta(t, time.Hour.Milliseconds(), got.next, 60_000)
		require.Equal(t, before, r.dump())
		r.do("HSET", r.k.meta, "paused", got.now) // over now
		require.Len(t, r.lease(ask{n: 2}).jobs, 2)
		r.check()
	})
}

// The milliseconds to the next possible work, from the caller's point of view.
func TestALeaseTellsWhenToComeAgain(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		require.EqualValues(t, -1, r.lease(ask{n: 1}).next, "nothing is in sight")
		h := r.one()
		got := r.lease(ask{n: 1})
		require.Equal(t, r.number("ZSCORE", r.k.leases, h.id), got.now+got.next, "when a lease may run out")
		ids := r.many(1, newJob{rec(long), "d 5000 0 0 d 0"})
		got = r.lease(ask{n: 1})
		require.Equal(t, r.number("ZSCORE", r.k.due, ids[0]), got.now+got.next, "when a job is due before that")
	})
}
