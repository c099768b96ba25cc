package pawl

import (
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

// BenchmarkControl looks at, and then empties, a queue of 200,000 jobs: half of
// them ready, half delayed. No call may show up in the server's SLOWLOG from
// 5 ms; the longest one that did is reported.
func BenchmarkControl(b *testing.B) {
	if testing.Short() {
		b.Skip("it fills a queue of 200,000 jobs")
	}
	const n = 100_000
	rdb := redistest.Start(b, "--slowlog-log-slower-than", "5000", "--slowlog-max-len", "1000").Client(b)
	c, err := New(rdb, Config{})
	require.NoError(b, err)
	q := c.Queue("bench")
	fill := func(b *testing.B) {
		args := make([]parcel, maxCallItems)
		for i := range args {
			args[i] = hundredBytes
		}
		for _, opts := range [][]Option{nil, {Delay(maxWait)}} {
			for range n / maxCallItems {
				_, err := q.EnqueueMany(b.Context(), Items(args, opts...))
				require.NoError(b, err)
			}
		}
		require.NoError(b, rdb.SlowLogReset(b.Context()).Err())
		mean(b, rdb)
	}
	fill(b)

	b.Run("Stats", func(b *testing.B) {
		for b.Loop() {
			s, err := q.Stats(b.Context())
			require.NoError(b, err)
			require.EqualValues(b, 2*n, s.Depth())
		}
		report(b, rdb)
	})
	for _, state := range []State{StateReady, StateDelayed} {
		b.Run("List/"+string(state), func(b *testing.B) {
			count := 0
			for b.Loop() {
				for _, err := range q.List(b.Context(), state, Filter{}) {
					require.NoError(b, err)
					count++
				}
			}
			b.ReportMetric(float64(count)/b.Elapsed().Seconds(), "jobs/s")
			report(b, rdb)
		})
	}
	b.Run("Purge", func(b *testing.B) {
		count := int64(0)
		for b.Loop() {
			for _, state := range []State{StateReady, StateDelayed} {
				gone, err := q.Purge(b.Context(), state, Filter{})
				require.NoError(b, err)
				require.EqualValues(b, n, gone)
				count += gone
			}
			b.StopTimer()
			report(b, rdb)
			fill(b)
			b.StartTimer()
		}
		b.ReportMetric(float64(count)/b.Elapsed().Seconds(), "jobs/s")
	})
	b.Run("Destroy", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, q.Destroy(b.Context()))
			b.StopTimer()
			report(b, rdb)
			fill(b)
			b.StartTimer()
		}
	})
}

func report(b *testing.B, rdb *redis.Client) {
	b.Helper()
	b.ReportMetric(float64(slowest(b, rdb)), "slowest-us")
	b.ReportMetric(mean(b, rdb), "mean-us")
	require.NoError(b, rdb.SlowLogReset(b.Context()).Err())
}

// mean is how long a script took on average since the last time, in microseconds.
func mean(b *testing.B, rdb *redis.Client) float64 {
	b.Helper()
	info, err := rdb.Info(b.Context(), "commandstats").Result()
	require.NoError(b, err)
	require.NoError(b, rdb.ConfigResetStat(b.Context()).Err())
	_, rest, _ := strings.Cut(info, "cmdstat_evalsha:")
	_, rest, _ = strings.Cut(rest, "usec_per_call=")
	text, _, _ := strings.Cut(rest, ",")
	us, _ := strconv.ParseFloat(text, 64)
	return us
}

// slowest is how long the longest command took that the server wrote down, in
// microseconds; 0 if none took 5 ms.
func slowest(b *testing.B, rdb *redis.Client) (us int64) {
	b.Helper()
	log, err := rdb.SlowLogGet(b.Context(), -1).Result()
	require.NoError(b, err)
	for _, entry := range log {
		us = max(us, entry.Duration.Microseconds())
	}
	return us
}
