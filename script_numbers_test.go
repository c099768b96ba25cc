//go:build !race

package pawl

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

func num[T int | int64](n T) string { return strconv.FormatInt(int64(n), 10) }

// A number that goes through a script keeps all its digits.
func TestNumbersAreExact(t *testing.T) {
	t.Parallel()
	const top = 9007199254740000 // below 2^53, in the year 2255
	onServers(t, func(t *testing.T, open func(*testing.T) *rig) {
		t.Run("microseconds near 2^53", func(t *testing.T) {
			t.Parallel()
			r := open(t)
			r.do("HSET", r.k.meta, "last", top-7, "fence", top-100)
			ids := r.fresh(7)
			for i, id := range ids {
				require.True(t, strings.HasPrefix(id, num(top-6+i)+"-"), id)
			}
			require.Equal(t, num(top), r.do("HGET", r.k.meta, "last"))
			got := r.lease(ask{n: 7})
			require.Equal(t, ids, got.ids())
			require.Equal(t, num(top-99)+"-nonce", got.token)
			require.Equal(t, num(top-99), r.do("HGET", r.k.meta, "fence"))
			r.check()

			before := r.whole()
			_, err := r.send(newLane(&r.k), 1, r.enqueueShot(nil, newJob{rec(), ""}))
			require.ErrorContains(t, err, "2255", "refused, not wrapped")
			require.Equal(t, classBroken, classify(err))
			require.Equal(t, before, r.whole())
		})
		t.Run("low halves of 19 and of 20 digits", func(t *testing.T) {
			t.Parallel()
			r := open(t)
			var ids []string
			for _, low := range []uint64{1 << 63, 1<<63 + 1, 9999999999999999999, 10000000000000000000, 3<<62 - 1} {
				s := r.enqueueShot(nil, newJob{rec(), ""})
				s.args[1] = strconv.FormatUint(low, 10)
				us, _, _ := strings.Cut(r.fire(s), " ")
				id := fmt.Sprintf("%s-%d", us, low)
				require.Equal(t, "jobs", r.places(id))
				_, ok := jobid.FromText(id)
				require.True(t, ok)
				ids = append(ids, id)
			}
			got := r.lease(ask{n: 9})
			require.Equal(t, ids, got.ids())
			for i, verb := range []string{"settle", "retry", "bury", "release", "extend"} {
				r.must("k", holderVerbs[verb](r, hold{ids[i], got.token}))
			}
			require.Empty(t, r.places(ids[0]))
			require.Equal(t, "held due", r.places(ids[1]))
			require.Equal(t, "index dead", r.places(ids[2]))
			r.must("ok", r.redriveShot("", "", rec(long), ids[2]))
			require.Equal(t, "held due", r.places(ids[2]))
			r.must("gone", r.cancelShot("", ids[3]))
			require.Equal(t, "jobs leases runs", r.places(ids[4]))
			r.check()
		})
		t.Run("times from the first year to 9999", func(t *testing.T) {
			t.Parallel()
			r := open(t)
			for _, ms := range []int64{0, 1, 999, 253402300799999, 1<<48 - 1} {
				ids, _ := r.enqueue(nil, newJob{rec(long), "a " + num(ms) + " 0 0 d 0"})
				if ms < 1e6 {
					require.Equal(t, "jobs", r.places(ids[0]), "it is past, and so at once")
					continue
				}
				require.Equal(t, ms, r.number("ZSCORE", r.k.due, ids[0]))
				body, err := record.Decode([]byte(fmt.Sprint(r.do("HGET", r.k.held, ids[0]))))
				require.NoError(t, err)
				require.Equal(t, ms, body.Due)
			}
			r.check()
		})
		t.Run("a delay of a hundred years, and of a millisecond", func(t *testing.T) {
			t.Parallel()
			r := open(t)
			for _, d := range []int64{1, maxWait.Milliseconds()} {
				from := r.lease(ask{n: 1, noExpired: true}).now
				ids, _ := r.enqueue(nil, newJob{rec(long), "d " + num(d) + " 0 0 d 0"})
				at := r.number("ZSCORE", r.k.due, ids[0])
				require.GreaterOrEqual(t, at, from+d, "never early")
				require.LessOrEqual(t, at, r.lease(ask{n: 1, noExpired: true}).now+1+d)
			}
		})
		t.Run("a priority's rank", func(t *testing.T) {
			t.Parallel()
			r := open(t)
			ids, _ := r.enqueue(nil, newJob{rec(priority(1)), "d 60000 1 0 d 0"}, newJob{rec(priority(9)), "d 60000 9 0 d 0"})
			r.do("ZADD", r.k.due, "XX", 1234567890123, ids[0], 1234567890124, ids[1])
			r.lease(ask{n: 1})
			require.EqualValues(t, 81234567890123, r.number("ZSCORE", r.k.prio, ids[0]))
		})
		t.Run("a window until the year 9999", func(t *testing.T) {
			t.Parallel()
			r := open(t)
			before := time.Now().UnixMilli()
			ids, _ := r.enqueue([]string{"a"}, newJob{rec(), "d 0 0 1 d 200000000000000"})
			till, err := strconv.ParseInt(strings.TrimPrefix(fmt.Sprint(r.do("GET", r.k.unique("a"))), ids[0]+" d "), 10, 64)
			require.NoError(t, err)
			require.InDelta(t, before+200000000000000, till, 60_000)
		})
		t.Run("counters", func(t *testing.T) {
			t.Parallel()
			r := open(t)
			r.do("HSET", r.k.meta, "n:enqueued", int64(math.MaxInt64-2))
			r.fresh(2)
			stats, err := r.q.Stats(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, math.MaxInt64, stats.Total.Enqueued)
		})
	})
}

// T2. The server's clock goes back: a failover to another machine, a step of NTP.
func TestTheServersClockGoesBack(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	r := openRig(t, rdb, m)
	now := time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)
	m.SetTime(now)
	var ids, tokens []string
	for _, step := range []time.Duration{0, -time.Hour, -time.Microsecond, 24 * time.Hour, -48 * time.Hour} {
		now = now.Add(step)
		m.SetTime(now)
		added := r.fresh(2)
		got := r.lease(ask{n: 2, nonce: "x", noExpired: true})
		require.Equal(t, added, got.ids())
		ids, tokens = append(ids, added...), append(tokens, got.token)
		r.must("k", r.buryShot("", hold{added[0], got.token}))
	}
	require.IsIncreasing(t, ids)
	require.IsIncreasing(t, tokens)
	require.EqualValues(t, 5, r.number("XLEN", r.k.dead))
	r.check()

	// Forward: a lease runs out early, and its holder is fenced.
	h := hold{ids[len(ids)-1], tokens[len(tokens)-1]}
	m.SetTime(now.Add(1000 * time.Hour))
	got := r.lease(ask{n: 10, nonce: "y"})
	require.Contains(t, got.ids(), h.id)
	m.SetTime(now)
	r.must("l", r.settleShot("done", "", h))
	r.must("k", r.settleShot("done", "", hold{h.id, got.token}))
	r.check()
}
