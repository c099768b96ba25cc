//go:build !race

package pawl

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

// The shots of jobs with an idempotency key, which is "a" unless it is said.

func (r *rig) claimCall(key string, holds ...hold) *call {
	c := &call{script: scriptClaim, keys: []string{r.k.leases, r.k.runs}}
	for _, h := range holds {
		c.keys, c.args = append(c.keys, r.k.idem(key)), append(c.args, h.id, h.token)
	}
	return c
}

// claims asks for the key "a" and returns the letters of the answer, and the holders.
func (r *rig) claims(holds ...hold) (letters string, holders []string) {
	r.t.Helper()
	reply, err := r.ask(r.claimCall("a", holds...))
	require.NoError(r.t, err)
	text, ok := reply.(string)
	require.True(r.t, ok, "%v", reply)
	answers, err := readClaims(text, len(holds))
	require.NoError(r.t, err)
	for _, a := range answers {
		letters += string(a.mark)
		if a.holder != "" {
			holders = append(holders, a.holder)
		}
	}
	return letters, holders
}

// marked is a shot of an end, with the key "a" and what else the script wants of it.
func (r *rig) marked(s shot, at int, more string) shot {
	s.keys = append(s.keys, r.k.idem("a"))
	s.args[at] = fmt.Sprint(s.args[at], " 1", more)
	return s
}

func (r *rig) doneShot(windowMs int, h hold) shot {
	return r.marked(r.settleShot("done", "", h), 3, fmt.Sprint(" ", windowMs))
}

func (r *rig) endShot(counter string, h hold) shot {
	return r.marked(r.settleShot(counter, "", h), 3, " 0")
}

func (r *rig) deadShot(h hold) shot { return r.marked(r.buryShot("", h), 5, "") }

func (r *rig) markedCancel(id string) shot {
	s := r.cancelShot("", id)
	s.keys = append(s.keys, r.k.idem("a"))
	return s
}

// two leases two jobs, and marks the key for the first.
func (r *rig) two() (a, b hold) {
	r.t.Helper()
	ids := r.fresh(2)
	token := r.lease(ask{n: 2}).token
	a, b = hold{ids[0], token}, hold{ids[1], token}
	letters, _ := r.claims(a)
	require.Equal(r.t, "k", letters)
	return a, b
}

func (r *rig) mark() string {
	r.t.Helper()
	if v := r.do("GET", r.k.idem("a")); v != nil {
		return v.(string)
	}
	return ""
}

// What becomes of the first run under a key, and what the second one is answered
// after it: the key is free but where it says.
var markLives = []struct {
	name string
	live func(r *rig, h hold)
	then string
	gone bool // the mark
}{
	{"runs", func(*rig, hold) {}, "b", false},
	{"runs, and asks again", func(r *rig, h hold) { r.claims(h) }, "b", false},
	{"is renewed", func(r *rig, h hold) { r.must("k", r.extendShot(h)) }, "b", false},
	{"has a lease that ran out", func(r *rig, h hold) { r.lapse(h.id) }, "b", false},
	{"is leased again", func(r *rig, h hold) { r.lapse(h.id); r.take("second") }, "b", false},
	{"is to be cancelled", func(r *rig, h hold) { r.must("flagged", r.markedCancel(h.id)) }, "b", false},
	{"is done", func(r *rig, h hold) { r.must("k", r.doneShot(60_000, h)) }, "d", false},
	{"is done after its lease ran out", func(r *rig, h hold) { r.lapse(h.id); r.must("k", r.doneShot(60_000, h)) }, "d", false},
	{"is done though it was cancelled", func(r *rig, h hold) {
		r.must("flagged", r.markedCancel(h.id))
		r.must("k", r.doneShot(60_000, h))
	}, "d", false},
	{"is discarded", func(r *rig, h hold) { r.must("k", r.endShot("discarded", h)) }, "k", true},
	{"is cancelled as it runs", func(r *rig, h hold) {
		r.must("flagged", r.markedCancel(h.id))
		r.must("k", r.endShot("cancelled", h))
	}, "k", true},
	{"dies", func(r *rig, h hold) { r.must("k", r.deadShot(h)) }, "k", true},
	{"runs out and is cancelled", func(r *rig, h hold) { r.lapse(h.id); r.must("gone", r.markedCancel(h.id)) }, "k", true},
	{"runs out and is purged", func(r *rig, h hold) {
		r.lapse(h.id)
		r.must("k", r.marked(r.purgeShot(StateReady, nil, h.id), 2, ""))
	}, "k", true},
	{"fails and is to be retried", func(r *rig, h hold) { r.must("k", r.retryShot("retried", time.Hour, rec(long), h)) }, "k", false},
	{"is snoozed", func(r *rig, h hold) { r.must("k", r.retryShot("snoozed", time.Hour, rec(long), h)) }, "k", false},
	{"is given back", func(r *rig, h hold) { r.must("k", r.releaseShot(h)) }, "k", false},
	{"runs out and is rescheduled", func(r *rig, h hold) { r.lapse(h.id); r.must("ok", r.rescheduleShot(farAway, h.id)) }, "k", false},
	{"fails and is cancelled", func(r *rig, h hold) {
		r.must("k", r.retryShot("retried", time.Hour, rec(long), h))
		r.must("gone", r.markedCancel(h.id))
	}, "k", true},
	{"fails and is purged", func(r *rig, h hold) {
		r.must("k", r.retryShot("retried", time.Hour, rec(long), h))
		r.must("k", r.marked(r.purgeShot(StateDelayed, nil, h.id), 2, ""))
	}, "k", true},
	{"dies and is redriven", func(r *rig, h hold) { r.must("k", r.deadShot(h)); r.must("ok", r.redriveShot("", "", rec(long), h.id)) }, "k", true},
}

func TestWhoMayRunUnderAKeyWhen(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for _, l := range markLives {
			t.Run("the first job "+l.name, func(t *testing.T) {
				t.Parallel()
				r := open(t)
				a, b := r.two()
				require.EqualValues(t, -1, r.do("PTTL", r.k.idem("a")), "a mark that can be evicted, or ends while its job runs, lets two run")
				l.live(r, a)
				require.Equal(t, l.gone, r.mark() == "", r.mark())
				r.check()
				letters, holders := r.claims(b)
				require.Equal(t, l.then, letters)
				if l.then == "k" {
					require.Empty(t, holders)
					require.Equal(t, b.id+" r 0", r.mark())
				} else {
					require.Equal(t, []string{a.id}, holders)
					require.True(t, strings.HasPrefix(r.mark(), a.id))
				}
				r.check()
			})
		}
	})
}

func TestAKeyIsDoneForItsWindow(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		a, b := r.two()
		r.must("k", r.doneShot(60_000, a))
		ttl := r.number("PTTL", r.k.idem("a"))
		require.Greater(t, ttl, int64(50_000))
		require.LessOrEqual(t, ttl, int64(60_001), "it begins with the next whole ms")
		r.must("k", r.marked(r.settleShot("skipped", "", b), 3, " 0"))
		require.True(t, strings.HasPrefix(r.mark(), a.id+" d "), "one that is skipped leaves it alone")
		require.EqualValues(t, 2, r.counter("done"))
		require.EqualValues(t, 1, r.counter("skipped"))
		// Its end counts even where something has taken its expiry away.
		r.do("SET", r.k.idem("a"), a.id+" d 1000")
		c := r.one()
		letters, _ := r.claims(c)
		require.Equal(t, "k", letters)
		r.must("k", r.endShot("discarded", c))
	})
}

// The zombies: whoever has lost the lease neither makes, ends nor changes a mark.
func TestAMarkIsFenced(t *testing.T) {
	t.Parallel()
	ends := map[string]func(r *rig, h hold) shot{
		"done":      func(r *rig, h hold) shot { return r.doneShot(60_000, h) },
		"discarded": func(r *rig, h hold) shot { return r.endShot("discarded", h) },
		"bury":      func(r *rig, h hold) shot { return r.deadShot(h) },
	}
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, end := range ends {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := open(t)
				a, b := r.two()
				again := r.lost(a, "second")
				before := r.mark()
				letters, _ := r.claims(a)
				require.Equal(t, "l", letters)
				r.must("l", end(r, a))
				require.Equal(t, before, r.mark(), "it is the newer run's")

				r.must("k", r.retryShot("retried", time.Hour, rec(long), again))
				letters, _ = r.claims(b, a, again, hold{"1-9223372036854775808", "1-x"})
				require.Equal(t, "klll", letters)
				r.must("ll", end2(end(r, a), end(r, again)))
				require.Equal(t, b.id+" r 0", r.mark(), "it is another job's")
				r.must("k", r.doneShot(60_000, b))
				require.True(t, strings.HasPrefix(r.mark(), b.id+" d "))
				r.check()
			})
		}
	})
}

// end2 is two shots of one script and key in one call.
func end2(a, b shot) shot {
	said := map[*script]int{scriptBury: 1}[a.script] // the channel, once
	a.args = append(a.args, b.args[said:]...)
	return a
}

// A mark that was lost, to an eviction or a failover, may have passed to another.
func TestAJobWhoseMarkWasLostEndsAllTheSame(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		t.Run("and is done where nobody has the key", func(t *testing.T) {
			t.Parallel()
			for _, value := range []string{"", "garbage", "1750000000000000-9223372036854775808 r 0"} {
				r := open(t)
				a, b := r.two()
				r.do("DEL", r.k.idem("a"))
				if value != "" {
					r.do("SET", r.k.idem("a"), value)
				}
				r.must("k", r.doneShot(60_000, a))
				letters, _ := r.claims(b)
				require.Equal(t, "d", letters)
			}
		})
		t.Run("and leaves another's alone", func(t *testing.T) {
			t.Parallel()
			for _, end := range []func(r *rig, h hold) shot{
				func(r *rig, h hold) shot { return r.doneShot(60_000, h) }, func(r *rig, h hold) shot { return r.endShot("discarded", h) },
				(*rig).deadShot, func(r *rig, h hold) shot { r.lapse(h.id); return r.markedCancel(h.id) },
			} {
				r := open(t)
				a, b := r.two()
				r.do("DEL", r.k.idem("a"))
				letters, _ := r.claims(b)
				require.Equal(t, "k", letters)
				r.fire(end(r, a))
				require.Equal(t, b.id+" r 0", r.mark())
				r.check()
			}
		})
	})
}

func TestTwoClaimsOfOneKeyInOneCall(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		ids := r.fresh(3)
		token := r.lease(ask{n: 3}).token
		letters, holders := r.claims(hold{ids[1], token}, hold{ids[0], token}, hold{ids[1], token}, hold{ids[2], token})
		require.Equal(t, "kblb", letters, "the same id twice holds once")
		require.Equal(t, []string{ids[1], ids[1]}, holders)
		require.Equal(t, ids[1]+" r 0", r.mark())
	})
}

func TestAClaimTellsHowLongTheOtherHasRun(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		a, b := r.two()
		us := fence(a.token) - 90_000_000
		r.do("HSET", r.k.runs, a.id, fmt.Sprintf("%d-nonce|0||", us))
		reply, err := r.ask(r.claimCall("a", b))
		require.NoError(t, err)
		answers, err := readClaims(reply.(string), 1)
		require.NoError(t, err)
		require.Equal(t, byte('b'), answers[0].mark)
		require.InDelta(t, 90_000, answers[0].ms, 60_000)
		require.GreaterOrEqual(t, answers[0].ms, int64(90_000))
	})
}

// Somebody made it a list: it is nobody's, and holds nobody up.
func TestAMarkOfAWrongTypeStopsNobody(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		ids := r.fresh(4)
		token := r.lease(ask{n: 4}).token
		r.do("RPUSH", r.k.idem("a"), "x")
		var holds []hold
		for _, id := range ids {
			holds = append(holds, hold{id, token})
		}
		letters, _ := r.claims(holds...)
		require.Equal(t, "mmmm", letters)
		r.must("k", r.doneShot(60_000, holds[0]))
		r.must("k", r.endShot("discarded", holds[1]))
		r.must("k", r.deadShot(holds[2]))
		r.lapse(ids[3])
		r.must("gone", r.markedCancel(ids[3]))
		require.Equal(t, "list", r.do("TYPE", r.k.idem("a")))
		found, err := r.q.Check(t.Context())
		require.NoError(t, err)
		require.Equal(t, []Violation{{r.k.idem("a"), "", "is of a wrong type"}}, found)
	})
}

func TestCheckKnowsMarks(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		a, _ := r.two()
		gone := "1750000000000000-9223372036854775808"
		for value, want := range map[string]string{
			a.id + " r 0": "", "x": "names no job", gone + " r 0": "is marked by a job that is over", "no-id r 0": "is marked by a job that is over",
			gone + " d 253402300799999": "is done and has no expiry", gone + " x 0": "names no job",
		} {
			r.do("SET", r.k.idem("a"), value)
			found, err := r.q.Check(t.Context())
			require.NoError(t, err)
			if want == "" {
				require.Empty(t, found, value)
			} else {
				require.Equal(t, []Violation{{r.k.idem("a"), "", want}}, found, value)
			}
		}
		r.do("SET", r.k.idem("a"), gone+" d 253402300799999", "PX", 60_000)
		r.check()
	})
}

func TestDestroyTakesMarksAlong(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		a, b := r.two()
		r.must("k", r.doneShot(60_000, a))
		reply, err := r.ask(r.claimCall("b", b))
		require.NoError(t, err)
		require.Equal(t, "k", reply)
		r.must("k", r.retryShot("retried", time.Hour, rec(long), b))
		r.do("RPUSH", r.k.idem("c"), "x")
		require.NoError(t, r.q.Destroy(t.Context()))
		require.Empty(t, r.dump())
	})
}

// A full Redis lets go of what it has: that takes a claim before the end.
func TestAFullRedisMarksAndDrains(t *testing.T) {
	t.Parallel()
	onFullServer(t, func(t *testing.T, r *rig) {
		ids := r.fresh(3)
		token := r.lease(ask{n: 3}).token
		r.fill()
		a, b, c := hold{ids[0], token}, hold{ids[1], token}, hold{ids[2], token}
		letters, _ := r.claims(a, b)
		require.Equal(t, "kb", letters)
		r.must("k", r.doneShot(60_000, a))
		letters, _ = r.claims(b)
		require.Equal(t, "d", letters)
		r.must("k", r.endShot("skipped", b))
		reply, err := r.ask(r.claimCall("b", c))
		require.NoError(t, err)
		require.Equal(t, "k", reply)
		r.must("k", r.deadShot(c))
	})
}

// What a wrong type at a queue's own keys does to a claim: an error, and nothing.
func TestAClaimMindsTheKeysOfTheQueue(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for _, key := range []string{"leases", "runs"} {
			r := open(t)
			_, b := r.two()
			r.do("DEL", r.k.prefix+key)
			r.do("SADD", r.k.prefix+key, "x")
			before := redistest.Dump(t.Context(), r.rdb, r.k.prefix)
			_, err := r.ask(r.claimCall("b", b))
			require.ErrorContains(t, err, "WRONGTYPE", key)
			require.Equal(t, before, redistest.Dump(t.Context(), r.rdb, r.k.prefix))
		}
	})
}

func TestAnAnswerToClaimsThatMakesNoSense(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "kk", "d", "d x", "b x", "db x 1", "stale"} {
		_, err := readClaims(text, 1+strings.Count(text, "db"))
		require.Error(t, err, text)
	}
}
