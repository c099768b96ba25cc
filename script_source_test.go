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

// ranked are n jobs that are ready, with a priority.
func ranked(n, p int) []newJob {
	return slices.Repeat([]newJob{{rec(priority(p)), fmt.Sprintf("d 0 %d 0 d 0", p)}}, n)
}

// due adds n jobs whose time has come, and expired n leases that ran out.
func (r *rig) due(n int) (ids []string) {
	r.t.Helper()
	ids, _ = r.enqueue(nil, slices.Repeat([]newJob{{rec(long), "d 60000 0 0 d 0"}}, n)...)
	r.ripen(ids...)
	return ids
}

func (r *rig) expired(n int) []string {
	r.t.Helper()
	r.fresh(n)
	ids := r.lease(ask{n: n}).ids()
	require.Len(r.t, ids, n)
	r.lapse(ids...)
	return ids
}

// sourceOf tells from where a leased job came.
func sourceOf(j leasedJob, fresh map[string]bool) string {
	switch {
	case strings.Contains(j.flags, "x"):
		return "expired"
	case fresh[j.id]:
		return "fresh"
	}
	if rec, err := record.Decode([]byte(j.record)); err == nil && rec.Priority > 0 {
		return "prio"
	}
	return "due"
}

func TestEachSourceKeepsItsShare(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for _, n := range []int{1, 2, 3, 4, 7, 16} {
			r := open(t)
			r.expired(100)
			r.due(100)
			r.enqueue(nil, ranked(100, 9)...)
			fresh := map[string]bool{}
			for _, id := range r.fresh(100) {
				fresh[id] = true
			}
			taken := map[string]int{}
			for range 96 / n {
				got := r.lease(ask{n: n})
				require.Len(t, got.jobs, n)
				for _, j := range got.jobs {
					taken[sourceOf(j, fresh)]++
				}
			}
			for _, source := range []string{"expired", "due", "prio", "fresh"} {
				require.InDelta(t, 24, taken[source], 6, "n = %d: %v", n, taken)
			}
			r.check()
		}
	})
}

// Whatever floods of the others come and go, in whatever beat: of n = 1, the
// normal case under load, a quarter is fresh.
func TestAFloodDoesNotStarveFreshJobs(t *testing.T) {
	t.Parallel()
	chance := func(i int, bit uint) bool { return uint32(i+1)*2654435761>>bit&1 == 0 }
	beats := map[string]func(call int) (expired, due, prio bool){
		"all the time":         func(int) (bool, bool, bool) { return true, true, true },
		"every other call":     func(i int) (bool, bool, bool) { return i%2 == 0, true, true },
		"in turns":             func(i int) (bool, bool, bool) { return i%3 == 0, i%3 == 1, i%3 == 2 },
		"by chance":            func(i int) (bool, bool, bool) { return chance(i, 29), chance(i, 23), chance(i, 17) },
		"each with one absent": func(i int) (bool, bool, bool) { return i%4 != 0, i%4 != 1, i%4 != 2 },
	}
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for beat, comes := range beats {
			r := open(t)
			fresh := map[string]bool{}
			for _, id := range r.fresh(100) {
				fresh[id] = true
			}
			const calls = 48
			got := 0
			for i := range calls {
				expired, due, prio := comes(i)
				if expired {
					r.do("ZADD", r.k.leases, 1000, r.enqueueHeld())
				}
				if due {
					r.do("ZADD", r.k.due, 1000, r.enqueueHeld())
				}
				if prio {
					r.do("ZADD", r.k.prio, 1, r.enqueueHeld())
				}
				for _, j := range r.lease(ask{n: 1}).jobs {
					if fresh[j.id] {
						got++
					}
				}
			}
			require.GreaterOrEqual(t, got, calls/4, beat)
		}
	})
}

// enqueueHeld adds a record in no state.
func (r *rig) enqueueHeld() string {
	r.t.Helper()
	ids, _ := r.enqueue(nil, newJob{rec(long), "d 60000 0 0 d 0"})
	r.do("ZREM", r.k.due, ids[0])
	return ids[0]
}

func TestSharesThatAreNotUsedPassOn(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for _, source := range []func(r *rig, n int){
			func(r *rig, n int) { r.expired(n) },
			func(r *rig, n int) { r.due(n) },
			func(r *rig, n int) { r.enqueue(nil, ranked(n, 5)...) },
			func(r *rig, n int) { r.fresh(n) },
		} {
			r := open(t)
			r.fresh(1)
			source(r, 50)
			r.due(1)
			require.Len(t, r.lease(ask{n: 500}).jobs, 52)
			r.check()
		}
	})
}

func TestPrioritiesAreTakenInOrder(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		want := map[int][]string{}
		for _, p := range []int{3, 9, 1, 3, 9} {
			ids, _ := r.enqueue(nil, ranked(1, p)...)
			want[p] = append(want[p], ids[0])
		}
		// One that was due long ago is the oldest of its priority.
		late, _ := r.enqueue(nil, newJob{rec(priority(3)), "d 60000 3 0 d 0"})
		r.ripen(late[0])
		// Not due yet: it does not move.
		r.enqueue(nil, newJob{rec(priority(9)), "d 60000 9 0 d 0"})
		order := slices.Concat(want[9], late, want[3], want[1])
		var got []string
		for range order {
			got = append(got, r.lease(ask{n: 1}).ids()...)
		}
		// Of one millisecond and priority the ids decide; they rise as well.
		require.Equal(t, order, got)
		require.Empty(t, r.lease(ask{n: 1}).jobs)
		require.EqualValues(t, 1, r.number("ZCARD", r.k.due))
		r.check()
	})
}

func TestALeaseOfTheDueGoesByTime(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		ids, _ := r.enqueue(nil, slices.Repeat([]newJob{{rec(long), "d 60000 0 0 d 0"}}, 40)...)
		for i, id := range ids {
			r.do("ZADD", r.k.due, "XX", 1000+len(ids)-i, id)
		}
		slices.Reverse(ids)
		require.Equal(t, ids, r.lease(ask{n: 40}).ids())
		soon, _ := r.enqueue(nil, newJob{rec(long), "d 5000 0 0 d 0"})
		got := r.lease(ask{n: 1})
		require.Empty(t, got.jobs)
		require.InDelta(t, 5000, got.next, 3000)
		require.Equal(t, got.now+got.next, r.number("ZSCORE", r.k.due, soon[0]), "to the millisecond")
		r.check()
	})
}

func TestALeaseCallIsBounded(t *testing.T) {
	t.Parallel()
	sources := map[string]func(r *rig, n int, body string){
		"fresh": func(r *rig, n int, body string) { r.many(n, newJob{body, ""}) },
		"prio":  func(r *rig, n int, body string) { r.many(n, newJob{body, "d 0 5 0 d 0"}) },
		"due": func(r *rig, n int, body string) {
			r.ripen(r.many(n, newJob{body, "d 60000 0 0 d 0"})...)
		},
		"expired": func(r *rig, n int, body string) {
			r.many(n, newJob{body, ""})
			for left := n; left > 0; {
				ids := r.lease(ask{n: 500, noExpired: true}).ids()
				r.lapse(ids...)
				left -= len(ids)
			}
		},
	}
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, fill := range sources {
			t.Run(name+": at most 500 jobs", func(t *testing.T) {
				t.Parallel()
				r := open(t)
				fill(r, 1200, rec(long))
				require.Len(t, r.lease(ask{n: 100_000}).jobs, 500)
				require.EqualValues(t, 2, r.do("LLEN", r.k.wake))
			})
			t.Run(name+": little more than a megabyte", func(t *testing.T) {
				t.Parallel()
				r := open(t)
				const n, size = 23, 256 << 10
				fill(r, n, rec(long, func(r *record.Record) { r.Payload = make([]byte, size) }))
				seen := map[string]bool{}
				for calls := 0; len(seen) < n; calls++ {
					require.Less(t, calls, 7)
					bytes, jobs := 0, r.lease(ask{n: 500, visibilityMs: time.Hour.Milliseconds()}).jobs
					for _, j := range jobs {
						require.False(t, seen[j.id])
						seen[j.id] = true
						bytes += len(j.record)
					}
					require.Positive(t, bytes)
					require.LessOrEqual(t, bytes, 1_000_000+size+100)
					require.EqualValues(t, min(2, n-len(seen)), r.do("LLEN", r.k.wake), "tokens for the rest")
				}
				r.check()
			})
		}
	})
}

// many adds n jobs in calls that a client would make.
func (r *rig) many(n int, j newJob) (ids []string) {
	r.t.Helper()
	for page := 1<<20/len(j.record) + 1; n > 0; {
		more, _ := r.enqueue(nil, slices.Repeat([]newJob{j}, min(n, page, 500))...)
		ids = append(ids, more...)
		n -= len(more)
	}
	return ids
}
