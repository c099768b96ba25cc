package pawl

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is noted of a run stays for as long as its run entry, whatever writes that.
func TestProgressStaysWithTheRunEntry(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, write := range map[string]func(r *rig, before, h hold){
			"a renewal":              func(r *rig, _, h hold) { r.must("k", r.extendShot(h)) },
			"a cancel":               func(r *rig, _, h hold) { r.must("flagged", r.cancelShot("", h.id)) },
			"giving back":            func(r *rig, _, h hold) { r.must("k", r.releaseShot(h)) },
			"giving back unrun":      func(r *rig, _, h hold) { r.must("k", r.unrunShot(h)) },
			"a late holder":          func(r *rig, before, _ hold) { r.must("l", r.extendShot(before)) },
			"what a late one tells":  func(r *rig, before, _ hold) { r.must("l", r.progressShot(before)) },
			"a lease that ran out":   func(r *rig, _, h hold) { r.lost(h, "third") },
			"leasing what came back": func(r *rig, _, h hold) { r.must("k", r.releaseShot(h)); r.take("third") },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := open(t)
				before := r.one()
				h := r.lost(before, "second")
				r.must("k", r.progressShot(h))
				write(r, before, h)
				require.True(t, strings.HasSuffix(r.do("HGET", r.k.runs, h.id).(string), " 50 half"), r.do("HGET", r.k.runs, h.id))
				r.check()
			})
		}
	})
}

// Whoever leases a job is told what the run before had told, a lease that is sent
// again too.
func TestALeaseTellsOfTheProgressBefore(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h := r.one()
		r.must("k", r.progressShot(h))
		r.lapse(h.id)
		l, s := newLane(&r.k), r.leaseShot(ask{n: 1, nonce: "second"})
		for range 2 {
			reply, err := r.send(l, 1, s)
			require.NoError(t, err)
			require.Equal(t, "x 50 half", reply.([]any)[6])
		}
		again := hold{h.id, r.do("HGET", r.k.runs, h.id).(string)}
		again.token, _, _ = strings.Cut(again.token, "|")
		tell := r.progressShot(again)
		tell.args[2] = " 100 all"
		r.must("k", tell)
		require.Equal(t, again.token+"|1|r|"+h.token+" 100 all", r.do("HGET", r.k.runs, h.id))
		r.must("k", r.settleShot("done", "", again))
		require.Zero(t, r.number("EXISTS", r.k.runs))
	})
}

// A late packet with an older value is refused by its lane.
func TestAnOlderProgressDoesNotOverwriteANewerOne(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h := r.one()
		l, older, newer := newLane(&r.k), r.progressShot(h), r.progressShot(h)
		newer.args[2] = " 60 more"
		reply, err := r.send(l, 2, newer)
		require.NoError(t, err)
		require.Equal(t, "k", reply)
		want := r.dump()
		reply, err = r.send(l, 1, older)
		require.NoError(t, err)
		require.Equal(t, "stale", reply)
		require.Equal(t, want, r.dump())
	})
}

// Builds that know of four parts of a run entry hold, renew, cancel, give back and
// end a run that tells of its progress, and keep what it told.
func TestOlderScriptsKeepAProgress(t *testing.T) {
	t.Parallel()
	const (
		four  = `'^([^|]*)|(%d+)|([^|]*)|([^|]*)$'`
		parts = `'^([^|]*)|(%d+)|([^|]*)|([^| ]*)([^|]*)$'`
	)
	older := func(s shot) shot {
		body := strings.ReplaceAll(s.script.body, parts, four)
		require.NotEqual(t, s.script.body, body)
		body = strings.ReplaceAll(body, "before_token .. progress_text", "before_token")
		s.script = &script{name: s.script.name}
		s.script.set(body)
		return s
	}
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h := r.one()
		tell := r.progressShot(h)
		tell.args[2] = " 50 a\xffb: half"
		r.must("k", tell)
		told := func() string { return r.do("HGET", r.k.runs, h.id).(string) }
		r.must("k", older(r.extendShot(h)))
		require.Equal(t, h.token+"|0||"+tell.args[2].(string), told())
		r.must("flagged", older(r.cancelShot("", h.id)))
		require.Equal(t, h.token+"|0|c|"+tell.args[2].(string), told())
		r.must("c", older(r.releaseShot(h)))
		next := r.take("second")
		require.Equal(t, next.token+"|0|cr|"+tell.args[2].(string), told())
		r.must("k", older(r.settleShot("cancelled", "", next)))
		require.Empty(t, r.places(h.id))
		r.check()
	})
}
