//go:build !race

package pawl

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A job that is parked behind one that has gone without an end: nobody lets it go, but
// Check finds it, and so does the walk that mends.

// worn makes parked jobs look as if nobody had looked at them for a while.
func (r *rig) worn(ids ...string) {
	r.t.Helper()
	for _, id := range ids {
		require.EqualValues(r.t, 1, r.do("ZADD", r.k.due, "XX", "CH", int64(parkedFrom)+1, id))
	}
}

// mendAll has a worker's walk look at the queue, as it does once a minute.
func (r *rig) mendAll() {
	r.t.Helper()
	r.do("HDEL", r.k.meta, "mend") // or it would not be due
	(&feed{q: r.q.queueState}).mend(context.Background())
}

// lostHolders are how a job comes to be parked behind nothing, and who has its key
// after the walk: it has, or "" for another.
var lostHolders = map[string]struct {
	lose func(r *rig, h hold, next string)
	has  bool
}{
	"its record went": {func(r *rig, h hold, _ string) { r.do("XDEL", r.k.jobs, h.id) }, true},
	"it went whole": {func(r *rig, h hold, _ string) {
		r.do("XDEL", r.k.jobs, h.id)
		r.do("ZREM", r.k.leases, h.id)
		r.do("HDEL", r.k.runs, h.id)
	}, true},
	"the key went": {func(r *rig, h hold, _ string) {
		r.do("DEL", r.k.unique("a"))
		r.must("k", r.settleShot("done", "a", h))
	}, true},
	"the key went, and is another's": {func(r *rig, h hold, _ string) {
		r.do("DEL", r.k.unique("a"))
		r.must("k", r.settleShot("done", "a", h))
		_, mark := r.putA(newer("another"), untilDone)
		require.Equal(r.t, ".", mark)
	}, false},
	"the key is garbage":         {func(r *rig, _ hold, _ string) { r.do("SET", r.k.unique("a"), "garbage") }, true},
	"the key is of a wrong type": {func(r *rig, _ hold, _ string) { r.do("DEL", r.k.unique("a")); r.do("SADD", r.k.unique("a"), "x") }, false},
	"its own record is garbage":  {func(r *rig, _ hold, next string) { r.do("HSET", r.k.held, next, "garbage") }, false},
}

func TestAJobThatIsParkedBehindNothingIsLetGo(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, c := range lostHolders {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := open(t)
				h, next := r.behind()
				r.worn(next)
				c.lose(r, h, next)
				found, err := r.q.Check(t.Context())
				require.NoError(t, err)
				require.NotEmpty(t, found)

				r.do("DEL", r.k.wake)
				r.mendAll()
				require.Equal(t, "held due", r.places(next))
				require.Less(t, r.number("ZSCORE", r.k.due, next), int64(parkedFrom))
				require.Positive(t, r.number("LLEN", r.k.wake))
				require.Positive(t, r.counter("healed"))
				if c.has {
					require.Equal(t, next+" d 0", r.do("GET", r.k.unique("a")))
				}
				r.mendAll()
				require.Contains(t, r.lease(ask{n: 5}).ids(), next)
			})
		}
	})
}

// Looked at no more often than the walk comes by, and left alone where all is well.
func TestAParkedJobThatWaitsForAHolderIsLeftAlone(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h, next := r.behind()
		before := r.number("ZSCORE", r.k.due, next)
		r.mendAll()
		require.Equal(t, before, r.number("ZSCORE", r.k.due, next), "it has just been parked")
		for _, state := range []func(){func() {}, func() { r.lapse(h.id) }, func() { h = r.take("second"); r.must("k", r.releaseShot(h)) }} {
			state()
			r.worn(next)
			r.mendAll()
			require.GreaterOrEqual(t, r.number("ZSCORE", r.k.due, next), before, "it was looked at")
			require.Equal(t, h.id+" d 0 "+next, r.do("GET", r.k.unique("a")))
			require.Zero(t, r.counter("healed"))
			r.check()
		}
	})
}

// Many are looked at in turn, a hundred in a minute for each worker.
func TestManyParkedJobsAreLookedAtInTurn(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		ids := r.many(150, newJob{rec(long), "d 3600000 0 0 d 0"})
		r.worn(ids...)
		for left := 150; left > 0; left -= 100 {
			require.EqualValues(t, left, r.number("ZCOUNT", r.k.due, int64(parkedFrom), "+inf"))
			r.mendAll()
		}
		require.Zero(t, r.number("ZCOUNT", r.k.due, int64(parkedFrom), "+inf"))
		require.EqualValues(t, 150, r.counter("healed"))
	})
}

// Until the walk comes by, the key is that of the one behind.
func TestAnEnqueueMeetsTheJobBehindALostOne(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h, next := r.behind()
		lostHolders["it went whole"].lose(r, h, next)
		id, mark := r.putA(newer("third"), untilDone)
		require.Equal(t, "d", mark)
		require.Equal(t, next, id)
		id, mark = r.putA(newer("fourth"), latest)
		require.Equal(t, "r", mark)
		require.Equal(t, next, id)
		r.worn(next)
		r.mendAll()
		require.Equal(t, next+" d 0", r.do("GET", r.k.unique("a")))
		require.Equal(t, "fourth", r.payload(next))
		require.Equal(t, []string{next}, r.lease(ask{n: 5}).ids())
		r.check()
	})
}

// What a hand edit makes of the fourth word stops no job, at its end or before.
func TestASuccessorOfGarbage(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for _, next := range []string{"x", "1-1", "99999999999999999999-1", "+"} {
			for name, end := range ends {
				if name == "fails" || name == "snoozes" {
					end = func(r *rig, h hold) {
						r.must("k", r.retryUnder("a", "retried", time.Hour, rec(started), h))
						r.must("gone", r.cancelShot("a", h.id))
					}
				}
				r := open(t)
				h := r.unique("a", untilDone)
				r.do("SET", r.k.unique("a"), h.id+" d 0 "+next)
				found, err := r.q.Check(t.Context())
				require.NoError(t, err)
				require.Len(t, found, 1)
				end(r, h)
				require.Zero(t, r.number("EXISTS", r.k.unique("a")), "%s: %s", name, next)
				r.check()
			}
			r := open(t)
			h := r.unique("a", untilDone)
			r.do("SET", r.k.unique("a"), h.id+" d 0 "+next)
			behind := r.park("new", latest)
			require.Equal(t, h.id+" d 0 "+behind, r.do("GET", r.k.unique("a")))
			r.check()
		}
	})
}

func TestAnUnparkOfAWrongTypeIsAnErrorAndChangesNothing(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		keys := func(r *rig) []string {
			k := &r.k
			return []string{k.jobs, k.held, k.due, k.leases, k.meta, k.minutes, k.wake}
		}
		for i := range keys(open(t)) {
			r := open(t)
			_, next := r.behind()
			r.do("DEL", r.k.unique("a"))
			key := keys(r)[i]
			r.do("DEL", key)
			r.do("SET", key, "a text")
			before := r.dump()
			_, err := r.ask(&call{script: scriptUnpark, keys: append(keys(r), r.k.unique("a")), args: []any{next, 1}})
			require.ErrorContains(t, err, "WRONGTYPE", key)
			require.Equal(t, before, r.dump(), key)
		}
	})
}

// It takes little room, and a full Redis must not keep a job parked for ever.
func TestAFullRedisLetsParkedJobsGo(t *testing.T) {
	t.Parallel()
	onServer(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h, next := r.behind()
		lostHolders["it went whole"].lose(r, h, next)
		r.worn(next)
		r.fill()
		r.mendAll()
		require.Equal(t, StateReady, r.state(next))
	})
}
