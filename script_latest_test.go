//go:build !race

package pawl

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// behind has a job run and another wait behind it, under the key "a".
func (r *rig) behind() (h hold, next string) {
	r.t.Helper()
	h = r.unique("a", untilDone)
	return h, r.park("new", latest)
}

func (r *rig) park(payload, how string) string {
	r.t.Helper()
	id, mark := r.putA(newer(payload), how)
	require.Equal(r.t, ".", mark)
	require.Equal(r.t, StateParked, r.state(id))
	return id
}

// state is a job's state, as Get tells it.
func (r *rig) state(text string) State {
	r.t.Helper()
	id, ok := jobid.FromText(text)
	require.True(r.t, ok)
	info, err := r.q.Get(r.t.Context(), id)
	if errors.Is(err, ErrNotFound) {
		return ""
	}
	require.NoError(r.t, err)
	require.Less(r.t, info.DueAt.UnixMilli(), int64(farAway), "the score is nobody's due time")
	return info.State
}

// ends are those of a job behind which another waits.
var ends = map[string]func(r *rig, h hold){
	"is done":      func(r *rig, h hold) { r.must("k", r.settleShot("done", "a", h)) },
	"is discarded": func(r *rig, h hold) { r.must("k", r.settleShot("discarded", "a", h)) },
	"is cancelled as it runs": func(r *rig, h hold) {
		r.must("flagged", r.cancelShot("a", h.id))
		r.must("k", r.settleShot("cancelled", "a", h))
	},
	"is cancelled as it waits": func(r *rig, h hold) {
		r.must("k", r.releaseShot(h))
		r.must("gone", r.cancelShot("a", h.id))
	},
	"runs out and is cancelled": func(r *rig, h hold) { r.lapse(h.id); r.must("gone", r.cancelShot("a", h.id)) },
	"is purged": func(r *rig, h hold) {
		r.must("k", r.releaseShot(h))
		r.must("k", r.purgeShot(StateReady, []string{"a"}, h.id))
	},
	"is purged as it is delayed": func(r *rig, h hold) {
		r.lapse(h.id)
		r.must("ok", r.rescheduleShot(farAway+1, h.id)) // miniredis answers 9e+12, which its Lua does not read
		r.must("k", r.purgeShot(StateDelayed, []string{"a"}, h.id))
	},
	"dies":                      func(r *rig, h hold) { r.must("k", r.buryShot("a", h)) },
	"fails":                     func(r *rig, h hold) { r.must("s", r.retryUnder("a", "retried", time.Hour, rec(started), h)) },
	"snoozes":                   func(r *rig, h hold) { r.must("s", r.retryUnder("a", "snoozed", time.Hour, rec(started), h)) },
	"dies late":                 func(r *rig, h hold) { r.lapse(h.id); r.must("k", r.buryShot("a", h)) },
	"dies at the second worker": func(r *rig, h hold) { r.must("k", r.buryShot("a", r.lost(h, "second"))) },
}

func TestAJobBehindAnotherRunsAtEachEnd(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, end := range ends {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := open(t)
				h, next := r.behind()
				require.Empty(t, r.lease(ask{n: 5, noExpired: true}).jobs, "it waits")
				r.do("DEL", r.k.wake)
				end(r, h)
				require.Equal(t, StateReady, r.state(next))
				require.Equal(t, next+" d 0", r.do("GET", r.k.unique("a")))
				require.Positive(t, r.number("LLEN", r.k.wake), "somebody is told")
				r.check()
				id, mark := r.putA(rec(), untilDone)
				require.Equal(t, "d", mark)
				require.Equal(t, next, id, "the key is its own")
				got := r.lease(ask{n: 5})
				require.Equal(t, []string{next}, got.ids())
				require.Equal(t, "new", r.payload(next))
				r.must("k", r.settleShot("done", "a", hold{next, got.token}))
				require.Zero(t, r.number("EXISTS", r.k.unique("a")))
				r.check()
				n := r.counter("done") + r.counter("discarded") + r.counter("cancelled") + r.counter("purged") + r.number("XLEN", r.k.dead)
				require.EqualValues(t, 2, r.counter("enqueued"))
				require.EqualValues(t, 2, n, "each is accounted for")
			})
		}
	})
}

func TestAFailureBeforeANewerJobIsCounted(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for counter, failed := range map[string]int{"retried": 1, "snoozed": 0} {
			r := open(t)
			other := r.one()
			h, next := r.behind()
			r.must("sk", r.retryUnder("a", counter, time.Hour, rec(started), h, other))
			require.Empty(t, r.places(h.id))
			require.Equal(t, "held due", r.places(next))
			require.EqualValues(t, 1, r.counter("discarded"))
			require.EqualValues(t, 2*failed, r.counter("failed"))
			require.EqualValues(t, 1, r.counter(counter), "of the other one")
			r.check()
		}
	})
}

// What is no end of the holder: the other one waits on, and is then what a further
// enqueue replaces.
func TestAJobBehindAnotherWaitsForItsEnd(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, live := range map[string]func(r *rig, h hold) hold{
			"runs":               func(_ *rig, h hold) hold { return h },
			"runs out":           func(r *rig, h hold) hold { r.lapse(h.id); return h },
			"crashes":            func(r *rig, h hold) hold { return r.lost(h, "second") },
			"is released":        func(r *rig, h hold) hold { r.must("k", r.releaseShot(h)); return r.take("second") },
			"is released unrun":  func(r *rig, h hold) hold { r.must("k", r.unrunShot(h)); return r.take("second") },
			"is to be cancelled": func(r *rig, h hold) hold { r.must("flagged", r.cancelShot("a", h.id)); return h },
			"is rescheduled": func(r *rig, h hold) hold {
				r.lapse(h.id)
				r.must("ok", r.rescheduleShot(farAway, h.id))
				r.ripen(h.id)
				return r.take("second")
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := open(t)
				h, next := r.behind()
				h = live(r, h)
				require.Equal(t, StateParked, r.state(next))
				for _, how := range []string{latest, replacing} {
					id, mark := r.putA(newer("newest"), how)
					require.Equal(t, "r", mark)
					require.Equal(t, next, id)
				}
				require.Equal(t, h.id+" d 0 "+next, r.do("GET", r.k.unique("a")))
				r.check()
				r.must("k", r.settleShot("done", "a", h))
				require.Equal(t, "newest", r.payload(next))
				require.Equal(t, []string{next}, r.lease(ask{n: 5}).ids())
				r.check()
			})
		}
	})
}

// Behind whichever holder that no enqueue replaces.
func TestAJobWaitsBehindWhoIsBusy(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, holds := range busy {
			r := open(t)
			h := holds(r)
			next := r.park("new", latest)
			require.Equal(t, h.id+" d 0 "+next, r.do("GET", r.k.unique("a")), name)
			r.check()
		}
	})
}

func TestAJobBehindAnotherMayHaveATimeOfItsOwn(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h := r.unique("a", untilDone)
		next := r.park("new", "d 3600000 0 1 d 0 l")
		got, err := record.Decode([]byte(r.rdb.HGet(t.Context(), r.k.held, next).Val()))
		require.NoError(t, err)
		r.do("DEL", r.k.wake)
		r.must("k", r.settleShot("done", "a", h))
		require.Equal(t, StateDelayed, r.state(next))
		require.Equal(t, got.Due, r.number("ZSCORE", r.k.due, next))
		require.Zero(t, r.number("LLEN", r.k.wake))
		r.check()

		r = open(t)
		h = r.unique("a", untilDone)
		next, _ = r.putA(newer("new", priority(5)), "d 0 5 1 d 0 l")
		r.must("k", r.settleShot("done", "a", h))
		require.Equal(t, []string{next}, r.lease(ask{n: 5}).ids())
		r.check()
	})
}

// A window goes over to the job behind, and is never shorter than either's.
func TestTheWindowPassesToTheJobBehind(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for _, hows := range [][2]string{{window, latest}, {untilDone, "d 0 0 1 d 60000 l"}, {"d 0 0 1 s 60000", latest}} {
			r := open(t)
			h := r.unique("a", hows[0])
			next := r.park("new", hows[1])
			_, mode, till, _ := parseUnique(r.do("GET", r.k.unique("a")))
			require.Equal(t, "d", mode, "it holds its key to its end now")
			require.Greater(t, till, time.Now().UnixMilli()+30000)
			require.EqualValues(t, -1, r.do("PTTL", r.k.unique("a")))
			r.must("k", r.settleShot("done", "a", h))
			id, _, again, _ := parseUnique(r.do("GET", r.k.unique("a")))
			require.Equal(t, next, id)
			require.Equal(t, till, again)
			require.EqualValues(t, -1, r.do("PTTL", r.k.unique("a")))
			r.must("k", r.settleShot("done", "a", r.take("second")))
			require.Positive(t, r.do("PTTL", r.k.unique("a")))
			r.check()
		}
	})
}

func TestAParkedJobIsCancelledOrPurged(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for answer, shoot := range map[string]func(r *rig, id string) shot{
			"gone": func(r *rig, id string) shot { return r.cancelShot("a", id) },
			"k":    func(r *rig, id string) shot { return r.purgeShot(StateParked, []string{"a"}, id) },
		} {
			r := open(t)
			h, next := r.behind()
			r.must("m", r.purgeShot(StateDelayed, []string{"a"}, next))
			r.must("m", r.purgeShot(StateReady, []string{"a"}, next))
			r.must(answer, shoot(r, next))
			require.Empty(t, r.places(next))
			require.Equal(t, h.id+" d 0", r.do("GET", r.k.unique("a")))
			r.check()
			again := r.park("another", latest)
			require.NotEqual(t, next, again)
			r.must("k", r.settleShot("done", "a", h))
			require.Equal(t, []string{again}, r.lease(ask{n: 5}).ids())
			r.check()
		}
	})
}

func TestAParkedJobIsNoWork(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		_, next := r.behind()
		before := r.dump()
		got := r.lease(ask{n: 5, visibilityMs: 1000})
		require.Empty(t, got.jobs)
		require.LessOrEqual(t, got.next, int64(600_000), "the holder's lease is next")
		delete(before, r.k.wake)
		require.Equal(t, before, r.dump(), "a call that finds nothing writes nothing")
		r.must("parked", r.rescheduleShot(0, next))
		r.must("parked", r.rescheduleShot(farAway, next))
		s, err := r.q.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, []int64{0, 0, 1, 1, 0}, []int64{s.Ready, s.Delayed, s.Running, s.Parked, s.Dead})
		require.EqualValues(t, 1, s.Depth())
		require.Zero(t, s.OldestReady)
		for state, want := range map[State]int{StateReady: 0, StateDelayed: 0, StateParked: 1, StateRunning: 1} {
			n := 0
			for job, err := range r.q.List(t.Context(), state, Filter{}) {
				require.NoError(t, err)
				require.Equal(t, state, job.State)
				n++
			}
			require.Equal(t, want, n, state)
		}
		r.check()
	})
}

// A dead job whose key has passed on is refused, with the one that has it now.
func TestARedriveMeetsTheJobThatWasBehind(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h, next := r.behind()
		r.must("k", r.buryShot("a", h))
		r.must(next, r.redriveShot("a", "d 0", rec(long), h.id))
		got := r.take("second")
		last := r.park("last", latest)
		r.must(next, r.redriveShot("a", "d 0", rec(long), h.id))
		r.must("k", r.settleShot("done", "a", got))
		r.must(last, r.redriveShot("a", "d 0", rec(long), h.id))
		r.must("k", r.settleShot("done", "a", r.take("third")))
		r.must("ok", r.redriveShot("a", "d 0", rec(long), h.id))
		r.check()
	})
}
