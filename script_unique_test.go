//go:build !race

package pawl

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/record"
)

const (
	untilDone    = "d 0 0 1 d 0"
	untilStarted = "d 0 0 1 s 0"
	window       = "d 0 0 1 d 60000"
	farAway      = 9_000_000_000_000 // ms
)

// started is the record that a worker writes once a job has run.
func started(r *record.Record) { r.Started, r.LongHead = true, true }

// claim enqueues a job under the key "a" and tells who holds it after that.
func (r *rig) claim(how string) (id string, taken bool) {
	r.t.Helper()
	ids, marks := r.enqueue([]string{"a"}, newJob{rec(), how})
	return ids[0], marks == "."
}

// A life is what becomes of a job that holds a key; it begins with its lease.
type life struct {
	name  string
	live  func(r *rig, h hold)
	ended bool // it frees the key, but for its window
	unrun bool // nobody has called its handler
}

var lives = []life{
	{"is done", func(r *rig, h hold) { r.must("k", r.settleShot("done", "a", h)) }, true, false},
	{"is discarded", func(r *rig, h hold) { r.must("k", r.settleShot("discarded", "a", h)) }, true, false},
	{"is cancelled as it runs", func(r *rig, h hold) {
		r.must("flagged", r.cancelShot("a", h.id))
		require.EqualValues(r.t, 1, r.number("EXISTS", r.k.unique("a")), "it is held until the job has ended")
		r.must("k", r.settleShot("cancelled", "a", h))
	}, true, false},
	{"is given back and cancelled", func(r *rig, h hold) {
		r.must("k", r.releaseShot(h))
		r.must("gone", r.cancelShot("a", h.id))
	}, true, false},
	{"is put back and cancelled", func(r *rig, h hold) {
		r.must("k", r.retryShot("retried", time.Hour, rec(started), h))
		r.must("gone", r.cancelShot("a", h.id))
	}, true, false},
	{"runs out and is cancelled", func(r *rig, h hold) { r.lapse(h.id); r.must("gone", r.cancelShot("a", h.id)) }, true, false},
	{"dies", func(r *rig, h hold) { r.must("k", r.buryShot("a", h)) }, true, false},
	{"runs", func(*rig, hold) {}, false, false},
	{"runs out", func(r *rig, h hold) { r.lapse(h.id) }, false, false},
	{"is given back", func(r *rig, h hold) { r.must("k", r.releaseShot(h)) }, false, false},
	{"is given back and leased again", func(r *rig, h hold) { r.must("k", r.releaseShot(h)); r.take("second") }, false, false},
	{"is put back", func(r *rig, h hold) { r.must("k", r.retryShot("retried", time.Hour, rec(started), h)) }, false, false},
	{"is put back and leased again", func(r *rig, h hold) {
		r.must("k", r.retryShot("retried", 0, rec(started), h))
		r.ripen(h.id)
		r.take("second")
	}, false, false},
	{"is given back unrun", func(r *rig, h hold) { r.must("k", r.unrunShot(h)) }, false, true},
	{"is given back unrun twice", func(r *rig, h hold) {
		r.must("k", r.unrunShot(h))
		r.must("k", r.unrunShot(r.take("second")))
	}, false, true},
	{"is given back unrun and rescheduled", func(r *rig, h hold) {
		r.must("k", r.unrunShot(h))
		r.must("ok", r.rescheduleShot(farAway, h.id))
	}, false, true},
	{"is given back unrun and leased again", func(r *rig, h hold) { r.must("k", r.unrunShot(h)); r.take("second") }, false, false},
	{"is given back unrun and cancelled", func(r *rig, h hold) {
		r.must("k", r.unrunShot(h))
		r.must("gone", r.cancelShot("a", h.id))
	}, true, false},
	{"is to be cancelled and given back unrun", func(r *rig, h hold) {
		r.must("flagged", r.cancelShot("a", h.id))
		r.must("c", r.unrunShot(h))
	}, false, false},
	{"runs, is given back, and given back unrun", func(r *rig, h hold) {
		r.must("k", r.releaseShot(h))
		r.must("k", r.unrunShot(r.take("second")))
	}, false, false},
	{"runs out and is given back unrun", func(r *rig, h hold) {
		r.lapse(h.id)
		r.must("k", r.unrunShot(r.take("second")))
	}, false, false},
	{"runs out, is given back unrun and rescheduled", func(r *rig, h hold) {
		r.lapse(h.id)
		r.must("k", r.unrunShot(r.take("second")))
		r.must("ok", r.rescheduleShot(farAway, h.id))
	}, false, false},
	{"is put back and given back unrun", func(r *rig, h hold) {
		r.must("k", r.retryShot("retried", 0, rec(started), h))
		r.ripen(h.id)
		r.must("k", r.unrunShot(r.take("second")))
	}, false, false},
}

func TestWhoMayTakeAKeyWhen(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for mode, how := range map[string]string{"until done": untilDone, "until started": untilStarted, "a window": window} {
			for _, l := range lives {
				t.Run(mode+": the job that holds it "+l.name, func(t *testing.T) {
					t.Parallel()
					r := open(t)
					a, taken := r.claim(how)
					require.True(t, taken)
					holder, taken := r.claim(how)
					require.False(t, taken, "it waits")
					require.Equal(t, a, holder)

					l.live(r, r.take("first"))
					free := l.ended && how != window || how == untilStarted && !l.unrun
					ttl := r.do("PTTL", r.k.unique("a")).(int64)
					switch {
					case l.ended && how == window:
						require.Positive(t, ttl, "the key goes by itself")
						require.LessOrEqual(t, ttl, int64(60_001), "it began at the next whole ms")
					case l.ended:
						require.EqualValues(t, -2, ttl, "the key has gone")
					default:
						require.EqualValues(t, -1, ttl, "a live job's key must not expire")
					}
					r.check()
					b, taken := r.claim(how)
					require.Equal(t, free, taken)
					if !free {
						require.Equal(t, a, b)
					}
					r.check()
				})
			}
		}
	})
}

// Case 19. However a job ends, it frees no key that has passed to another.
func TestAKeyThatPassedToAnotherIsLeftAlone(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for _, l := range lives[:7] {
			t.Run("when the first one "+l.name, func(t *testing.T) {
				t.Parallel()
				r := open(t)
				r.claim(untilStarted)
				h := r.take("first")
				b, taken := r.claim(window)
				require.True(t, taken)
				held := r.do("GET", r.k.unique("a"))
				l.live(r, h)
				require.Equal(t, held, r.do("GET", r.k.unique("a")))
				require.EqualValues(t, -1, r.do("PTTL", r.k.unique("a")))
				holder, taken := r.claim(window)
				require.False(t, taken)
				require.Equal(t, b, holder)
				r.check()
			})
		}
		t.Run("when its window has ended, its job and the key too", func(t *testing.T) {
			t.Parallel()
			r := open(t)
			a, _ := r.claim(window)
			h := r.take("first")
			r.do("DEL", r.k.unique("a")) // by hand, or by an evicting policy
			b, taken := r.claim(window)
			require.True(t, taken)
			require.NotEqual(t, a, b)
			r.must("k", r.settleShot("done", "a", h))
			require.Contains(t, r.do("GET", r.k.unique("a")), b)
			r.check()
		})
	})
}

// Whoever took a key while its job was leased keeps it, whatever the job does then.
func TestAKeyThatWasTakenInBetweenIsNotTakenBack(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		a, _ := r.claim(untilStarted)
		h := r.take("first")
		b, taken := r.claim(untilStarted)
		require.True(t, taken)
		r.must("k", r.unrunShot(h))
		holder, taken := r.claim(untilStarted)
		require.False(t, taken)
		require.Equal(t, b, holder)
		got := r.lease(ask{n: 5})
		require.ElementsMatch(t, []string{a, b}, got.ids())
		r.must("k", r.settleShot("done", "a", hold{a, got.token}))
		require.Contains(t, r.do("GET", r.k.unique("a")), b)
		r.must("k", r.settleShot("done", "a", hold{b, got.token}))
		require.Zero(t, r.number("EXISTS", r.k.unique("a")))
		r.check()
	})
}

// A window that is over holds nothing more than the job does.
func TestAWindowEndsWhileTheJobLives(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		a, _ := r.claim(window)
		over := r.lease(ask{n: 1, noExpired: true}).now
		r.do("SET", r.k.unique("a"), fmt.Sprintf("%s d %d", a, over))
		holder, taken := r.claim(window)
		require.False(t, taken, "its job lives")
		require.Equal(t, a, holder)
		r.lapse(a)
		r.must("k", r.settleShot("done", "a", r.take("second")))
		require.Zero(t, r.number("EXISTS", r.k.unique("a")))
		r.check()
	})
}

// Case 18.
func TestAKeyWithoutItsJobIsTakenOver(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for _, how := range []string{untilDone, untilStarted} {
			r := open(t)
			a, _ := r.claim(how)
			r.do("XDEL", r.k.jobs, a) // by hand
			b, taken := r.claim(how)
			require.True(t, taken)
			require.Contains(t, r.do("GET", r.k.unique("a")), b)
			require.Equal(t, []string{b}, r.lease(ask{n: 5}).ids())
			r.check()
		}
	})
}

func TestTwoItemsWithOneKeyInOneCall(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		second := strings.Replace(untilDone, " 1 ", " 2 ", 1)
		ids, marks := r.enqueue([]string{"a", "a", "b"},
			newJob{rec(), untilDone}, newJob{rec(), second}, newJob{rec(), ""}, newJob{rec(), "d 0 0 3 d 0"}, newJob{rec(), untilDone})
		require.Equal(t, ".d..d", marks)
		require.Equal(t, ids[0], ids[1])
		require.Equal(t, ids[0], ids[4])
		require.EqualValues(t, 3, r.counter("enqueued"))
		require.EqualValues(t, 2, r.counter("duplicate"))
		require.Len(t, r.lease(ask{n: 9}).jobs, 3)
		r.check()
	})
}
