//go:build !race

package pawl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What follows a job, in the script that ends it.

func TestWhatFollowsWaitsAsItIsTold(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		r.enqueue([]string{"held"}, newJob{rec(long), "d 60000 0 1 d 0"})
		h := r.unique("a", "d 0 0 1 d 0")
		held := strings.Fields(fmt.Sprint(r.do("GET", r.k.unique("held"))))[0]
		r.do("DEL", r.k.wake)
		answer := r.fire(r.finishThen(0, "done", "a", []string{"held"}, []newJob{{rec(), ""}, {rec(long), "d 50000 0 0 d 0"},
			{rec(priority(7)), "d 0 7 0 d 0"}, {rec(), "d 0 0 2 d 0"}, {rec(), "d 0 0 1 d 0"}, {rec(), "d 0 0 1 d 0"}}, h))
		words := strings.Fields(answer)
		require.Equal(t, "k", words[0])
		require.Equal(t, "...d.d", words[2])
		require.Equal(t, held, words[3])
		require.Empty(t, r.places(h.id))
		require.EqualValues(t, 2, r.do("XLEN", r.k.jobs))
		require.EqualValues(t, 1, r.do("ZCARD", r.k.prio))
		require.EqualValues(t, 2, r.do("ZCARD", r.k.due))
		require.EqualValues(t, 2, r.do("LLEN", r.k.wake))
		require.EqualValues(t, 6, r.counter("enqueued"))
		require.EqualValues(t, 2, r.counter("duplicate"))
		require.True(t, strings.HasPrefix(fmt.Sprint(r.do("GET", r.k.unique("a"))), words[4]+" d "), "a key that the end has freed")
		r.check()
	})
}

func TestALostRunIsNotFollowed(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h := r.one()
		next := r.lost(h, "second")
		enqueued := r.counter("enqueued")
		r.must("l", r.finishThen(60_000, "done", "", nil, []newJob{{rec(), ""}}, h))
		require.Equal(t, enqueued, r.counter("enqueued"))
		require.EqualValues(t, 1, r.do("XLEN", r.k.jobs))
		l, s := newLane(&r.k), r.finishThen(60_000, "done", "", nil, []newJob{{rec(), ""}, {rec(), ""}}, h, next)
		first, err := r.send(l, 1, s)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(fmt.Sprint(first), "lk "), "%v", first)
		require.Equal(t, enqueued+2, r.counter("enqueued"), "those of the holder alone")
		again, err := r.send(l, 1, s)
		require.NoError(t, err)
		require.Equal(t, first, again)
		require.Equal(t, enqueued+2, r.counter("enqueued"))
		r.check()
	})
}

// The window of a job that ends keeps its key; who waits behind it has the key next.
func TestWhatFollowsUnderTheKeyOfTheJobThatEnds(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for name, c := range map[string]struct {
			prepare func(r *rig) hold
			how     string
			mark    string
		}{
			"the key is free":                 {func(r *rig) hold { return r.unique("a", "d 0 0 1 d 0") }, "d 0 0 1 d 0", "."},
			"and was until started":           {func(r *rig) hold { return r.unique("a", "d 0 0 1 s 0") }, "d 0 0 1 s 0", "."},
			"its window goes on":              {func(r *rig) hold { return r.unique("a", "d 0 0 1 d 60000") }, "d 0 0 1 d 0", "d"},
			"and nobody waits behind that":    {func(r *rig) hold { return r.unique("a", "d 0 0 1 d 60000") }, "d 0 0 1 d 0 l", "d"},
			"another waits behind it":         {func(r *rig) hold { h, _ := r.behind(); return h }, "d 0 0 1 d 0", "d"},
			"and is not replaced in its turn": {func(r *rig) hold { h, _ := r.behind(); return h }, "d 0 0 1 d 0 l", "d"},
		} {
			r := open(t)
			h := c.prepare(r)
			answer := strings.Fields(r.fire(r.finishThen(0, "done", "a", nil, []newJob{{newer("y"), c.how}}, h)))
			require.Equal(t, c.mark, answer[2], name)
			require.Zero(t, r.number("ZCOUNT", r.k.due, parkedFrom, "+inf"), name)
			r.check()
		}
	})
}

// A job that waits behind another, and whose record was lost, holds no key of what follows.
func TestAKeyWhoseNextJobWasLostIsFreeForWhatFollows(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		h, next := r.behind()
		r.do("HDEL", r.k.held, next)
		r.do("ZREM", r.k.due, next)
		answer := strings.Fields(r.fire(r.finishThen(0, "done", "a", nil, []newJob{{newer("y"), "d 0 0 1 d 0"}}, h)))
		require.Equal(t, ".", answer[2])
		require.True(t, strings.HasPrefix(fmt.Sprint(r.do("GET", r.k.unique("a"))), answer[1]))
		r.check()
	})
}

// A call takes so many outcomes that what follows them fits, too.
func TestFollowUpsCountInTheSizeOfACall(t *testing.T) {
	t.Parallel()
	w, _ := newPuppetWorker(t)
	runNothing(t, w)
	f := w.feeds[0]
	for _, r := range puppetRuns(f, 5) {
		r.slotless = true
		out := &outcome{run: r, verb: verbSettle, counter: "done"}
		for range 200 {
			out.then = append(out.then, &item{low: 1, record: []byte("x")})
		}
		f.finish(out)
	}
	require.Equal(t, []int{2, 2, 1}, []int{groupSize(f), groupSize(f), groupSize(f)}, "500 at the most")
	for _, r := range puppetRuns(f, 3) {
		r.slotless = true
		f.finish(&outcome{run: r, verb: verbSettle, counter: "done", then: []*item{{record: make([]byte, 700_000)}}})
	}
	require.Equal(t, []int{1, 1, 1}, []int{groupSize(f), groupSize(f), groupSize(f)}, "a megabyte at the most")
}

func groupSize(f *feed) int {
	p := f.group(f.tracks[0], verbFinish)
	if p == nil {
		return 0
	}
	return len(p.outs)
}
