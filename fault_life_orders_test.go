//go:build !race

package pawl

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// contenders all want to have the last word about one job that is being run.
var contenders = map[string]func(r *rig, h hold){
	"settle":  func(r *rig, h hold) { r.fire(r.settleShot("done", "a", h)) },
	"retry":   func(r *rig, h hold) { r.fire(r.retryShot("retried", time.Hour, rec(long), h)) },
	"bury":    func(r *rig, h hold) { r.fire(r.buryShot("a", h)) },
	"cancel":  func(r *rig, h hold) { r.fire(r.cancelShot("a", h.id)) },
	"release": func(r *rig, h hold) { r.fire(r.releaseShot(h)) },
	"expiry": func(r *rig, h hold) { // and a second worker, where there is something to take
		r.do("ZADD", r.k.leases, "XX", 1000, h.id)
		r.lease(ask{n: 1, nonce: "second"})
	},
}

func orders(names []string) (all [][]string) {
	if len(names) == 0 {
		return [][]string{nil}
	}
	for i, first := range names {
		rest := append(append([]string(nil), names[:i]...), names[i+1:]...)
		for _, order := range orders(rest) {
			all = append(all, append([]string{first}, order...))
		}
	}
	return all
}

// L5. A settle, a retry, a burial, a cancellation, a release and an expiry with a
// second worker come for one job, in all 720 orders: it ends in one state, and the
// counters are what a recount says.
func TestAJobThatAllWantEndsInOneStateInEveryOrder(t *testing.T) {
	t.Parallel()
	names := []string{"settle", "retry", "bury", "cancel", "release", "expiry"}
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		ends := map[string]int{}
		all := orders(names)
		require.Len(t, all, 720)
		for _, order := range all {
			r := open(t)
			h := r.unique("a", "d 0 0 1 d 0")
			for _, name := range order {
				contenders[name](r, h)
			}
			said := strings.Join(order, ", ")
			places := r.places(h.id)
			live := int64(0)
			switch places {
			case "", "index dead":
			case "held due", "held leases runs", "jobs leases runs":
				live = 1
			default:
				require.Fail(t, "in no one state", "%q after %s", places, said)
			}
			ends[places]++
			dead := r.number("XLEN", r.k.dead)
			require.EqualValues(t, 1, live+dead+r.counter("done")+r.counter("cancelled"), said)
			require.Equal(t, dead, r.counter("dead"), said)
			require.EqualValues(t, 1, r.counter("enqueued"), said)
			require.Equal(t, live, r.number("EXISTS", r.k.unique("a")), "the key is held while the job lives, after %s", said)
			require.Zero(t, r.counter("lost")+r.counter("healed"), said)
			r.check()
			r.do("FLUSHDB") // the server is this test's, and a check scans all of it
		}
		require.Len(t, ends, 3, "done or cancelled, dead, and living: %v", ends)
	})
}
