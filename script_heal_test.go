//go:build !race

package pawl

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/record"
)

// What an eviction, a failover or a hand edit took is found again by idle lease
// calls, without a crash counted.
func TestOrphansComeBack(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, orphan := range map[string]func(r *rig) string{
			"an entry behind the cursor": func(r *rig) string {
				r.fresh(30)
				id := r.lease(ask{n: 30}).jobs[17].id
				r.do("ZREM", r.k.leases, id)
				return id
			},
			"an entry behind the cursor without a run entry": func(r *rig) string {
				r.fresh(30)
				id := r.lease(ask{n: 30}).jobs[29].id
				r.do("ZREM", r.k.leases, id)
				r.do("HDEL", r.k.runs, id)
				return id
			},
			"a record that waited for a time": func(r *rig) string {
				r.many(5, newJob{rec(long), "d 60000 0 0 d 0"})
				return r.enqueueHeld()
			},
			"a record that waited with a priority": func(r *rig) string {
				ids := r.many(5, newJob{rec(priority(4)), "d 60000 4 0 d 0"})
				r.do("ZREM", r.k.due, ids[2])
				return ids[2]
			},
			"a record that was being run": func(r *rig) string {
				h := r.one()
				r.must("k", r.retryShot("retried", 0, rec(long), h))
				r.ripen(h.id)
				r.lease(ask{n: 1})
				r.do("ZREM", r.k.leases, h.id)
				return h.id
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := open(t)
				id := orphan(r)
				var got answer
				for calls := 0; len(got.jobs) == 0; calls++ {
					require.Less(t, calls, 8)
					got = r.lease(ask{n: 1})
				}
				require.Equal(t, id, got.jobs[0].id)
				require.Equal(t, "0", got.jobs[0].crashes)
				require.Empty(t, got.jobs[0].flags)
				require.EqualValues(t, 1, r.counter("healed"))
				require.Zero(t, r.counter("crashed"))
				r.check()
			})
		}
	})
}

func TestASoundQueueIsNotHealed(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		r.fresh(20)
		r.lease(ask{n: 20})
		r.many(20, newJob{rec(long), "d 60000 0 0 d 0"})
		r.enqueue(nil, newJob{rec(priority(4), suspect), "d 0 4 0 d 0"}) // skipped below
		before := r.dump()
		delete(before, r.k.meta)
		for range 20 {
			require.Empty(t, r.lease(ask{n: 5, noSuspect: true}).jobs)
		}
		after := r.dump()
		delete(after, r.k.meta)
		delete(before, r.k.wake)
		require.Equal(t, before, after)
		require.Zero(t, r.counter("healed"))
		r.check()
	})
}

// An idle call must cost nothing but its lane: a fleet makes many.
func TestAnIdleCallWritesNothing(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		r.lease(ask{n: 5})
		require.Empty(t, r.dump(), "of a queue that never was")
		h := r.one()
		r.lease(ask{n: 5})
		before := r.dump()
		r.lease(ask{n: 5})
		require.Equal(t, before, r.dump())
		r.must("k", r.settleShot("done", "", h))
		before = r.dump()
		r.lease(ask{n: 5})
		r.lease(ask{n: 5})
		require.Equal(t, before, r.dump())
	})
}

func TestIdsWithoutARecordAreDroppedAndCounted(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		const each = 300
		for _, key := range []string{r.k.leases, r.k.due, r.k.prio} {
			args := []any{"ZADD", key}
			for range each {
				args = append(args, 1000, "1750000000000000-"+newLow())
			}
			r.do(args...)
		}
		last := r.due(1)[0]
		r.do("ZADD", r.k.due, "XX", 1001, last) // behind them all
		var found []string
		for calls := 0; len(found) == 0; calls++ {
			require.Less(t, calls, 12)
			got := r.lease(ask{n: 1})
			found = got.ids()
			if len(found) == 0 {
				require.Zero(t, got.next, "there may be work behind what was dropped")
			}
		}
		require.Equal(t, []string{last}, found)
		for r.lease(ask{n: 500}).next == 0 {
		}
		require.EqualValues(t, 3*each, r.counter("lost"))
		r.check()
	})
}

// Lost with the hash: the cursor, the last id, the fence.
func TestTheHashIsLostWhileJobsRun(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, c := range map[string]struct{ running, n int }{
			"a few running":  {4, 10},
			"many running":   {600, 10},
			"one at a time":  {4, 1},
			"many, one slot": {600, 1},
		} {
			t.Run(name+": none is leased twice", func(t *testing.T) {
				t.Parallel()
				r := open(t)
				ids := r.many(c.running+20, newJob{rec(), ""})
				for left := c.running; left > 0; left -= 500 {
					r.lease(ask{n: min(left, 500)})
				}
				due := r.due(3) // taken first, which leaves the cursor unset
				r.do("DEL", r.k.meta)
				var got []string
				for calls := 0; len(got) < 23; calls++ {
					require.Less(t, calls, 40)
					a := r.lease(ask{n: c.n})
					require.True(t, len(a.jobs) > 0 || a.next == 0, "the caller comes again at once")
					got = append(got, a.ids()...)
				}
				slices.Sort(got)
				want := slices.Concat(ids[c.running:], due)
				slices.Sort(want)
				require.Equal(t, want, got)
				require.Empty(t, r.lease(ask{n: c.n}).jobs)
				r.check()
			})
		}
		t.Run("ids rise above those of the stream", func(t *testing.T) {
			t.Parallel()
			r := open(t)
			// The clock of a former master was ahead.
			future := "4000000000000000-" + newLow()
			r.do("XADD", r.k.jobs, future, "r", rec())
			r.do("DEL", r.k.meta)
			ids := r.fresh(2)
			require.True(t, strings.HasPrefix(ids[0], "4000000000000001-"), ids[0])
			require.Equal(t, append([]string{future}, ids...), r.lease(ask{n: 5}).ids())
			r.check()
		})
	})
}

// The cursor goes on over an entry that may not be taken; it is not lost.
func TestAFreshSuspectThatWasPassedOverComesBack(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		ids, _ := r.enqueue(nil, newJob{rec(suspect, func(r *record.Record) { r.LongHead = true }), ""})
		require.Empty(t, r.lease(ask{n: 5, noSuspect: true}).jobs)
		r.lease(ask{n: 5, noSuspect: true})
		require.Equal(t, ids, r.lease(ask{n: 5}).ids())
		r.check()
	})
}

// A queue under constant load heals itself as well, if more slowly.
func TestOrphansComeBackUnderLoad(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		r.fresh(30)
		got := r.lease(ask{n: 30})
		id := got.jobs[17].id
		r.do("ZREM", r.k.leases, id)
		held := r.enqueueHeld()
		r.fresh(2000)
		found := map[string]bool{}
		for calls := 0; len(found) < 2; calls++ {
			require.Less(t, calls, 2000, "of which one in 16 looks")
			for _, j := range r.lease(ask{n: 1, visibilityMs: 3_600_000}).jobs {
				if j.id == id || j.id == held {
					found[j.id] = true
				}
			}
		}
		require.EqualValues(t, 2, r.counter("healed"))
		r.check()
	})
}

// One lost job among many that wait is found in seconds, not by luck.
func TestALostJobAmongManyIsFound(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		r.many(3000, newJob{rec(long), "d 3600000 0 0 d 0"})
		lost := r.enqueueHeld()
		for calls := 0; ; calls++ {
			require.Less(t, calls, 100)
			got := r.lease(ask{n: 1})
			if len(got.jobs) == 1 {
				require.Equal(t, lost, got.jobs[0].id)
				break
			}
			require.LessOrEqual(t, got.next, int64(1000), "it looks again soon")
		}
		got := r.lease(ask{n: 1})
		require.Empty(t, got.jobs)
		require.Greater(t, got.next, int64(1000), "and rests once all are found")
		r.check()
	})
}
