//go:build !race

package pawl

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/jobid"
)

// A lease moves due jobs with a priority among the priorities: a list that has
// passed there already must not miss them.
func TestAListSeesJobsThatBecomePriorities(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		given := r.take2("given")
		first, _ := r.enqueue(nil, newJob{rec(priority(9)), "d 0 9 0 d 0"})
		ids := r.many(10, newJob{rec(priority(5)), "d 100000 5 0 d 0"})
		r.ripen(ids...)
		seen, n := map[string]bool{}, 0
		for j, err := range r.q.List(t.Context(), StateReady, Filter{}) {
			require.NoError(t, err)
			seen[j.text] = true
			if n++; n == 1 {
				require.Equal(t, given, j.text)
				require.Len(t, r.lease(ask{n: 1, noExpired: true}).jobs, 1)
			}
		}
		for _, id := range ids {
			require.True(t, seen[id] || r.number("ZSCORE", r.k.leases, id) > 0, "%s stayed ready, in %s", id, r.places(id))
		}
		require.NotEmpty(t, first)
	})
}

// take2 leaves one job that was given back, and returns its id.
func (r *rig) take2(nonce string) string {
	r.t.Helper()
	r.fresh(1)
	h := r.take(nonce)
	r.must("k", r.releaseShot(h))
	return h.id
}

// Whatever a hand edit makes of the fields of meta, a lease leases, or does
// nothing: it never fails after it has written.
func TestGarbageInMetaDoesNotStopALease(t *testing.T) {
	t.Parallel()
	garbage := []string{"", "x", "inf", "-inf", "nan", "1e300", "-1", "9007199254740993", "18446744073709551616-1",
		"1-99999999999999999999", "1-18446744073709551616", "0x10", " 3", "1.5"}
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for _, field := range []string{"turn", "swept", "cursor", "fence", "paused"} {
			for _, text := range garbage {
				r := open(t)
				orphan := r.one()
				r.do("ZREM", r.k.leases, orphan.id)
				r.fresh(3)
				r.do("HSET", r.k.meta, field, text)
				got := map[string]bool{}
				for range 6 {
					for _, id := range r.lease(ask{n: 10}).ids() {
						got[id] = true
					}
				}
				s, err := r.q.Stats(t.Context())
				require.NoError(t, err)
				if !s.Paused {
					require.GreaterOrEqual(t, len(got), 3, "%s = %q", field, text)
				}
			}
		}
	})
}

// No script would take such an entry for the one that it is: to read it again
// and again would end only with the context.
func TestARedriveOfAnEntrySpelledAnotherWayIsNotFound(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h := r.one()
		r.must("k", r.buryShot("", h))
		id, ok := jobid.FromText(h.id)
		require.True(t, ok)
		r.do("HSET", r.k.index, h.id, "0"+r.grave(h.id))
		report, err := r.q.Dead().Redrive(t.Context(), id)
		require.ErrorIs(t, err, ErrNotFound)
		require.Zero(t, report)
		require.ErrorIs(t, r.q.Dead().RedriveWith(t.Context(), id, Define[int]("k").Args(1)), ErrNotFound)
	})
}
