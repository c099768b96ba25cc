//go:build !race

package pawl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// L1.
func TestARedriveTakesTheKeyOrIsRefused(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		dead := func(r *rig, how string) string {
			r.claim(how)
			h := r.take("first")
			r.must("k", r.buryShot("a", h))
			return h.id
		}
		t.Run("it takes a key that is free", func(t *testing.T) {
			t.Parallel()
			r := open(t)
			a := dead(r, untilDone)
			r.must("ok", r.redriveShot("a", "d 0", rec(long), a))
			holder, taken := r.claim(untilDone)
			require.False(t, taken)
			require.Equal(t, a, holder)
			r.check()
		})
		t.Run("it takes a key that its own window names", func(t *testing.T) {
			t.Parallel()
			r := open(t)
			a := dead(r, window)
			_, till, _ := strings.Cut(fmt.Sprint(r.do("GET", r.k.unique("a"))), " ")
			r.must("ok", r.redriveShot("a", till, rec(long), a))
			require.EqualValues(t, -1, r.do("PTTL", r.k.unique("a")), "the live job holds it, however long it lives")
			r.must("k", r.settleShot("done", "a", r.take("second")))
			require.Positive(t, r.do("PTTL", r.k.unique("a")))
			r.check()
		})
		for name, hold := range map[string]func(r *rig) string{
			"by a job that waits": func(r *rig) string { b, _ := r.claim(untilDone); return b },
			"by a job that runs":  func(r *rig) string { r.claim(untilDone); return r.take("x").id },
			"by the window of a job that is done": func(r *rig) string {
				r.claim(window)
				h := r.take("x")
				r.must("k", r.settleShot("done", "a", h))
				return h.id
			},
		} {
			t.Run("it is refused a key that is held "+name, func(t *testing.T) {
				t.Parallel()
				r := open(t)
				a := dead(r, untilDone)
				b := hold(r)
				before := r.dump()
				r.must(b, r.redriveShot("a", "d 0", rec(long), a))
				require.Equal(t, before, r.dump())
				r.check()
			})
		}
		t.Run("it takes a key whose holder has started, if that is its mode", func(t *testing.T) {
			t.Parallel()
			r := open(t)
			a := dead(r, untilStarted)
			r.claim(untilStarted)
			r.take("x")
			r.must("ok", r.redriveShot("a", "s 0", rec(long), a))
			require.Equal(t, a+" s 0", r.do("GET", r.k.unique("a")))
			r.check()
		})
		t.Run("of two with one key in one call the first is moved", func(t *testing.T) {
			t.Parallel()
			r := open(t)
			ids := []string{dead(r, untilDone), dead(r, untilDone)}
			r.must("ok "+ids[0], r.redriveShot("a", "d 0", rec(long), ids...))
			require.Equal(t, "index dead", r.places(ids[1]))
			r.check()
		})
	})
}

func TestARedriveMovesOnce(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h := r.one()
		r.must("k", r.buryShot("", h))
		s := r.redriveShot("", "", rec(long), h.id, h.id)
		r.must("ok missing", s)
		r.must("missing missing", s)
		again := r.take("second")
		r.must("k", r.buryShot("", again))
		r.must("changed changed", s) // made from the first death
		r.must("k", r.deleteShot(h.id))
		r.must("missing missing", s)
		require.EqualValues(t, 1, r.counter("redriven"))
		require.Empty(t, r.places(h.id))
		r.check()
	})
}
