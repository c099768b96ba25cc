//go:build !race

package pawl

import (
	"testing"
	"time"
)

// writes are the calls that change something, each with the state that it
// needs: one of every kind, for the tests of what is true of all.
var writes = map[string]func(r *rig) shot{
	"enqueue": func(r *rig) shot { r.fresh(1); return r.enqueueShot(nil, newJob{rec(), ""}, newJob{rec(), ""}) },
	"enqueue with a delay": func(r *rig) shot {
		return r.enqueueShot(nil, newJob{rec(long), "d 5000 0 0 d 0"}, newJob{rec(long), "a 253402300799999 0 0 d 0"})
	},
	"enqueue with a priority": func(r *rig) shot { return r.enqueueShot(nil, newJob{rec(priority(7)), "d 0 7 0 d 0"}) },
	"enqueue under keys, one of them taken": func(r *rig) shot {
		r.enqueue([]string{"a"}, newJob{rec(), "d 0 0 1 d 0"})
		return r.enqueueShot([]string{"a", "b"}, newJob{rec(), "d 0 0 1 d 0"}, newJob{rec(), "d 0 0 2 d 60000"})
	},
	"enqueue of a duplicate": func(r *rig) shot {
		r.enqueue([]string{"a"}, newJob{rec(), "d 0 0 1 d 0"})
		return r.enqueueShot([]string{"a"}, newJob{rec(), "d 0 0 1 d 0"})
	},
	"enqueue in the place of jobs that wait": func(r *rig) shot {
		r.enqueue([]string{"a", "b"}, newJob{rec(), "d 0 0 1 d 0"}, newJob{rec(priority(3)), "d 0 3 2 d 0"})
		return r.enqueueShot([]string{"a", "b"}, newJob{newer("x"), "d 0 0 1 d 0 r"}, newJob{newer("y"), "d 9000 0 2 d 60000 l"})
	},
	"enqueue in the place of one given back": func(r *rig) shot {
		r.must("k", r.releaseShot(r.unique("a", "d 0 0 1 d 0")))
		return r.enqueueShot([]string{"a"}, newJob{newer("x"), "d 0 0 1 d 0 r"})
	},
	"enqueue behind a running job": func(r *rig) shot {
		r.unique("a", "d 0 0 1 d 0")
		return r.enqueueShot([]string{"a"}, newJob{newer("x"), "d 0 0 1 d 0 l"})
	},
	"enqueue in the place of a parked job": func(r *rig) shot {
		r.behind()
		return r.enqueueShot([]string{"a"}, newJob{newer("x"), "d 0 0 1 d 0 l"})
	},
	"settle before a parked job": func(r *rig) shot { h, _ := r.behind(); return r.settleShot("done", "a", h) },
	"bury before a parked job":   func(r *rig) shot { h, _ := r.behind(); return r.buryShot("a", h) },
	"retry before a parked job": func(r *rig) shot {
		h, _ := r.behind()
		return r.retryUnder("a", "retried", time.Second, rec(long), h)
	},
	"retry of a job that holds a key": func(r *rig) shot {
		return r.retryUnder("a", "retried", time.Second, rec(long), r.unique("a", "d 0 0 1 d 0"))
	},
	"cancel before a parked job": func(r *rig) shot {
		h, _ := r.behind()
		r.lapse(h.id)
		return r.cancelShot("a", h.id)
	},
	"cancel of a parked job": func(r *rig) shot { _, next := r.behind(); return r.cancelShot("a", next) },
	"purge before a parked job": func(r *rig) shot {
		h, _ := r.behind()
		r.lapse(h.id)
		return r.purgeShot(StateReady, []string{"a"}, h.id)
	},
	"purge of a parked job":      func(r *rig) shot { _, next := r.behind(); return r.purgeShot(StateParked, []string{"a"}, next) },
	"reschedule of a parked job": func(r *rig) shot { _, next := r.behind(); return r.rescheduleShot(0, next) },
	"lease of each source": func(r *rig) shot {
		h := r.one()
		r.lapse(h.id)
		due, _ := r.enqueue(nil, newJob{rec(long), "d 5000 0 0 d 0"}, newJob{rec(priority(3)), "d 5000 3 0 d 0"})
		r.ripen(due[0])
		r.ripen(due[1])
		r.enqueue(nil, newJob{rec(priority(7)), "d 0 7 0 d 0"}, newJob{rec(), ""}, newJob{rec(), ""})
		return r.leaseShot(ask{n: 10})
	},
	"lease of a suspect": func(r *rig) shot {
		h := r.one()
		r.lapse(h.id)
		h = r.take("second")
		r.lapse(h.id)
		return r.leaseShot(ask{n: 10})
	},
	"lease of a foreign entry": func(r *rig) shot {
		r.do("XADD", r.k.jobs, "5-5", "f", "v", "g", "w")
		return r.leaseShot(ask{n: 10})
	},
	"lease when there is nothing":    func(r *rig) shot { return r.leaseShot(ask{n: 10}) },
	"lease when all is being run":    func(r *rig) shot { r.one(); return r.leaseShot(ask{n: 10}) },
	"lease when the queue is paused": func(r *rig) shot { r.fresh(1); r.pause(time.Hour); return r.leaseShot(ask{n: 10}) },
	"lease that mends": func(r *rig) shot {
		r.do("ZREM", r.k.leases, r.one().id)
		return r.leaseShot(ask{n: 10})
	},
	"lease of a member without a record": func(r *rig) shot {
		r.do("ZADD", r.k.leases, 1000, "1750000000000000-9223372036854775808")
		return r.leaseShot(ask{n: 10})
	},
	"settle": func(r *rig) shot {
		h := r.unique("a", "d 0 0 1 d 60000")
		return r.settleShot("done", "a", h)
	},
	"finish": func(r *rig) shot {
		r.must("k", r.finishShot("done", "", r.one()))
		h := r.unique("a", "d 0 0 1 d 60000")
		return r.finishShot("done", "a", h)
	},
	"finish with follow-ups": func(r *rig) shot {
		h := r.unique("a", "d 0 0 1 d 0")
		return r.finishThen(0, "done", "a", []string{"b"}, []newJob{{rec(), ""}, {rec(long), "d 5000 0 0 d 0"}, {rec(priority(7)), "d 0 7 0 d 0"},
			{rec(), "d 0 0 2 d 60000"}, {rec(), "d 0 0 1 d 0"}}, h)
	},
	"finish that is lost, with follow-ups": func(r *rig) shot {
		h := r.one()
		r.lost(h, "second")
		return r.finishThen(60_000, "done", "", nil, []newJob{{rec(), ""}, {rec(priority(7)), "d 0 7 0 d 0"}}, h)
	},
	"finish that lets others go": func(r *rig) shot {
		for range 3 {
			h := r.one()
			r.must("k", r.finishShot("done", "", h))
			r.do("ZADD", r.k.doneAt, 1000, h.id)
		}
		return r.finishShot("cancelled", "", r.one())
	},
	"finish before a parked job": func(r *rig) shot { h, _ := r.behind(); return r.finishShot("done", "a", h) },
	"cancel of a waiting job that is kept": func(r *rig) shot {
		return r.cancelLeaving(r.leaves("cancelled"), "", r.fresh(1)[0])
	},
	"retry before a parked job, kept": func(r *rig) shot {
		h, _ := r.behind()
		return r.retryLeaving(r.leaves("discarded"), "a", "retried", time.Second, rec(long), h)
	},
	"forget": func(r *rig) shot {
		h := r.one()
		r.must("k", r.finishShot("done", "", h))
		return r.forgetShot(h.id, h.id, "1750000000000000-9223372036854775808")
	},
	"retry":  func(r *rig) shot { return r.retryShot("retried", time.Second, rec(long), r.one()) },
	"snooze": func(r *rig) shot { return r.retryShot("snoozed", time.Second, rec(long), r.one()) },
	"bury": func(r *rig) shot {
		h := r.unique("a", "d 0 0 1 d 0")
		return r.buryShot("a", h)
	},
	"release":               func(r *rig) shot { return r.releaseShot(r.one()) },
	"extend":                func(r *rig) shot { return r.extendShot(r.one()) },
	"extend by a lost hold": func(r *rig) shot { h := r.one(); r.lost(h, "second"); return r.extendShot(h) },
	"cancel of a waiting job": func(r *rig) shot {
		ids, _ := r.enqueue([]string{"a"}, newJob{rec(), "d 0 0 1 d 0"})
		return r.cancelShot("a", ids[0])
	},
	"cancel of a running job": func(r *rig) shot { return r.cancelShot("a", r.unique("a", "d 0 0 1 d 0").id) },
	"cancel of a dead job": func(r *rig) shot {
		h := r.one()
		r.must("k", r.buryShot("", h))
		return r.cancelShot("", h.id)
	},
	"redrive": func(r *rig) shot {
		h := r.unique("a", "d 0 0 1 d 0")
		r.must("k", r.buryShot("a", h))
		return r.redriveShot("a", "d 0", rec(long), h.id)
	},
	"redrive with a priority": func(r *rig) shot {
		h := r.one()
		r.must("k", r.buryShot("", h))
		return r.redriveShot("", "", rec(priority(4)), h.id)
	},
	"redrive that is refused": func(r *rig) shot {
		h := r.unique("a", "d 0 0 1 d 0")
		r.must("k", r.buryShot("a", h))
		r.enqueue([]string{"a"}, newJob{rec(), "d 0 0 1 d 0"})
		return r.redriveShot("a", "d 0", rec(long), h.id)
	},
	"delete": func(r *rig) shot {
		h := r.one()
		r.must("k", r.buryShot("", h))
		return r.deleteShot(h.id, h.id, "1750000000000000-9223372036854775808")
	},
	"purge of ready jobs": func(r *rig) shot {
		ids, _ := r.enqueue([]string{"a"}, newJob{rec(), "d 0 0 1 d 60000"}, newJob{rec(priority(3)), "d 0 3 0 d 0"})
		return r.purgeShot(StateReady, []string{"a"}, ids[0], ids[1], ids[1])
	},
	"purge of delayed jobs": func(r *rig) shot {
		ids, _ := r.enqueue(nil, newJob{rec(long), "d 60000 0 0 d 0"})
		return r.purgeShot(StateDelayed, nil, ids...)
	},
	"purge of what runs": func(r *rig) shot { return r.purgeShot(StateReady, nil, r.one().id) },
	"reschedule":         func(r *rig) shot { return r.rescheduleShot(253402300799999, r.fresh(1)[0]) },
	"reschedule of a lapsed job": func(r *rig) shot {
		h := r.one()
		r.lapse(h.id)
		return r.rescheduleShot(253402300799999, h.id)
	},
	"reschedule that is early": func(r *rig) shot {
		ids, _ := r.enqueue(nil, newJob{rec(long), "d 60000 0 0 d 0"})
		return r.rescheduleShot(0, ids[0])
	},
	"reschedule of what runs": func(r *rig) shot { return r.rescheduleShot(253402300799999, r.one().id) },
	"pause":                   func(r *rig) shot { r.fresh(1); return r.pauseShot(60_000) },
	"pause without an end":    func(r *rig) shot { r.fresh(1); return r.pauseShot(-1) },
	"resume":                  func(r *rig) shot { r.fresh(1); r.pause(time.Hour); return r.pauseShot(0) },
	"destroy":                 func(r *rig) shot { r.fresh(2); return r.destroyShot() },
	"destroy while a job runs": func(r *rig) shot {
		r.one()
		return r.destroyShot()
	},
	"free": func(r *rig) shot {
		r.enqueue([]string{"a"}, newJob{rec(), "d 0 0 1 d 60000"})
		r.do("SET", r.k.unique("b"), "1750000000000000-9223372036854775808 d 0")
		return r.freeShot("a", "b")
	},
}

// unique enqueues and leases one job that holds a key.
func (r *rig) unique(key, how string) hold {
	r.t.Helper()
	r.enqueue([]string{key}, newJob{rec(), how})
	return r.take("first")
}

func (r *rig) pause(d time.Duration) {
	r.do("HSET", r.k.meta, "paused", time.Now().Add(d).UnixMilli())
}

// eachWrite runs fn for each of them in a queue of its own.
func eachWrite(t *testing.T, fn func(t *testing.T, r *rig, name string, s shot)) {
	t.Helper()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, prepare := range writes {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := open(t)
				fn(t, r, name, prepare(r))
			})
		}
	})
}
