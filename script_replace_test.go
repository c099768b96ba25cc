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

// The scripts of ReplaceWaiting; those of RunLatestAfter are in script_latest_test.go.

const (
	replacing = "d 0 0 1 d 0 r"
	latest    = "d 0 0 1 d 0 l"
)

// newer is a record under the key "a" that can be told from others by its payload.
func newer(payload string, change ...func(*record.Record)) string {
	return rec(append(change, long, func(r *record.Record) {
		r.Payload, r.Unique = []byte(payload), &record.Unique{Key: "a"}
	})...)
}

// putA enqueues a record under the key "a", and returns the id that stands for it and
// its mark.
func (r *rig) putA(body, how string) (id, mark string) {
	r.t.Helper()
	ids, mark := r.enqueue([]string{"a"}, newJob{body, how})
	return ids[0], mark
}

// payload is that of a living job.
func (r *rig) payload(id string) string {
	r.t.Helper()
	body := r.rdb.HGet(r.t.Context(), r.k.held, id).Val()
	if entries := r.rdb.XRange(r.t.Context(), r.k.jobs, id, id).Val(); len(entries) > 0 {
		body, _ = entries[0].Values["r"].(string)
	}
	got, err := record.Decode([]byte(body))
	require.NoError(r.t, err)
	return string(got.Payload)
}

// waits are the places in which the holder of a key may wait, with what became of it.
var waits = map[string]func(r *rig) string{
	"is fresh": func(r *rig) string { id, _ := r.putA(rec(), untilDone); return id },
	"is due later": func(r *rig) string {
		id, _ := r.putA(rec(long), "d 3600000 0 1 d 0")
		return id
	},
	"is due": func(r *rig) string {
		id, _ := r.putA(rec(long), "d 3600000 0 1 d 0")
		r.ripen(id)
		return id
	},
	"has a priority": func(r *rig) string { id, _ := r.putA(rec(priority(4)), "d 0 4 1 d 0"); return id },
	"waits for its retry": func(r *rig) string {
		h := r.unique("a", untilDone)
		r.must("k", r.retryUnder("a", "retried", time.Hour, rec(started), h))
		return h.id
	},
	"was given back": func(r *rig) string {
		h := r.unique("a", untilDone)
		r.must("k", r.releaseShot(h))
		return h.id
	},
	"was given back unrun": func(r *rig) string {
		h := r.unique("a", untilStarted)
		r.must("k", r.unrunShot(h))
		return h.id
	},
	"was rescheduled": func(r *rig) string {
		h := r.unique("a", untilDone)
		r.lapse(h.id)
		r.must("ok", r.rescheduleShot(farAway, h.id))
		return h.id
	},
	"was redriven": func(r *rig) string {
		h := r.unique("a", untilDone)
		r.must("k", r.buryShot("a", h))
		r.must("ok", r.redriveShot("a", "d 0", rec(long), h.id))
		return h.id
	},
}

func TestAWaitingJobIsReplaced(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, wait := range waits {
			for _, c := range []struct{ how, body, places string }{
				{replacing, newer("new"), "held due"},
				{latest, newer("new"), "held due"},
				{"d 3600000 0 1 d 0 r", newer("new"), "held due"},
				{"a 253402300799999 0 1 d 0 l", newer("new"), "held due"},
				{"d 0 7 1 d 0 r", newer("new", priority(7)), "held prio"},
				{"d 0 0 1 s 0 r", newer("new"), "held due"},
			} {
				t.Run(name+": "+c.how, func(t *testing.T) {
					t.Parallel()
					r := open(t)
					a := wait(r)
					id, mark := r.putA(c.body, c.how)
					require.Equal(t, "r", mark)
					require.Equal(t, a, id)
					require.Equal(t, c.places, r.places(a))
					require.Equal(t, "new", r.payload(a))
					require.Equal(t, fmt.Sprintf("%s %s 0", a, strings.Fields(c.how)[4]), r.do("GET", r.k.unique("a")))
					require.EqualValues(t, 1, r.counter("enqueued"))
					require.EqualValues(t, 1, r.counter("duplicate"))
					r.check()

					got := r.lease(ask{n: 5})
					if strings.Contains(c.how, "3600000") || strings.HasPrefix(c.how, "a") {
						require.Empty(t, got.jobs, "it waits for its new time")
						r.ripen(a)
						got = r.lease(ask{n: 5})
					}
					require.Equal(t, []string{a}, got.ids())
					require.Equal(t, "0", got.jobs[0].crashes, "they were the old one's")
					require.Empty(t, got.jobs[0].flags)
					r.must("k", r.settleShot("done", "a", hold{a, got.token}))
					require.Zero(t, r.number("EXISTS", r.k.unique("a")))
					r.check()
				})
			}
		}
	})
}

// A late holder of the job that was replaced has lost it.
func TestTheHolderOfAReplacedJobHasLostIt(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for verb, shoot := range holderVerbs {
			r := open(t)
			h := r.unique("a", untilDone)
			r.must("k", r.releaseShot(h))
			_, mark := r.putA(newer("new"), replacing)
			require.Equal(t, "r", mark)
			before := r.dump()
			r.must("l", shoot(r, h))
			require.Equal(t, before, r.dump(), verb)
		}
	})
}

// Arguments that come again and again must not keep a job from its turn.
func TestAReadyJobThatIsReplacedKeepsItsPlace(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, wait := range waits {
			if name == "is due later" || name == "waits for its retry" || name == "was rescheduled" {
				continue // they were not ready
			}
			r := open(t)
			a := wait(r)
			if r.rdb.HExists(t.Context(), r.k.held, a).Val() {
				// It has been ready since long ago.
				body := []byte(r.rdb.HGet(t.Context(), r.k.held, a).Val())
				got, err := record.Decode(body)
				require.NoError(t, err)
				got.Due = 1000
				r.do("HSET", r.k.held, a, string(got.Append(nil)))
				r.putA(newer("new"), replacing)
				require.EqualValues(t, 1000, r.number("ZSCORE", r.k.due, a), name)
			} else {
				r.putA(newer("new"), replacing)
				us, _, _ := strings.Cut(a, "-")
				require.Equal(t, us[:len(us)-3], fmt.Sprint(r.number("ZSCORE", r.k.due, a)), "%s: since it was enqueued", name)
			}
			require.EqualValues(t, 1, r.number("ZCOUNT", r.k.due, "-inf", time.Now().UnixMilli()))
			r.check()
		}
	})
}

// busy are holders that no enqueue replaces.
var busy = map[string]func(r *rig) hold{
	"runs":       func(r *rig) hold { return r.unique("a", untilDone) },
	"runs again": func(r *rig) hold { return r.lost(r.unique("a", untilDone), "second") },
	"ran out":    func(r *rig) hold { h := r.unique("a", untilDone); r.lapse(h.id); return h },
	"ran out twice": func(r *rig) hold {
		h := r.lost(r.unique("a", untilDone), "second")
		r.lapse(h.id)
		return h
	},
	"is to be cancelled": func(r *rig) hold {
		h := r.unique("a", untilDone)
		r.must("flagged", r.cancelShot("a", h.id))
		return h
	},
	"is to be cancelled, and was given back": func(r *rig) hold {
		h := r.unique("a", untilDone)
		r.must("flagged", r.cancelShot("a", h.id))
		r.must("c", r.releaseShot(h))
		return h
	},
}

func TestARunningJobIsNotReplaced(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, hold := range busy {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := open(t)
				h := hold(r)
				before := r.dump()
				id, mark := r.putA(newer("new"), replacing)
				require.Equal(t, "d", mark)
				require.Equal(t, h.id, id)
				after := r.dump()
				for _, key := range []string{r.k.meta, r.k.minutes, r.k.wake} {
					delete(before, key)
					delete(after, key)
				}
				require.Equal(t, before, after)
				r.check()
			})
		}
	})
}

// A job that is over holds its key for its window, and cannot be replaced.
func TestAWindowThatIsLeftIsNotReplaced(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for _, how := range []string{replacing, latest} {
			r := open(t)
			h := r.unique("a", window)
			r.must("k", r.settleShot("done", "a", h))
			id, mark := r.putA(newer("new"), how)
			require.Equal(t, "d", mark)
			require.Equal(t, h.id, id)
			require.Empty(t, r.lease(ask{n: 5}).jobs)
			r.check()
		}
	})
}

func TestAReplacementBeginsTheWindowAnew(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		till := func(r *rig) int64 {
			_, _, at, _ := parseUnique(r.do("GET", r.k.unique("a")))
			return at
		}
		r := open(t)
		r.putA(rec(), window)
		first := till(r)
		r.putA(newer("b"), "d 0 0 1 d 120000 r")
		second := till(r)
		require.GreaterOrEqual(t, second, first+60000)
		r.putA(newer("c"), "d 0 0 1 d 1000 r")
		require.Equal(t, second, till(r), "it gets no shorter")
		r.putA(newer("d"), replacing)
		require.Equal(t, second, till(r))
		r.check()
	})
}

// parseUnique reads what a unique key holds.
func parseUnique(value any) (id, mode string, till int64, next string) {
	_, _ = fmt.Sscan(fmt.Sprint(value), &id, &mode, &till, &next)
	return id, mode, till, next
}

// A job that has started holds no key of mode "s", so there is nothing to replace.
func TestUntilStartedIsReplacedUntilItHasStarted(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		a, _ := r.putA(newer("a"), "d 0 0 1 s 0 r")
		id, mark := r.putA(newer("b"), "d 0 0 1 s 0 r")
		require.Equal(t, "r", mark)
		require.Equal(t, a, id)
		r.take("first")
		b, mark := r.putA(newer("c"), "d 0 0 1 s 0 r")
		require.Equal(t, ".", mark)
		require.NotEqual(t, a, b)
		require.Equal(t, "b", r.payload(a))
		require.Equal(t, "c", r.payload(b))
		r.check()
	})
}

func TestOfOneCallTheLastWins(t *testing.T) {
	t.Parallel()
	item := func(payload, how string) newJob { return newJob{newer(payload), how} }
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, c := range map[string]struct {
			before       func(r *rig) string // the holder, or ""
			jobs         []newJob
			marks        string
			last, behind string // payloads of who holds the key, and who waits behind it
		}{
			"of a key that is free": {nil, []newJob{item("1", replacing), item("2", replacing), item("3", latest)}, ".rr", "3", ""},
			"after one that keeps":  {nil, []newJob{item("1", untilDone), item("2", replacing)}, ".r", "2", ""},
			"before one that keeps": {nil, []newJob{item("1", replacing), item("2", untilDone)}, ".d", "1", ""},
			"of a job that waits":   {waits["is fresh"], []newJob{item("1", replacing), item("2", untilDone), item("3", replacing)}, "rdr", "3", ""},
			"of a job that runs":    {func(r *rig) string { return r.unique("a", untilDone).id }, []newJob{item("1", replacing), item("2", latest), item("3", latest), item("4", untilDone)}, "d.rd", "0123456789012345", "3"},
			"and one with a delay":  {nil, []newJob{item("1", replacing), item("2", "d 3600000 0 1 d 0 r")}, ".r", "2", ""},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := open(t)
				if c.before != nil {
					c.before(r)
				}
				jobs := slices.Concat(c.jobs, []newJob{{rec(), ""}})
				_, marks := r.enqueue([]string{"a"}, jobs...)
				require.Equal(t, c.marks+".", marks)
				holder, _, _, next := parseUnique(r.do("GET", r.k.unique("a")))
				require.Equal(t, c.last, r.payload(holder))
				require.Equal(t, c.behind != "", next != "")
				if next != "" {
					require.Equal(t, c.behind, r.payload(next))
				}
				require.EqualValues(t, strings.Count(c.marks, "d")+strings.Count(c.marks, "r"), r.counter("duplicate"))
				r.check()
			})
		}
	})
}
