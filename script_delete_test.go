//go:build !race

package pawl

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// deleteSeen deletes jobs as the deaths that entries name, if they are so old.
func (r *rig) deleteSeen(ageMs int, pairs ...string) shot {
	s := shot{scriptDelete, []string{r.k.dead, r.k.index, r.k.meta, r.k.minutes, laneKey, r.k.jobs, r.k.held}, []any{"dropped", ageMs}}
	for _, p := range pairs {
		s.args = append(s.args, p)
	}
	return s
}

func TestADeleteRemovesTheDeathThatWasSeen(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h := r.one()
		r.must("k", r.buryShot("", h))
		first := r.grave(h.id)
		r.must("m", r.deleteSeen(3_600_000, h.id, first)) // too young
		r.must("ok", r.redriveShot("", "", rec(long), h.id))
		r.must("m", r.deleteSeen(0, h.id, first)) // not dead
		r.must("k", r.buryShot("", r.take("second")))
		r.must("m", r.deleteSeen(0, h.id, first)) // dead of another death
		require.Equal(t, "index dead", r.places(h.id))
		r.must("km", r.deleteSeen(0, h.id, r.grave(h.id), h.id, r.grave(h.id)))
		require.Empty(t, r.places(h.id))
		require.EqualValues(t, 1, r.counter("dropped"))
		r.check()
	})
}

func TestADeleteRemovesEntriesThatNoIndexNames(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		foreign := fmt.Sprint(r.do("XADD", r.k.dead, "*", "some", "thing"))
		h := r.one()
		old := fmt.Sprint(r.do("XADD", r.k.dead, "*", "i", h.id, "p", "x"))
		r.must("k", r.buryShot("", h))
		r.must("ssk", r.deleteSeen(0, "", foreign, h.id, old, h.id, r.grave(h.id)))
		require.EqualValues(t, 0, r.do("XLEN", r.k.dead))
		require.EqualValues(t, 1, r.counter("dropped"))
		// An index that names what is no entry at all.
		r.do("HSET", r.k.index, h.id, "nonsense")
		r.must("m", r.deleteSeen(0, h.id, "1-1"))
		r.must("k", r.deleteShot(h.id))
		r.check()
	})
}

func TestADeleteThatIsSentAgainHappensOnce(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h := r.one()
		r.must("k", r.buryShot("", h))
		l, s := newLane(&r.k), r.deleteShot(h.id)
		for range 3 {
			answer, err := r.send(l, 1, s)
			require.NoError(t, err)
			require.Equal(t, "k", answer)
		}
		require.EqualValues(t, 1, r.counter("purged"))
		r.check()
	})
}
