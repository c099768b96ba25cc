//go:build !race

package pawl

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/record"
	"github.com/pawlq/pawl/internal/redistest"
)

// leaves is what a job leaves for a minute.
func (r *rig) leaves(state string) string {
	return fmt.Sprintf("60000 %s", (&record.End{State: state, At: 1750000000000}).Field())
}

func (r *rig) forgetShot(ids ...string) shot {
	s := shot{scriptForget, []string{r.k.done, r.k.doneAt, laneKey}, nil}
	for _, id := range ids {
		s.args = append(s.args, id)
	}
	return s
}

// trims calls trim once.
func (r *rig) trims() string {
	r.t.Helper()
	reply, err := r.ask(&call{script: scriptTrim, keys: []string{r.k.done, r.k.doneAt}})
	require.NoError(r.t, err)
	return fmt.Sprint(reply)
}

// finished leases and finishes n new jobs.
func (r *rig) finished(n int) []string {
	r.t.Helper()
	r.fresh(n)
	got := r.lease(ask{n: n})
	var holds []hold
	for _, j := range got.jobs {
		holds = append(holds, hold{j.id, got.token})
	}
	r.must(strings.Repeat("k", n), r.finishShot("done", "", holds...))
	return got.ids()
}

// keeping is a shot of scripts that keep fewer jobs.
func keeping(t *testing.T, most int, s shot) shot {
	t.Helper()
	table, times := modelTable().replace("local kept_most = 10000", fmt.Sprint("local kept_most = ", most), s.script.name)
	require.Equal(t, 1, times)
	s.script = table[s.script.name]
	return s
}

func TestWhatIsOverIsKeptForItsTimeAndNoLonger(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		before := r.lease(ask{n: 1}).now
		ids := r.finished(3)
		for _, id := range ids {
			require.Equal(t, "done done:at", r.places(id))
			require.InDelta(t, before+60_000, r.number("ZSCORE", r.k.doneAt, id), 30_000)
			require.Equal(t, rec(ended("done")), r.do("HGET", r.k.done, id))
		}
		r.check()
		require.Equal(t, "0 0", r.trims())
		r.rescore(r.k.doneAt, ids[:2])
		require.Len(t, r.words(r.listCall("done", "", "")), 3+4, "what is over is not shown, though it is there")
		require.Equal(t, "2 0", r.trims())
		require.Empty(t, r.places(ids[0]))
		require.Equal(t, "done done:at", r.places(ids[2]))
		r.rescore(r.k.doneAt, ids[2:])
		again := r.finished(1)
		require.Empty(t, r.places(ids[2]), "a call that adds some lets others go")
		require.Equal(t, "done done:at", r.places(again[0]))
		r.check()
	})
}

func TestAQueueKeepsNoMoreThanSoMany(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		ids := r.finished(30)
		r.do("ZADD", r.k.doneAt, 2e12, ids[0]) // it is kept the longest
		h := r.one()
		r.must("k", keeping(t, 8, r.finishShot("done", "", h)))
		require.EqualValues(t, 31-18, r.do("HLEN", r.k.done), "so many a call")
		require.Equal(t, "done done:at", r.places(ids[0]))
		require.Equal(t, "done done:at", r.places(h.id))
		require.Empty(t, r.places(ids[1]))
		next := r.fresh(1)
		r.must("gone", keeping(t, 8, r.cancelLeaving(r.leaves("cancelled"), "", next[0])))
		require.EqualValues(t, 8, r.do("HLEN", r.k.done))
		require.Equal(t, []any{ids[29], h.id}, r.do("ZRANGE", r.k.doneAt, 4, 5))
		r.check()
	})
}

func TestATrimWorksInBoundedSteps(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		var ids []string
		for range 3 {
			ids = append(ids, r.finished(200)...)
		}
		r.rescore(r.k.doneAt, ids)
		require.Equal(t, []string{"250 1", "250 1", "100 0", "0 0"}, []string{r.trims(), r.trims(), r.trims(), r.trims()})
		require.Zero(t, r.do("EXISTS", r.k.done, r.k.doneAt))
	})
}

// Of each end that leaves something, and of no other, one message a call tells.
func TestTheEndsOfKeptJobsAreTold(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		sub := r.rdb.Subscribe(t.Context(), r.k.ended())
		t.Cleanup(func() { _ = sub.Close() })
		_, err := sub.Receive(t.Context())
		require.NoError(t, err)
		told := func() string {
			msg, err := sub.ReceiveTimeout(t.Context(), 20*time.Second)
			require.NoError(t, err)
			return msg.(*redis.Message).Payload
		}
		ids := r.finished(3)
		require.Equal(t, strings.Join(ids, " "), told())

		h := r.one()
		r.must("k", r.settleShot("done", "", h))
		r.must("gone", r.cancelShot("", r.fresh(1)[0]))
		h = r.one()
		s := r.buryShot("", h)
		s.args[4] = "failed"
		r.must("k", s)
		r.must("k", r.retryShot("retried", time.Hour, rec(long), r.one()))
		h = r.one()
		r.must("flagged", r.cancelLeaving(r.leaves("cancelled"), "", h.id))
		r.must("c", r.finishShot("discarded", "", h))
		r.lost(h, "second")
		r.must("l", r.finishShot("done", "", h))

		h = r.takeAgain(h.id)
		r.must("k", r.finishShot("cancelled", "", h))
		require.Equal(t, h.id, told(), "nothing was told of those before")
		h = r.one()
		r.must("k", r.buryShot("", h))
		require.Equal(t, h.id, told())
		id := r.fresh(1)[0]
		r.must("gone", r.cancelLeaving(r.leaves("cancelled"), "", id))
		require.Equal(t, id, told())
		h, _ = r.behind()
		r.must("s", r.retryLeaving(r.leaves("discarded"), "a", "retried", time.Hour, rec(long), h))
		require.Equal(t, h.id, told())
	})
}

// takeAgain leases a job whose lease it lets run out first.
func (r *rig) takeAgain(id string) hold {
	r.t.Helper()
	r.lapse(id)
	got := r.lease(ask{n: 10, nonce: "third"})
	at := slices.Index(got.ids(), id)
	require.GreaterOrEqual(r.t, at, 0)
	return hold{id, got.token}
}

// A user who may not PUBLISH loses a hint, and nothing else.
func TestAnEndThatMayNotBeToldIsStored(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	admin := s.Client(t)
	require.NoError(t, admin.Do(t.Context(), "ACL", "SETUSER", "mute", "on", ">x", "~*", "+@all", "-publish").Err())
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: "mute", Password: "x"})
	t.Cleanup(func() { _ = rdb.Close() })
	r := openRig(t, rdb, nil)
	ids := r.finished(2)
	require.Equal(t, "done done:at", r.places(ids[0]))
	require.EqualValues(t, 2, r.counter("done"))
	h := r.one()
	r.must("k", r.buryShot("", h))
	require.Equal(t, "index dead", r.places(h.id))
	r.check()
}

// What a superseded or a cancelled job leaves is its own record, and how it ended.
func TestWhatIsLeftSaysHowItEnded(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, body := range map[string]string{
			"a short head":   rec(),
			"a long head":    rec(long, priority(3)),
			"a long kind":    rec(func(r *record.Record) { r.Kind = strings.Repeat("k", 255) }),
			"many fields":    rec(func(r *record.Record) { r.Headers, r.Retain = map[string]string{"a": "b"}, time.Hour }),
			"an empty job":   rec(func(r *record.Record) { r.Payload = nil }),
			"no record":      "garbage",
			"a cut one":      "\x01\x20\x00",
			"another layout": "\x02\x00\x01k\x00",
		} {
			r := open(t)
			ids, _ := r.enqueue(nil, newJob{body, ""})
			r.must("gone", r.cancelLeaving(r.leaves("cancelled"), "", ids[0]))
			kept := fmt.Sprint(r.do("HGET", r.k.done, ids[0]))
			want, err := record.Decode([]byte(body))
			if err != nil {
				require.Equal(t, body, kept, name)
				continue
			}
			got, err := record.Decode([]byte(kept))
			require.NoError(t, err, name)
			want.End = &record.End{State: "cancelled", At: 1750000000000}
			require.Equal(t, want, got, name)
		}
		r := open(t)
		h, _ := r.behind()
		r.must("s", r.retryLeaving(r.leaves("discarded"), "a", "retried", time.Hour, rec(long), h))
		got, err := record.Decode([]byte(fmt.Sprint(r.do("HGET", r.k.done, h.id))))
		require.NoError(t, err)
		require.Equal(t, "discarded", got.End.State)
		r.check()
	})
}

// What an eviction or a hand edit left of what is kept is found, and goes.
func TestHalfOfWhatIsKeptIsReportedAndRemoved(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, edit := range map[string]func(r *rig, id string){
			"a record without a time": func(r *rig, id string) { r.do("ZREM", r.k.doneAt, id) },
			"a time without a record": func(r *rig, id string) { r.do("HDEL", r.k.done, id) },
			"a job that is alive":     func(r *rig, id string) { r.do("HSET", r.k.held, id, rec(long)); r.do("ZADD", r.k.due, 1000, id) },
			"a job that is dead": func(r *rig, id string) {
				r.do("HSET", r.k.index, id, r.do("XADD", r.k.dead, "*", "i", id, "p", rec(long)))
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := open(t)
				ids := r.finished(5)
				edit(r, ids[2])
				found, err := r.q.Check(t.Context())
				require.NoError(t, err)
				require.NotEmpty(t, found)
				require.Equal(t, ids[2], found[0].ID)
				words, _ := r.mends()
				require.Equal(t, []string{"0", "1", "0"}, words)
				r.check()
				require.EqualValues(t, 4, r.do("HLEN", r.k.done))
				require.EqualValues(t, 4, r.do("ZCARD", r.k.doneAt))
			})
		}
	})
}
