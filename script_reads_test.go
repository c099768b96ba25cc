//go:build !race

package pawl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAReadOfAWrongTypeIsAnErrorAndChangesNothing(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		for name, c := range r.reads() {
			errs := 0
			for _, key := range c.keys {
				r.do("SADD", key, "no part of the layout is a set")
				before := r.whole()
				_, err := r.ask(c)
				if err != nil {
					require.ErrorContains(t, err, "WRONGTYPE", "%s at %s", name, key)
					require.Equal(t, classBroken, classify(err))
					errs++
				}
				require.Equal(t, before, r.whole(), "%s at %s", name, key)
				r.do("DEL", key)
			}
			require.NotZero(t, errs, "%s looks at a key", name)
		}
	})
}

func TestABeatOfAWrongTypeIsAnErrorAndChangesNothing(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		for _, key := range []string{r.k.workers, r.k.info} {
			r.do("SADD", key, "no part of the layout is a set")
			before := r.whole()
			for _, said := range []string{"{}", ""} {
				_, err := r.ask(r.beatCall("tag", said))
				require.ErrorContains(t, err, "WRONGTYPE", key)
			}
			require.Equal(t, before, r.whole())
			r.do("DEL", key)
		}
	})
}

func TestAFullRedisTakesBeats(t *testing.T) {
	t.Parallel()
	onFullServer(t, func(t *testing.T, r *rig) {
		_, err := r.ask(r.beatCall("known", "{}"))
		require.NoError(t, err)
		r.fill()
		for _, said := range []string{`{"running":1}`, ""} {
			_, err = r.ask(r.beatCall("known", said))
			require.NoError(t, err)
		}
		require.Empty(t, r.words(r.reads()["workers"]))
	})
}

// A beat forgets those that were silent for a minute, a hundred at a time, and
// what is left is gone when nobody beats any more.
func TestBeatsForgetTheDead(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		r := open(t)
		for i := range 150 {
			r.do("ZADD", r.k.workers, 1000+i, fmt.Sprint("dead", i))
			r.do("HSET", r.k.info, fmt.Sprint("dead", i), "{}")
		}
		require.Empty(t, r.words(r.reads()["workers"]), "they are not listed")
		for _, left := range []int{51, 1, 1} {
			_, err := r.ask(r.beatCall("tag", "{}"))
			require.NoError(t, err)
			require.EqualValues(t, left, r.do("ZCARD", r.k.workers))
			require.EqualValues(t, left, r.do("HLEN", r.k.info))
		}
		words := r.words(r.reads()["workers"])
		require.Len(t, words, 3)
		require.Equal(t, []string{"tag", "{}"}, []string{words[0], words[2]})
		for _, key := range []string{r.k.workers, r.k.info} {
			ttl := r.number("PTTL", key)
			require.True(t, ttl > 60_000 && ttl <= 120_000, "%s: %d", key, ttl)
		}
		r.check()
	})
}

// A page is about a megabyte, whatever comes after its first records.
func TestAPageOfAListIsBoundedByItsBytes(t *testing.T) {
	t.Parallel()
	large := newJob{rec() + strings.Repeat("x", 256<<10), ""}
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		for source, how := range map[string]string{"fresh": "", "prio": "d 0 5 0 d 0", "delayed": "d 60000 0 0 d 0", "lapsed": ""} {
			r := open(t)
			var ids []string
			for range 8 { // small ones, which promise a long page
				small, _ := r.enqueue(nil, newJob{rec(long), how})
				ids = append(ids, small...)
			}
			for range 24 {
				some, _ := r.enqueue(nil, newJob{large.record, how})
				ids = append(ids, some...)
			}
			if source == "lapsed" {
				for held := 0; held < len(ids); {
					got := r.lease(ask{n: 500}).ids()
					require.NotEmpty(t, got)
					held += len(got)
				}
				r.lapse(ids...)
			}
			listed := map[string]int{}
			for score, id := "", ""; ; {
				words := r.words(r.listCall(source, score, id))
				require.Less(t, len(strings.Join(words, "")), 1_300_000, source)
				for i := 3; i < len(words); i += 4 {
					listed[words[i]]++
				}
				if score, id = words[1], words[2]; id == "" {
					break
				}
			}
			require.Len(t, listed, len(ids), source)
			for id, n := range listed {
				require.Equal(t, 1, n, "%s %s", source, id)
			}
		}
	})
}
