package pawl

import (
	"time"

	"github.com/stretchr/testify/require"
)

// A staleState makes a job that the returned hold has lost.
type staleState struct {
	name string
	// crash: the lease ran out and was counted as a crash, so that the call
	// of its holder, who is alive, takes the crash back.
	crash bool
	make  func(r *rig) hold
}

// The building blocks of states: what others do to a job meanwhile.

func (r *rig) one() hold { r.fresh(1); return r.take("first") }

func (r *rig) lost(h hold, nonce string) hold {
	r.t.Helper()
	r.lapse(h.id)
	next := r.take(nonce)
	require.Equal(r.t, h.id, next.id)
	require.NotEqual(r.t, h.token, next.token)
	return next
}

func (r *rig) must(answer string, s shot) { r.t.Helper(); require.Equal(r.t, answer, r.fire(s)) }

func (r *rig) redriven(h hold) hold {
	r.t.Helper()
	r.must("k", r.buryShot("", h))
	r.must("ok", r.redriveShot("", "", rec(long), h.id))
	return h
}

var staleStates = []staleState{
	{"leased by another", true, func(r *rig) hold { h := r.one(); r.lost(h, "second"); return h }},
	{"leased again by the same worker", true, func(r *rig) hold { h := r.one(); r.lost(h, "first"); return h }},
	{"lost, and its next holder gave it back", true, func(r *rig) hold {
		h := r.one()
		r.must("k", r.releaseShot(r.lost(h, "second")))
		return h
	}},
	{"lost, and its next holder gave it to a third", true, func(r *rig) hold {
		h := r.one()
		r.must("k", r.releaseShot(r.lost(h, "second")))
		r.take("third")
		return h
	}},
	{"lost by the next holder too", false, func(r *rig) hold {
		h := r.one()
		r.lost(r.lost(h, "second"), "third")
		return h
	}},
	{"lost, and cancelled at its next holder", true, func(r *rig) hold {
		h := r.one()
		r.lost(h, "second")
		r.must("flagged", r.cancelShot("", h.id))
		return h
	}},
	{"given back", false, func(r *rig) hold { h := r.one(); r.must("k", r.releaseShot(h)); return h }},
	{"given back and leased by another", false, func(r *rig) hold {
		h := r.one()
		r.must("k", r.releaseShot(h))
		r.take("second")
		return h
	}},
	{"without a run entry", false, func(r *rig) hold { h := r.one(); r.do("HDEL", r.k.runs, h.id); return h }},
	{"with a run entry that is garbage", false, func(r *rig) hold {
		h := r.one()
		r.do("HSET", r.k.runs, h.id, h.token+"|x||")
		return h
	}},
	{"without a lease", false, func(r *rig) hold { h := r.one(); r.do("ZREM", r.k.leases, h.id); return h }},
	{"waiting for a time", false, func(r *rig) hold {
		h := r.one()
		r.must("k", r.retryShot("retried", time.Hour, rec(long), h))
		return h
	}},
	{"waiting with a priority", false, func(r *rig) hold {
		h := r.one()
		r.must("k", r.retryShot("retried", 0, rec(priority(5), suspect), h))
		r.ripen(h.id)
		require.Empty(r.t, r.lease(ask{n: 5, noSuspect: true}).jobs) // but it moves the job
		require.Equal(r.t, "held prio", r.places(h.id))
		return h
	}},
	{"dead", false, func(r *rig) hold { h := r.one(); r.must("k", r.buryShot("", h)); return h }},
	{"dead at its next holder", false, func(r *rig) hold {
		h := r.one()
		r.must("k", r.buryShot("", r.lost(h, "second")))
		return h
	}},
	{"redriven", false, func(r *rig) hold { return r.redriven(r.one()) }},
	{"redriven and leased", false, func(r *rig) hold { h := r.redriven(r.one()); r.take("first"); return h }},
	{"redriven, leased and lost, the holder before the redrive", false, func(r *rig) hold {
		h := r.redriven(r.one())
		r.lost(r.take("second"), "third")
		return h
	}},
	{"redriven, leased and lost, the holder after the redrive", true, func(r *rig) hold {
		r.redriven(r.one())
		h := r.take("second")
		r.lost(h, "third")
		return h
	}},
	{"done", false, func(r *rig) hold { h := r.one(); r.must("k", r.settleShot("done", "", h)); return h }},
	{"done, and kept", false, func(r *rig) hold { h := r.one(); r.must("k", r.finishShot("done", "", h)); return h }},
	{"cancelled while it waited", false, func(r *rig) hold {
		h := r.one()
		r.must("k", r.releaseShot(h))
		r.must("gone", r.cancelShot("", h.id))
		return h
	}},
	{"never there", false, func(r *rig) hold { return hold{"1750000000000000-9223372036854775808", "1-x"} }},
	{"never his", false, func(r *rig) hold { h := r.one(); return hold{h.id, h.token + "x"} }},
}
