//go:build !race

package pawl

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Row E2: a Redis that is full takes no job more, and gives back every one it
// has. Each test has a server of its own, since memory is the whole server's.

// fill lets a server take nothing more. All that is in it is above the limit.
func (r *rig) fill() { r.do("CONFIG", "SET", "maxmemory", 1) }

func onFullServer(t *testing.T, fn func(t *testing.T, r *rig)) {
	t.Helper()
	onServer(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		require.Equal(t, "noeviction", r.rdb.ConfigGet(t.Context(), "maxmemory-policy").Val()["maxmemory-policy"])
		fn(t, r)
	})
}

// refused are the calls that need memory; all others work in a full Redis.
var refused = map[string]bool{
	"enqueue": true, "enqueue with a delay": true, "enqueue with a priority": true,
	"enqueue under keys, one of them taken": true, "enqueue of a duplicate": true,
	"enqueue in the place of jobs that wait": true, "enqueue in the place of one given back": true,
	"enqueue behind a running job": true, "enqueue in the place of a parked job": true,
	"redrive": true, "redrive with a priority": true,
	"reschedule": true, "reschedule of a lapsed job": true, "reschedule that is early": true,
}

func TestAFullRedisRefusesWholeCallsAndDrains(t *testing.T) {
	t.Parallel()
	onServer(t, func(t *testing.T, open func(*testing.T) *rig) {
		type prepared struct {
			r *rig
			s shot
		}
		all := map[string]prepared{}
		for name, prepare := range writes {
			r := open(t)
			all[name] = prepared{r, prepare(r)}
			r.rdb.Del(t.Context(), r.k.wake) // the first write must not be saved by it
		}
		open(t).fill()
		for name, p := range all {
			r := p.r
			before := r.whole()
			_, err := r.send(newLane(&r.k), 1, p.s)
			if refused[name] {
				require.ErrorContains(t, err, "OOM", name)
				require.Equal(t, classFull, classify(err), "%s: %v", name, err)
				require.Equal(t, before, r.whole(), name)
			} else {
				require.NoError(t, err, name)
			}
		}
	})
}

func TestAFullRedisIsDrainedByEachVerb(t *testing.T) {
	t.Parallel()
	onFullServer(t, func(t *testing.T, r *rig) {
		r.fresh(100)
		delayed, _ := r.enqueue(nil, newJob{rec(long), "d 60000 0 0 d 0"}, newJob{rec(priority(3)), "d 60000 3 0 d 0"})
		r.ripen(delayed[0])
		r.ripen(delayed[1])
		r.fill()
		ended := 0
		for round := 0; ended < 102; round++ {
			require.Less(t, round, 100)
			got := r.lease(ask{n: 10})
			var holds []hold
			for _, j := range got.jobs {
				holds = append(holds, hold{j.id, got.token})
			}
			require.NotEmpty(t, holds)
			r.fire(r.extendShot(holds...))
			switch n := len(holds) / 4; {
			case n == 0:
				r.fire(r.settleShot("done", "", holds...))
				ended += len(holds)
			default:
				r.fire(r.settleShot("done", "", holds[:n]...))
				r.fire(r.buryShot("", holds[n:2*n]...))
				r.fire(r.retryShot("retried", 0, rec(long), holds[2*n:3*n]...))
				r.fire(r.releaseShot(holds[3*n:]...))
				ended += 2 * n
			}
			r.check()
		}
		require.Zero(t, r.number("XLEN", r.k.jobs)+r.number("HLEN", r.k.held)+r.number("ZCARD", r.k.leases))
		require.EqualValues(t, 102, r.counter("done")+r.counter("dead"))
		require.EqualValues(t, 102, r.counter("enqueued"))
	})
}

func TestLostJobsAreToldSoInAFullRedis(t *testing.T) {
	t.Parallel()
	onServer(t, func(t *testing.T, open func(*testing.T) *rig) {
		rigs := map[string]*rig{}
		lost := map[string]hold{}
		for verb := range holderVerbs {
			r := open(t)
			rigs[verb], lost[verb] = r, r.one()
			r.lost(lost[verb], "second")
		}
		open(t).fill()
		for verb, make := range holderVerbs {
			rigs[verb].must("l", make(rigs[verb], lost[verb]))
			rigs[verb].check()
		}
	})
}

// What was refused is done once there is room, under the same sequence.
func TestARefusedCallMayBeSentAgain(t *testing.T) {
	t.Parallel()
	onFullServer(t, func(t *testing.T, r *rig) {
		l, s := newLane(&r.k), r.enqueueShot(nil, newJob{rec(), ""}, newJob{rec(long), "d 60000 0 0 d 0"})
		r.fill()
		for range 3 {
			_, err := r.send(l, 1, s)
			require.ErrorContains(t, err, "OOM")
		}
		require.Empty(t, r.whole())
		r.do("CONFIG", "SET", "maxmemory", 0)
		_, err := r.send(l, 1, s)
		require.NoError(t, err)
		require.EqualValues(t, 2, r.counter("enqueued"))
		r.must("k", r.retryShot("retried", time.Hour, rec(long), r.take("x")))
		r.check()
	})
}
