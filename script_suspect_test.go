//go:build !race

package pawl

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/record"
)

// A suspect is a job whose next crash would be its last.

// suspects leaves n expired leases whose next crash is the last.
func (r *rig) suspects(n int) (ids []string) {
	r.t.Helper()
	r.many(n, newJob{rec(), ""})
	for len(ids) < n {
		got := r.lease(ask{n: 500, noExpired: true})
		runs, leases := []any{"HSET", r.k.runs}, []any{"ZADD", r.k.leases, "XX"}
		for _, id := range got.ids() {
			runs, leases = append(runs, id, got.token+"|1||"), append(leases, 1000, id)
		}
		r.do(runs...)
		r.do(leases...)
		ids = append(ids, got.ids()...)
	}
	return ids
}

func TestAWorkerTakesOneSuspect(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, make := range map[string]func(r *rig) (flags, crashes string){
			"after expired leases": func(r *rig) (string, string) { r.suspects(5); return "xs", "2" },
			"among the due": func(r *rig) (string, string) {
				r.ripen(r.many(5, newJob{rec(long, suspect), "d 60000 0 0 d 0"})...)
				return "s", "2"
			},
			"among the priorities": func(r *rig) (string, string) {
				r.many(5, newJob{rec(priority(5), suspect), "d 0 5 0 d 0"})
				return "s", "2"
			},
			"among those given back": func(r *rig) (string, string) {
				for _, id := range r.suspects(5) {
					r.do("ZADD", r.k.leases, "XX", 0, id)
					r.do("HSET", r.k.runs, id, "1-x|2||")
				}
				return "s", "2"
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := open(t)
				flags, crashes := make(r)
				require.Empty(t, r.lease(ask{n: 10, noSuspect: true}).jobs)
				require.Zero(t, r.counter("crashed"), "nothing is counted of what was passed over")
				for range 5 {
					got := r.lease(ask{n: 10})
					require.Len(t, got.jobs, 1)
					require.Equal(t, flags, got.jobs[0].flags)
					require.Equal(t, crashes, got.jobs[0].crashes)
					require.Empty(t, r.lease(ask{n: 10, noSuspect: true}).jobs)
				}
				require.Empty(t, r.lease(ask{n: 10}).jobs)
				r.check()
			})
		}
	})
}

func TestWhoIsASuspect(t *testing.T) {
	t.Parallel()
	head := func(crashes, max int) string {
		return rec(long, func(r *record.Record) { r.Crashes, r.MaxCrashes = crashes, max })
	}
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for _, c := range []struct {
			crashes, max int
			want         bool
		}{
			{0, 1, false}, {1, 1, true}, {1, 2, true}, {0, 2, false}, {1, 3, false}, {2, 3, true}, {9, 3, true},
			{1, 0, false}, {2, 0, true}, // 3 is the worker's
			{1, 255, false}, {253, 255, false}, {254, 255, true}, {255, 255, true},
		} {
			r := open(t)
			ids, _ := r.enqueue(nil, newJob{head(c.crashes, c.max), "d 60000 0 0 d 0"})
			r.ripen(ids[0])
			require.Equal(t, c.want, len(r.lease(ask{n: 1, noSuspect: true}).jobs) == 0, "%+v", c)
		}
	})
}

// W8. Suspects that cannot be taken hide nobody, wherever they stand.
func TestJobsBehindSuspectsAreFound(t *testing.T) {
	t.Parallel()
	const many = 5000
	ahead := map[string]func(r *rig) (behind []string){
		"expired leases": func(r *rig) []string {
			h := r.one()
			r.suspects(many)
			r.do("ZADD", r.k.leases, "XX", 2000, h.id)
			return []string{h.id}
		},
		"due jobs": func(r *rig) []string {
			ids := r.many(many+1, newJob{rec(long, suspect), "d 60000 0 0 d 0"})
			args := []any{"ZADD", r.k.due, "XX"}
			for _, id := range ids {
				args = append(args, 1000, id)
			}
			r.do(args...)
			last := ids[many]
			r.do("ZADD", r.k.due, "XX", 2000, last)
			r.do("HSET", r.k.held, last, rec(long))
			return []string{last}
		},
	}
	for name, stand := range ahead {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServer(t, func(t *testing.T, open func(*testing.T) *rig) {
				r := open(t)
				behind := stand(r)
				fresh := r.fresh(3)
				require.Subset(t, r.lease(ask{n: 10, noSuspect: true}).ids(), fresh, "of another source: at once")
				var found []string
				for calls := 0; !slices.Contains(found, behind[0]); calls++ {
					require.LessOrEqual(t, calls, many/64+1, "each call passes over 64 and more")
					found = append(found, r.lease(ask{n: 1, noSuspect: true}).ids()...)
				}
				require.Equal(t, behind, found)
				require.Zero(t, r.counter("lost"))
				require.EqualValues(t, many, r.number("ZCARD", r.k.leases)+r.number("ZCARD", r.k.due)-4)
			})
		})
	}
}

func TestACrashIsCountedWhereALeaseRanOut(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h := r.one()
		for crashes := range 4 {
			require.EqualValues(t, crashes, r.counter("crashed"))
			r.lapse(h.id)
			require.Empty(t, r.lease(ask{n: 1, noExpired: true}).jobs, "it is left to its holder")
			got := r.lease(ask{n: 1})
			require.Len(t, got.jobs, 1)
			require.Equal(t, string(rune('1'+crashes)), got.jobs[0].crashes)
			require.Equal(t, crashes >= 1, strings.Contains(got.jobs[0].flags, "s"))
			require.Equal(t, got.token+"|"+got.jobs[0].crashes+"|r|"+h.token, r.do("HGET", r.k.runs, h.id))
			h.token = got.token
		}
		// Given back and taken again: no crash. Put back with the record's own
		// count: it goes on from there.
		r.must("k", r.releaseShot(h))
		got := r.lease(ask{n: 1})
		require.Equal(t, leasedJob{h.id, rec(), "4", "s"}, got.jobs[0])
		h.token = got.token
		r.must("k", r.retryShot("retried", 0, rec(func(r *record.Record) { r.Crashes = 4 }), h))
		r.ripen(h.id)
		got = r.lease(ask{n: 1})
		require.Equal(t, "4", got.jobs[0].crashes)
		require.EqualValues(t, 4, r.counter("crashed"))
		r.check()
	})
}

// Its own visibility timeout is what a job gets, by the server's clock, rounded
// up.
func TestALeaseLastsAsLongAsItsJobWants(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		own := rec(func(r *record.Record) { r.Visibility = 49 * 24 * time.Hour })
		ids, _ := r.enqueue(nil, newJob{rec(), ""}, newJob{own, ""})
		got := r.lease(ask{n: 2, visibilityMs: 1500})
		for i, want := range []int64{1500, 49 * 24 * 3600 * 1000} {
			at := r.number("ZSCORE", r.k.leases, ids[i])
			require.GreaterOrEqual(t, at, got.now+want)
			require.LessOrEqual(t, at, got.now+want+1)
		}
		r.check()
	})
}

// A holder that turns out to be alive takes its crash back; the worker that was
// told of the crash, and asks again, must not run a job that may run but once.
func TestARepeatedLeaseAnswersWithTheCrashesOfThen(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		alive := r.one()
		r.lapse(alive.id)
		l := newLane(&r.k)
		s := r.leaseShot(ask{n: 1})
		first, err := r.send(l, 1, s)
		require.NoError(t, err)
		require.Equal(t, "1", r.parse(first).jobs[0].crashes)
		r.must("l", r.extendShot(alive))
		again, err := r.send(l, 1, s)
		require.NoError(t, err)
		require.Equal(t, "1", r.parse(again).jobs[0].crashes)
		r.check()
	})
}

// However many suspects rank before a job, a worker that runs one already finds it
// in a few calls, and is told to make them.
func TestAJobBehindManySuspectsIsFoundSoon(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, behind := range map[string]func(r *rig) (id string){
			"after expired leases": func(r *rig) string {
				r.suspects(500)
				id := r.expired(1)[0]
				r.do("ZADD", r.k.leases, "XX", 2000, id)
				return id
			},
			"among the due": func(r *rig) string {
				r.ripen(r.many(500, newJob{rec(long, suspect), "d 60000 0 0 d 0"})...)
				id := r.due(1)[0]
				r.do("ZADD", r.k.due, "XX", 2000, id)
				return id
			},
			"among the priorities": func(r *rig) string {
				r.many(500, newJob{rec(priority(9), suspect), "d 0 9 0 d 0"})
				return r.many(1, newJob{rec(priority(5)), "d 0 5 0 d 0"})[0]
			},
		} {
			t.Run(name, func(t *testing.T) {
				r := open(t)
				id := behind(r)
				for calls := 1; ; calls++ {
					got := r.lease(ask{n: 4, noSuspect: true})
					if len(got.jobs) > 0 {
						require.Equal(t, []string{id}, got.ids())
						break
					}
					require.True(t, got.next >= 0 && got.next <= 100, "the next call is in %d ms", got.next)
					require.Less(t, calls, 10)
				}
				r.check()
			})
		}
	})
}

// Whoever has seen all there is in the second look, but not in the first, need not
// ask again: there is nothing behind these suspects.
func TestManySuspectsWithNothingBehindThemAreNotAskedForInVain(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, ahead := range map[string]func(r *rig, n int){
			"expired leases": func(r *rig, n int) { r.suspects(n) },
			"the due": func(r *rig, n int) {
				r.ripen(r.many(n, newJob{rec(long, suspect), "d 60000 0 0 d 0"})...)
			},
			"the priorities": func(r *rig, n int) {
				r.many(n, newJob{rec(priority(9), suspect), "d 0 9 0 d 0"})
			},
		} {
			for _, n := range []int{64, 70, 100, 130} {
				t.Run(fmt.Sprint(n, " among ", name), func(t *testing.T) {
					r := open(t)
					ahead(r, n)
					for range 3 {
						got := r.lease(ask{n: 4, noSuspect: true})
						require.Empty(t, got.jobs)
						require.EqualValues(t, -1, got.next)
					}
					require.Len(t, r.lease(ask{n: 4}).jobs, 1, "they wait where they were")
					r.check()
				})
			}
		}
	})
}
