//go:build !race

package pawl

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

func TestAStaleHolderChangesNothing(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for verb, make := range holderVerbs {
			for _, state := range staleStates {
				t.Run(verb+" of a job that is "+state.name, func(t *testing.T) {
					t.Parallel()
					r := open(t)
					h := state.make(r)
					want := r.dump()
					if state.crash {
						want[r.k.runs] = crashGivenBack(t, want[r.k.runs], h)
					}
					r.must("l", make(r, h))
					require.Equal(t, want, r.dump())
					r.must("l", make(r, h))
					require.Equal(t, want, r.dump(), "a crash is given back once")
				})
			}
		}
	})
}

// crashGivenBack is the dump of runs after the call of a holder whose lease ran
// out: one crash less, and nobody left to give it back to.
func crashGivenBack(t *testing.T, runs string, h hold) string {
	t.Helper()
	require.Equal(t, 1, strings.Count(runs, "|1|"), runs)
	require.Equal(t, 1, strings.Count(runs, "|"+h.token+`"`), runs)
	return strings.NewReplacer("|1|", "|0|", "|"+h.token+`"`, `|"`).Replace(runs)
}

func TestAStaleHolderChangesNothingAfterFlushAll(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		for _, make := range holderVerbs {
			h := r.one()
			r.do("FLUSHALL")
			r.must("l", make(r, h))
			require.Empty(t, r.dump())
		}
	})
}

func TestOnlyTheLostJobsOfACallAreLeftAlone(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for verb, make := range holderVerbs {
			t.Run(verb+" takes a batch apart", func(t *testing.T) {
				t.Parallel()
				r := open(t)
				r.fresh(3)
				old := r.lease(ask{n: 3})
				r.lapse(old.jobs[1].id)
				next := r.lease(ask{n: 3, nonce: "second"})
				require.Equal(t, old.jobs[1].id, next.jobs[0].id)
				var holds []hold
				for _, j := range old.jobs {
					holds = append(holds, hold{j.id, old.token})
				}
				r.must("klk", make(r, holds...))
				require.Equal(t, "jobs leases runs", r.places(holds[1].id))
				require.Equal(t, next.token+"|0|r|", r.do("HGET", r.k.runs, holds[1].id))
				r.check()
			})
			t.Run(verb+" of one job under both its tokens is the holder's", func(t *testing.T) {
				t.Parallel()
				for _, order := range [][2]int{{0, 1}, {1, 0}} {
					r := open(t)
					was := r.one()
					both := [2]hold{was, r.lost(was, "second")}
					marks := r.fire(make(r, both[order[0]], both[order[1]]))
					require.Equal(t, byte('k'), marks[order[1]], "the current token's")
					require.Equal(t, byte('l'), marks[order[0]], "the old token's")
					r.check()
				}
			})
			t.Run(verb+" of one job twice is done once", func(t *testing.T) {
				t.Parallel()
				r := open(t)
				h := r.one()
				r.must("kl", make(r, h, h))
				r.check()
			})
		}
	})
}

// The holder's side: what each verb does when the token is the current one.
func TestACurrentHolderLeavesTheDocumentedState(t *testing.T) {
	t.Parallel()
	after := map[string]struct{ places, counters string }{
		"settle":  {"", "done"},
		"finish":  {"done done:at", "done"},
		"retry":   {"held due", "retried failed"},
		"snooze":  {"held due", "snoozed"},
		"bury":    {"index dead", "dead failed"},
		"release": {"jobs leases runs", "released"},
		"extend":  {"jobs leases runs", ""},

		"progress": {"jobs leases runs", ""},
	}
	holders := map[string]func(r *rig) hold{
		"a lease that runs":                          func(r *rig) hold { return r.one() },
		"a lease that ran out and that nobody took":  func(r *rig) hold { h := r.one(); r.lapse(h.id); return h },
		"a lease taken from another, who comes back": func(r *rig) hold { return r.lost(r.one(), "second") },
		"a lease after a redrive":                    func(r *rig) hold { r.redriven(r.one()); return r.take("second") },
		"a lease of a job given back":                func(r *rig) hold { r.must("k", r.releaseShot(r.one())); return r.take("second") },
	}
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for verb, make := range holderVerbs {
			for holder, lease := range holders {
				t.Run(verb+" by "+holder, func(t *testing.T) {
					t.Parallel()
					r := open(t)
					h := lease(r)
					want := after[verb]
					before := map[string]int64{}
					for _, c := range counters {
						before[c] = r.counter(c)
					}
					home, places := strings.Fields(r.places(h.id))[0], want.places
					if rest, ok := strings.CutPrefix(places, "jobs "); ok {
						places = home + " " + rest // it stays where it is
					}
					r.must("k", make(r, h))
					require.Equal(t, places, r.places(h.id))
					for _, c := range counters {
						rise := int64(0)
						if strings.Contains(want.counters, c) {
							rise = 1
						}
						require.Equal(t, rise, r.counter(c)-before[c], "counter %s", c)
					}
					switch score := r.number("ZSCORE", r.k.leases, h.id); verb {
					case "release":
						require.Zero(t, score)
						require.EqualValues(t, 1, r.do("LLEN", r.k.wake))
					case "extend":
						require.InDelta(t, time.Now().UnixMilli()+900_000, score, 60_000)
					}
					r.check()
				})
			}
		}
	})
}

// counters are all that meta keeps.
var counters = []string{"enqueued", "duplicate", "started", "done", "failed", "retried", "snoozed", "released",
	"crashed", "dead", "redriven", "discarded", "cancelled", "expired", "purged", "dropped", "lost", "healed", "skipped"}

// A job to be cancelled is its holder's until he ends it.
func TestAFlaggedHolderIsTold(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for verb, want := range map[string]string{
			"settle": "k", "discard": "c", "bury": "c", "release": "c", "extend": "c", "retry": "c", "snooze": "c", "progress": "c",
			"finish": "k", "finish discarded": "c",
		} {
			t.Run(verb, func(t *testing.T) {
				t.Parallel()
				r := open(t)
				h := r.one()
				r.must("flagged", r.cancelShot("", h.id))
				before := r.dump()
				call := r.settleShot("discarded", "", h)
				switch verb {
				case "discard":
				case "finish discarded":
					call = r.finishShot("discarded", "", h)
				default:
					call = holderVerbs[verb](r, h)
				}
				r.must(want, call)
				switch verb {
				case "settle", "finish":
					require.EqualValues(t, 1, r.counter("done"), "what was done stays done")
				case "retry", "snooze", "bury", "discard", "finish discarded":
					require.Equal(t, before, r.dump(), "the caller settles it so")
					r.must("k", r.settleShot("cancelled", "", h))
					require.EqualValues(t, 1, r.counter("cancelled"))
					require.Empty(t, r.places(h.id))
				case "release":
					got := r.lease(ask{n: 1, nonce: "second"})
					require.Equal(t, "c", got.jobs[0].flags, "whoever leases it learns of it")
				}
				r.check()
			})
		}
	})
}

// Others in the same call are not held up by it.
func TestAFlaggedHolderIsToldBesideOthers(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for verb, counter := range map[string]string{"bury": "dead", "discard": "discarded"} {
			r := open(t)
			ids := r.fresh(3)
			token := r.lease(ask{n: 3}).token
			all := []hold{{ids[0], token}, {ids[1], token}, {ids[2], token}}
			r.must("flagged", r.cancelShot("", ids[1]))
			call := r.buryShot("", all...)
			if verb == "discard" {
				call = r.settleShot("discarded", "", all...)
			}
			r.must("kck", call)
			require.EqualValues(t, 2, r.counter(counter))
			require.Zero(t, r.counter("cancelled"))
			require.Equal(t, "jobs leases runs", r.places(ids[1]))
			r.must("k", r.settleShot("cancelled", "", all[1]))
			require.EqualValues(t, 1, r.counter("cancelled"))
			r.check()
		}
	})
}

func TestTheDumpOfAFenceTestSeesAChange(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h := r.one()
		before := redistest.Dump(t.Context(), r.rdb, r.k.prefix)
		r.must("k", r.extendShot(h))
		require.NotEqual(t, before[r.k.leases], r.dump()[r.k.leases])
	})
}
