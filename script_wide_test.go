//go:build !race

package pawl

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// What Redis makes of a queue's hashes and sorted sets: see lua/lib/wide.lua.

// With many jobs running, each look-up in a list would walk all of it.
func TestWhatManyRunningJobsAreLookedUpInIsATable(t *testing.T) {
	t.Parallel()
	onServer(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, steps := range map[string][]int{
			"all at once": {16}, "one by one": {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, "far past it": {10, 90},
		} {
			t.Run(name, func(t *testing.T) {
				r := open(t)
				running := 0
				for i, n := range steps {
					r.fresh(n)
					running += len(r.lease(ask{n: n, nonce: fmt.Sprint(i)}).jobs)
				}
				require.GreaterOrEqual(t, running, 16)
				require.Equal(t, "hashtable", r.do("OBJECT", "ENCODING", r.k.runs))
				require.Equal(t, "skiplist", r.do("OBJECT", "ENCODING", r.k.leases))
				require.EqualValues(t, running, r.number("HLEN", r.k.runs), "nothing is left of what made it one")
				require.EqualValues(t, running, r.number("ZCARD", r.k.leases))
				for field := range r.rdb.HGetAll(t.Context(), r.k.meta).Val() {
					require.LessOrEqual(t, len(field), 64)
				}
				r.check()
			})
		}
	})
}

// The counters become a table with the lease that is the first to count in its minute.
func TestTheCountersAreATableOnceALeaseHasNotedTheMinute(t *testing.T) {
	t.Parallel()
	onServer(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		r.fresh(1)
		r.do("DEL", r.k.minutes)
		require.Len(t, r.lease(ask{n: 1}).jobs, 1)
		require.Equal(t, "hashtable", r.do("OBJECT", "ENCODING", r.k.meta))
	})
}

// A worker asks an idle queue again and again, and no call notes the minute there.
func TestALeaseThatFindsNothingWritesNothingForTheMinute(t *testing.T) {
	t.Parallel()
	onServer(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		r.must("k", r.settleShot("done", "", r.one()))
		r.do("DEL", r.k.minutes) // as if the last job were of yesterday
		before := r.dump()
		r.do("CONFIG", "RESETSTAT")
		for range 3 {
			require.Empty(t, r.lease(ask{n: 4}).jobs)
		}
		require.Equal(t, before, r.dump())
		ran := r.rdb.Info(t.Context(), "commandstats").Val()
		require.Empty(t, regexp.MustCompile("cmdstat_(hset|hdel|hincrby|zadd):").FindAllString(ran, -1))
	})
}
