//go:build !race

package pawl

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

// whole is every key of the queue, the lanes too.
func (r *rig) whole() map[string]string {
	r.t.Helper()
	return redistest.Dump(r.t.Context(), r.rdb, r.k.prefix)
}

// said is an answer without the time of day, which a lease tells again.
func said(reply any) string {
	if parts, ok := reply.([]any); ok && len(parts) > 1 {
		return fmt.Sprintf("%q", parts[1:])
	}
	return fmt.Sprintf("%q", reply)
}

func TestACallSentAgainIsAnsweredAndNotDoneAgain(t *testing.T) {
	t.Parallel()
	eachWrite(t, func(t *testing.T, r *rig, _ string, s shot) {
		l := newLane(&r.k)
		first, err := r.send(l, 7, s)
		require.NoError(t, err)
		after := r.whole()
		require.Contains(t, after[l.key], "string ttl")
		for range 2 {
			again, err := r.send(l, 7, s)
			require.NoError(t, err)
			require.Equal(t, said(first), said(again))
			require.Equal(t, after, r.whole())
			r.do("SCRIPT", "FLUSH")
		}
	})
}

func TestACallThatComesAfterANewerOneIsStale(t *testing.T) {
	t.Parallel()
	eachWrite(t, func(t *testing.T, r *rig, _ string, s shot) {
		l := newLane(&r.k)
		_, err := r.send(l, 7, s)
		require.NoError(t, err)
		after := r.whole()
		for _, seq := range []int64{6, 1, 0, -1} {
			late, err := r.send(l, seq, s)
			require.NoError(t, err)
			if parts, ok := late.([]any); ok { // lease answers with a list
				require.Equal(t, []any{"stale"}, parts)
			} else {
				require.Equal(t, "stale", late)
			}
			require.Equal(t, after, r.whole())
		}
	})
}

func TestALateCallThatNeverRanIsStaleToo(t *testing.T) {
	t.Parallel()
	eachWrite(t, func(t *testing.T, r *rig, _ string, s shot) {
		l := newLane(&r.k)
		_, err := r.send(l, 8, r.enqueueShot(nil, newJob{rec(long), "d 5000 0 0 d 0"})) // any newer call
		require.NoError(t, err)
		after := r.whole()
		_, err = r.send(l, 7, s)
		require.NoError(t, err)
		require.Equal(t, after, r.whole())
	})
}

// A lane's memory outlives what Redis forgets of scripts, and a sequence is
// compared as a number.
func TestSequencesAreCompared(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		l := newLane(&r.k)
		for i, seq := range []int64{9, 10, 99, 100, 1 << 52, 1<<53 - 1} {
			_, err := r.send(l, seq, r.enqueueShot(nil, newJob{rec(), ""}))
			require.NoError(t, err)
			require.EqualValues(t, i+1, r.counter("enqueued"), "sequence %d", seq)
		}
		r.check()
	})
}

func TestALaneOfGarbageBreaksNothing(t *testing.T) {
	t.Parallel()
	eachWrite(t, func(t *testing.T, r *rig, _ string, s shot) {
		garbage := []string{"", " ", "x", "7", "7x 7", "x 7", "\x00\xff", "nil nil", " 7 x", "6 ", "-1 x", "1e999x y"}
		for _, text := range garbage {
			l := newLane(&r.k)
			r.do("SET", l.key, text)
			_, err := r.send(l, 7, s)
			require.NoError(t, err, "%q", text)
			require.Contains(t, r.do("GET", l.key), "7 ", "the lane works again")
			r.do("DEL", l.key)
		}
	})
}

func TestAnAnswerThatIsNoLeasesIsNotTakenForOne(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		r.fresh(1)
		for _, text := range []string{"7 ", "7 x", "7 kkk"} {
			l := newLane(&r.k)
			r.do("SET", l.key, text, "PX", 60_000)
			reply, err := r.send(l, 7, r.leaseShot(ask{n: 1}))
			require.NoError(t, err, "%q", text)
			r.parse(reply)
		}
		r.check()
	})
}

func TestARepeatedLeaseAnswersWithTheJobsItStillHolds(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(r *rig, h hold){
		"settled":           func(r *rig, h hold) { r.must("k", r.settleShot("done", "", h)) },
		"buried":            func(r *rig, h hold) { r.must("k", r.buryShot("", h)) },
		"put back":          func(r *rig, h hold) { r.must("k", r.retryShot("retried", 1, rec(long), h)) },
		"leased by another": func(r *rig, h hold) { r.lost(h, "second") },
		"dropped by hand":   func(r *rig, h hold) { r.do("DEL", r.k.runs) },
	} {
		t.Run("but not a job that was "+what, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
				r := open(t)
				ids := r.fresh(3)
				l, s := newLane(&r.k), r.leaseShot(ask{n: 3})
				reply, err := r.send(l, 1, s)
				require.NoError(t, err)
				first := r.parse(reply)
				require.Equal(t, ids, first.ids())
				lose(r, hold{ids[1], first.token})
				after := r.whole()

				reply, err = r.send(l, 1, s)
				require.NoError(t, err)
				again := r.parse(reply)
				require.Equal(t, first.token, again.token)
				require.Equal(t, after, r.whole())
				want := slices.Delete(slices.Clone(first.jobs), 1, 2)
				if what == "dropped by hand" {
					want = nil
				}
				require.Equal(t, want, again.jobs)
			})
		})
	}
}

func TestARepeatedLeaseSaysWhatItIsOf(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h := r.one()
		r.lapse(h.id)
		h = r.take("second")
		r.lapse(h.id)
		l, s := newLane(&r.k), r.leaseShot(ask{n: 3, nonce: "third"})
		first, err := r.send(l, 1, s)
		require.NoError(t, err)
		require.Equal(t, "xs", r.parse(first).jobs[0].flags)
		r.must("flagged", r.cancelShot("", h.id))
		again, err := r.send(l, 1, s)
		require.NoError(t, err)
		require.Equal(t, "cxs", r.parse(again).jobs[0].flags, "what it was, and what came since")
	})
}
