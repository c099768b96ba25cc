//go:build !race

package pawl

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/record"
)

// sleeper is a worker as its queue sees it: it leases while it believes that there is
// work, and else waits for a token.
type sleeper struct {
	slots  int
	hungry bool
	runs   []hold
}

func (s *sleeper) waits() bool { return !s.hungry && len(s.runs) < s.slots }

// However jobs become ready, and whatever else happens at the queue, none of them is
// ready while a worker with a free slot waits for a token and there is none.
func TestNoWakeUpIsLost(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for seed := range 40 {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				sleepers(open(t), rand.New(rand.NewPCG(uint64(seed), 7)))
			})
		}
	})
}

func sleepers(r *rig, random *rand.Rand) {
	r.t.Helper()
	fleet := []*sleeper{{slots: 1, hungry: true}, {slots: 2, hungry: true}, {slots: 5, hungry: true}}
	keys := map[string]string{} // id -> unique key
	key := func(id string) string { return keys[id] }
	drop := func(w *sleeper, i int) hold {
		h := w.runs[i]
		w.runs = slices.Delete(w.runs, i, i+1)
		return h
	}
	enqueue := func() {
		u := fmt.Sprint("u", random.IntN(4))
		hows := []string{"", "d 0 3 0 d 0", "d 0 0 1 d 0", "d 0 0 1 d 0 r", "d 0 0 1 d 0 l", "d 0 2 1 d 0 l", "d 0 5 1 d 0 r"}
		var jobs []newJob
		for range 1 + random.IntN(4) {
			how := hows[random.IntN(len(hows))]
			jobs = append(jobs, newJob{rec(long, func(rec *record.Record) {
				if strings.Contains(how, " 1 d 0") {
					rec.Unique = &record.Unique{Key: u}
				}
				rec.Payload = fmt.Append(nil, random.Int())
			}), how})
		}
		ids, marks := r.enqueue([]string{u}, jobs...)
		for i, id := range ids {
			if marks[i] == '.' && strings.Contains(jobs[i].how, " 1 d 0") {
				keys[id] = u
			}
		}
	}
	for range 120 {
		w := fleet[random.IntN(len(fleet))]
		switch op := random.IntN(10); {
		case op < 3:
			enqueue()
		case len(w.runs) > 0:
			h := drop(w, random.IntN(len(w.runs)))
			switch op {
			case 3, 4, 5:
				r.must("k", r.settleShot("done", key(h.id), h))
			case 6:
				require.Contains(r.t, "ks", r.fire(r.retryUnder(key(h.id), "retried", 0, rec(long, func(rec *record.Record) {
					if key(h.id) != "" {
						rec.Unique = &record.Unique{Key: key(h.id)}
					}
				}), h)))
			case 7:
				r.must("k", r.releaseShot(h))
			case 8:
				r.must("k", r.buryShot(key(h.id), h))
			case 9:
				r.fire(r.cancelShot(key(h.id), h.id))
				r.must("k", r.settleShot("cancelled", key(h.id), h))
			}
		}
		// What the workers would do now, some of it, in any order.
		for range random.IntN(4) {
			r.turn(fleet[random.IntN(len(fleet))])
		}
		if random.IntN(3) == 0 {
			r.rest(fleet)
		}
	}
	for {
		r.rest(fleet)
		at := slices.IndexFunc(fleet, func(w *sleeper) bool { return len(w.runs) > 0 })
		if at < 0 {
			break
		}
		h := drop(fleet[at], 0)
		r.must("k", r.settleShot("done", key(h.id), h))
	}
	s, err := r.q.Stats(r.t.Context())
	require.NoError(r.t, err)
	require.Zero(r.t, s.Depth()+s.Running)
	r.check()
}

// turn is one step of a worker, if it has one.
func (r *rig) turn(w *sleeper) bool {
	r.t.Helper()
	if w.waits() && r.number("LLEN", r.k.wake) > 0 {
		r.do("RPOP", r.k.wake)
		w.hungry = true
	}
	free := w.slots - len(w.runs)
	if !w.hungry || free == 0 {
		return false
	}
	got := r.lease(ask{n: free})
	for _, j := range got.jobs {
		w.runs = append(w.runs, hold{j.id, got.token})
	}
	w.hungry = len(got.jobs) == free || got.next >= 0 && got.next < 1000 // a timer
	return true
}

// rest lets the workers go on until each is busy or waits.
func (r *rig) rest(fleet []*sleeper) {
	r.t.Helper()
	for again := true; again; {
		again = false
		for _, w := range fleet {
			again = r.turn(w) || again
		}
	}
	s, err := r.q.Stats(r.t.Context())
	require.NoError(r.t, err)
	if slices.ContainsFunc(fleet, (*sleeper).waits) {
		require.Zero(r.t, s.Ready, "jobs are ready, and a worker waits")
	}
}
