//go:build !race

package pawl

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// Row E6: a key of the wrong type is an error of its own, and nothing is done.
func TestAWrongTypeStopsAScriptBeforeItWrites(t *testing.T) {
	t.Parallel()
	eachWrite(t, func(t *testing.T, r *rig, name string, s shot) {
		l := newLane(&r.k)
		for _, key := range withLane(append([]string(nil), s.keys...), l) {
			moved := r.number("EXISTS", key) == 1
			if moved {
				r.do("RENAME", key, "aside:"+key)
			}
			r.do("SADD", key, "no part of the layout is a set")
			before := r.whole()

			if r.unneeded(name, s.script.name, key) {
				r.do("DEL", key)
				if moved {
					r.do("RENAME", "aside:"+key, key)
				}
				continue
			}
			if r.indifferent(name, s.script.name, key) {
				_, err := r.send(newLane(&r.k), 3, s)
				require.NoError(t, err, "%s at %s", name, key)
			} else {
				_, err := r.send(l, 3, s)
				require.ErrorContains(t, err, "WRONGTYPE", "%s at %s", name, key)
				require.Equal(t, classBroken, classify(err), "%s: %v", key, err)
				require.Equal(t, before, r.whole(), "%s at %s", name, key)
			}

			r.do("DEL", key)
			if moved {
				r.do("RENAME", "aside:"+key, key)
			}
		}
		_, err := r.send(l, 3, s)
		require.NoError(t, err, "and all is well again")
	})
}

// indifferent are the keys whose type a script does not mind: a unique key that
// is not the job's does not hold up its end, nor the redrive of others, a pause only
// asks whether there is a queue, Destroy removes whatever lies there, and a job that
// waits for nothing only enters the stream.
func (r *rig) indifferent(name, script, key string) bool {
	if name == "enqueue" || name == "tick" {
		return slices.Contains([]string{r.k.held, r.k.due, r.k.prio, r.k.leases, r.k.runs}, key)
	}
	switch script {
	case "settle", "finish", "bury", "retry", "cancel", "purge", "free", "redrive":
		return strings.Contains(key, ":unique:")
	case "pause":
		return key == r.k.jobs || key == r.k.held || key == r.k.dead || key == r.k.workers || key == r.k.schedules
	case "destroy":
		return !strings.Contains(key, ":lane:")
	}
	return false
}

// unneeded are keys that a script is given for the job behind another, or for what is
// kept, where there is none: see TestAnEndMindsNotWhatItDoesNotNeed.
func (r *rig) unneeded(name, script, key string) bool {
	if name == "tick that passes without a job" || name == "tick of a schedule that has changed" {
		return slices.Contains([]string{r.k.held, r.k.due, r.k.prio, r.k.leases, r.k.runs}, key)
	}
	if (script == "cancel" || script == "retry") && !strings.Contains(name, "kept") && (key == r.k.done || key == r.k.doneAt) {
		return true
	}
	if script == "finish" && !strings.Contains(name, "with follow-ups") && key == r.k.prio || name == "finish that is lost, with follow-ups" {
		return slices.Contains([]string{r.k.prio, r.k.due, r.k.wake}, key)
	}
	if name == "finish with follow-ups" {
		return false
	}
	ends := script == "settle" || script == "finish" || script == "bury"
	return ends && !strings.Contains(name, "parked") && (key == r.k.due || key == r.k.wake)
}

func TestAnEndMindsNotWhatItDoesNotNeed(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, want := range map[string]string{"settle": "k", "finish": "k", "bury": "k", "cancel of a waiting job": "gone", "retry": "k"} {
			for i := range 2 {
				r := open(t)
				s := writes[name](r)
				key := []string{r.k.due, r.k.wake}[i]
				if want == "gone" || name == "retry" {
					key = []string{r.k.done, r.k.doneAt}[i]
				}
				r.do("DEL", key)
				r.do("SADD", key, "no part of the layout is a set")
				r.must(want, s)
				require.Equal(t, "set", r.do("TYPE", key))
			}
		}
	})
}

func TestAUniqueKeyOfAWrongTypeIsLeftAlone(t *testing.T) {
	t.Parallel()
	eachWrite(t, func(t *testing.T, r *rig, name string, s shot) {
		key := r.k.unique("a")
		if !slices.Contains(s.keys, key) || !r.indifferent(name, s.script.name, key) {
			return
		}
		r.do("DEL", key)
		r.do("SADD", key, "x")
		_, err := r.send(newLane(&r.k), 3, s)
		require.NoError(t, err)
		want := "set"
		if name == "free" {
			want = "none" // its queue is gone, and it with it
		}
		require.Equal(t, want, r.do("TYPE", key))
	})
}

func TestDestroyMindsItsLane(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		r.fresh(1)
		l := newLane(&r.k)
		r.do("SADD", l.key, "x")
		before := r.whole()
		_, err := r.send(l, 3, r.destroyShot())
		require.ErrorContains(t, err, "WRONGTYPE")
		require.Equal(t, before, r.whole())
	})
}

// Numbers and places that a hand edit spoilt do not stop a queue in mid-write.
func TestCountersOfGarbageAreStartedAnew(t *testing.T) {
	t.Parallel()
	eachWrite(t, func(t *testing.T, r *rig, _ string, s shot) {
		clean, l := newLane(&r.k), newLane(&r.k)
		for _, c := range counters {
			r.do("HSET", r.k.meta, "n:"+c, "garbage")
		}
		r.do("HSET", r.k.meta, "n:started", "9223372036854775807") // one more overflows
		_, err := r.send(l, 3, s)
		require.NoError(t, err)
		for _, c := range counters {
			r.do("HDEL", r.k.meta, "n:"+c)
		}
		_, err = r.send(clean, 3, r.leaseShot(ask{n: 10}))
		require.NoError(t, err)
		r.check()
	})
}

func TestFieldsOfGarbageDoNotStopAQueue(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for _, field := range []string{"last", "cursor", "fence", "turn", "swept", "paused"} {
			for _, value := range []string{"", "x", "-", "7-x", "(", "1.5", "-3"} {
				t.Run(field+" is "+value, func(t *testing.T) {
					t.Parallel()
					r := open(t)
					h := r.one()
					r.do("HSET", r.k.meta, field, value)
					ids := r.fresh(2)
					require.Equal(t, ids, r.lease(ask{n: 5}).ids(), "the running one is not leased again")
					r.must("k", r.settleShot("done", "", h))
					require.Empty(t, r.lease(ask{n: 5}).jobs)
					_, err := r.q.Stats(t.Context())
					require.NoError(t, err)
					r.check()
				})
			}
		}
	})
}

func TestMembersThatAreNoIdsAreDropped(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for _, member := range []string{"", "x", "1-2-3", "99999999999999999999-1", "-", "+", "a b", "\x00"} {
			t.Run(fmt.Sprintf("%q", member), func(t *testing.T) {
				t.Parallel()
				r := open(t)
				ids := r.fresh(1)
				r.do("ZADD", r.k.leases, 1000, member)
				r.do("HSET", r.k.runs, member, "1-x|0||")
				r.do("ZADD", r.k.due, 1000, member)
				r.do("ZADD", r.k.prio, 1000, member)
				require.Equal(t, ids, r.lease(ask{n: 5}).ids())
				require.EqualValues(t, 3, r.counter("lost"))
				require.Empty(t, r.places(ids[0])[len("jobs leases runs"):])
				r.check()
			})
		}
	})
}

func TestAUniqueKeyOfGarbageIsTakenOver(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for _, value := range []string{"", "x", "x d 0", "1 d", "99999999999999999999-1 d 0", "1-1 d 0", "1-1 q x", "+ s 0"} {
			r := open(t)
			r.do("SET", r.k.unique("a"), value)
			ids, marks := r.enqueue([]string{"a"}, newJob{rec(), "d 0 0 1 d 0"})
			require.Equal(t, ".", marks, "%q", value)
			require.Equal(t, ids[0]+" d 0", r.do("GET", r.k.unique("a")))
			r.check()
		}
	})
}

// What a hand edit left in the index of the dead costs no job.
func TestBuryReplacesWhateverTheIndexSays(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for _, grave := range []string{"x", "5-5", "99999999999999999999-1"} {
			r := open(t)
			h := r.one()
			r.do("HSET", r.k.index, h.id, grave)
			r.must("k", r.buryShot("", h))
			require.Equal(t, "index dead", r.places(h.id))
			r.check()
		}
		r := open(t)
		h := r.one()
		old := r.do("XADD", r.k.dead, "5-5", "i", h.id, "p", "an older post-mortem")
		r.do("HSET", r.k.index, h.id, old)
		r.must("k", r.buryShot("", h))
		require.EqualValues(t, 1, r.do("XLEN", r.k.dead), "one tombstone")
		r.check()
	})
}

// Row E7: what is in the stream and is no job of ours is leased under an id by
// which it can be buried.
func TestForeignEntriesAreLeased(t *testing.T) {
	t.Parallel()
	low := newLow()
	for name, add := range map[string][]any{
		"an id of Redis":              {"1750000000000-0", "r", rec()},
		"a small id":                  {"5-5", "a", "1", "b", "2"},
		"an id with a low half below": {"1750000000000000-9223372036854775807", "r", rec()},
		"an id with a low half above": {"1750000000000000-13835058055282163712", "r", rec()},
		"an id with a long high half": {"175000000000000000-" + low, "r", rec()},
		"our id and other fields":     {"1750000000000000-" + low, "a", "1", "b", "2"},
		"our id and another name":     {"1750000000000000-" + low, "x", rec()},
		"our id and one field more":   {"1750000000000000-" + low, "r", rec(), "a", "1"},
		"an empty record":             {"1750000000000000-" + low, "r", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
				r := open(t)
				r.do(append([]any{"XADD", r.k.jobs}, add...)...)
				got := r.lease(ask{n: 5})
				require.Len(t, got.jobs, 1)
				job := got.jobs[0]
				id, ok := jobid.FromText(job.id)
				require.True(t, ok, job.id)
				_, err := record.Decode([]byte(job.record))
				switch {
				case name == "an empty record":
					require.Empty(t, job.record)
				case add[1] == "r" && len(add) == 3:
					require.NoError(t, err, "it is a job but for its id")
				default:
					require.ErrorIs(t, err, record.ErrCorrupt)
					for _, part := range add[1:] {
						require.Contains(t, job.record, part)
					}
				}
				r.check()
				info, err := r.q.Get(t.Context(), id)
				require.NoError(t, err)
				require.Equal(t, StateRunning, info.State)
				r.must("k", r.buryShot("", hold{job.id, got.token}))
				require.Equal(t, "index dead", r.places(job.id))
				require.Zero(t, r.number("XLEN", r.k.jobs))
				require.Empty(t, r.lease(ask{n: 5}).jobs)
				r.check()
			})
		})
	}
}

// The reader of heads is total: whatever the bytes, the job is leased and can
// be ended, wherever it waits.
func TestRecordsWithASpoiltHeadAreLeased(t *testing.T) {
	t.Parallel()
	full := rec(priority(9), suspect, func(r *record.Record) { r.Visibility = time.Minute })
	heads := []string{"", "\x00", "\x01", "\x01\x2f", "\x02\x09", "\xff\xff", "\x01\xff", strings.Repeat("\xff", 14), "r"}
	for n := range 15 {
		heads = append(heads, full[:n])
	}
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		for _, head := range heads {
			for _, how := range []string{"", "d 5000 0 0 d 0", "d 0 5 0 d 0"} {
				ids, _ := r.enqueue(nil, newJob{head, how})
				if strings.HasPrefix(how, "d 5") {
					r.ripen(ids[0])
				}
				got := r.lease(ask{n: 5})
				require.Equal(t, ids, got.ids(), "%q %q", head, how)
				require.Equal(t, len(head), len(got.jobs[0].record))
				h := hold{ids[0], got.token}
				r.lapse(h.id)
				got = r.lease(ask{n: 5})
				require.Equal(t, ids, got.ids(), "%q %q", head, how)
				r.must("k", r.buryShot("", hold{h.id, got.token}))
				require.Equal(t, "index dead", r.places(h.id))
			}
		}
		r.check()
	})
}
