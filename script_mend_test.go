//go:build !race

package pawl

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mends calls the script until it has no more to look at, as one worker does in a
// minute, and returns its last words and how many calls it took.
func (r *rig) mends() (words []string, calls int) {
	r.t.Helper()
	for first := "1"; calls < 100; first = "0" {
		c := &call{script: scriptMend, args: []any{first}, keys: r.mendKeys()}
		attempt(r.t.Context(), r.rdb, c)
		require.NoError(r.t, c.err)
		words = strings.Fields(c.reply.(string))
		require.Len(r.t, words, 3)
		if calls++; words[2] == "0" {
			return words, calls
		}
	}
	require.Fail(r.t, "the walk does not end")
	return nil, 0
}

func (r *rig) mendKeys() []string {
	return r.k.living(r.k.dead, r.k.index, r.k.meta, r.k.minutes, r.k.done, r.k.doneAt)
}

// strays adds run entries without a job.
func (r *rig) strays(n int) {
	r.t.Helper()
	for i := range n {
		r.do("HSET", r.k.runs, fmt.Sprintf("17000000000000%02d-%d", i%100, uint64(1)<<63+uint64(i)), "t|0||")
	}
}

// All workers of a queue share one walk: the second of them finds that it is not
// due, and goes on where the first one stopped once it is.
func TestAFleetMendsNoMoreOftenThanOneWorker(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		r.fresh(1)
		r.strays(450)
		words, calls := r.mends()
		require.Equal(t, []string{"450", "0", "0"}, words)
		require.Equal(t, 3, calls, "200 a call")

		r.strays(10)
		words, calls = r.mends()
		require.Equal(t, []string{"450", "0", "0"}, words, "another has just looked")
		require.Equal(t, 1, calls)

		now := r.rdb.Time(t.Context()).Val()
		for _, begun := range []time.Time{now.Add(-45 * time.Second), now.Add(time.Hour)} { // the clock went back
			r.do("HSET", r.k.meta, "mend", fmt.Sprintf("%d r 0 0", begun.UnixMilli()))
			words, _ = r.mends()
			require.Equal(t, "0", words[2])
			require.Zero(t, r.do("HLEN", r.k.runs))
			r.strays(10)
		}
	})
}

// What a hand edit made of the place of the walk is no obstacle: it starts anew.
func TestAWalkFromAPlaceThatIsNoneStartsAnew(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		r.fresh(1)
		for _, place := range []string{"", "garbage", "0 garbage", "0 z 0 0", "0 d garbage 0", "0 d 99999999999999999999-1 0",
			"0 i garbage 0", "0 r 99999999999999999999999 0", "0 r 0 garbage", "0 r -1 0",
			"0 r 0 " + strings.Repeat("9", 400), strings.Repeat("9", 400) + " r 0 0"} {
			r.strays(2)
			r.do("HSET", r.k.meta, "mend", place)
			r.mends()
			require.Zero(t, r.do("HLEN", r.k.runs), place)
		}
	})
}

func TestMendingAQueueThatIsNotThereLeavesNoKey(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		words, calls := r.mends()
		require.Equal(t, []string{"0", "0", "0"}, words)
		require.Equal(t, 1, calls)
		require.Empty(t, r.dump())
	})
}

func TestAMendOfAWrongTypeIsAnErrorAndChangesNothing(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for i := range open(t).mendKeys() {
			r := open(t)
			r.fresh(2)
			r.strays(2)
			key := r.mendKeys()[i]
			r.do("DEL", key)
			r.do("SET", key, "a text")
			before := r.dump()
			c := &call{script: scriptMend, args: []any{"1"}, keys: r.mendKeys()}
			attempt(t.Context(), r.rdb, c)
			require.ErrorContains(t, c.err, "WRONGTYPE", key)
			require.Equal(t, before, r.dump(), key)
		}
	})
}

// A full Redis mends what takes room away.
func TestAFullRedisMends(t *testing.T) {
	t.Parallel()
	onServer(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		r.fresh(1)
		r.strays(3)
		require.NoError(t, r.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
		words, _ := r.mends()
		require.Equal(t, []string{"3", "0", "0"}, words)
		require.Zero(t, r.do("HLEN", r.k.runs))
	})
}
