package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

// onBoth runs a test of Dump on miniredis and on a real server.
func onBoth(t *testing.T, f func(t *testing.T, rdb *redis.Client)) {
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		t.Cleanup(func() { _ = rdb.Close() })
		f(t, rdb)
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		f(t, redistest.Start(t).Client(t))
	})
}

func TestDumpIsCanonicalForEachType(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		for _, cmd := range [][]any{
			{"SET", "p:{q}[1]:s", "a\x00\xff\n"},
			{"SET", "p:{q}[1]:t", "v", "PX", 60_000},
			{"RPUSH", "p:{q}[1]:l", "b", "a", "b"},
			{"SADD", "p:{q}[1]:set", "b", "a"},
			{"HSET", "p:{q}[1]:h", "z", "1", "a", "2"},
			{"ZADD", "p:{q}[1]:z", "90000000000001", "b", "1.5", "a"},
			{"XADD", "p:{q}[1]:x", "5-18446744073709551615", "f", "2", "a", "1"},
			{"SET", "p:{q}1:other", "not under the prefix, [1] is no glob"},
		} {
			require.NoError(t, rdb.Do(ctx, cmd...).Err())
		}
		want := map[string]string{
			"p:{q}[1]:s":   "string\n" + `"a\x00\xff\n"`,
			"p:{q}[1]:t":   "string ttl\n" + `"v"`,
			"p:{q}[1]:l":   "list\n" + `"b"` + "\n" + `"a"` + "\n" + `"b"`,
			"p:{q}[1]:set": "set\n" + `"a"` + "\n" + `"b"`,
			"p:{q}[1]:h":   "hash\n" + `"a" = "2"` + "\n" + `"z" = "1"`,
			"p:{q}[1]:z":   "zset\n" + `1.5 "a"` + "\n" + `90000000000001 "b"`,
			"p:{q}[1]:x":   "stream\n" + `["5-18446744073709551615" ["f" "2" "a" "1"]]`,
		}
		require.Equal(t, want, redistest.Dump(ctx, rdb, "p:{q}[1]:"))
		require.Equal(t, want, redistest.Dump(ctx, rdb, "p:{q}[1]:"))
		require.NoError(t, rdb.PExpire(ctx, "p:{q}[1]:l", time.Hour).Err())
		require.NotEqual(t, want, redistest.Dump(ctx, rdb, "p:{q}[1]:"))
		require.Empty(t, redistest.Dump(ctx, rdb, "nothing"))
	})
}

func TestDumpPanicsRatherThanBePartial(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.Panics(t, func() { redistest.Dump(ctx, rdb, "") })
	})
}
