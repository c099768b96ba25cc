package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	info := "# CPU\r\nused_cpu_sys:1.5\r\nused_cpu_user:2.25\r\nused_cpu_sys_children:9\r\n# Stats\r\ntotal_commands_processed:70\r\n" +
		"total_writes_processed:20\r\n# Memory\r\nused_memory:5000\r\nused_memory_human:4.88K\r\nmem_clients_normal:1000\r\n"
	u, err := parseUsage(info)
	require.NoError(t, err)
	require.Equal(t, usage{CPU: 3750 * time.Millisecond, Commands: 70, Trips: 20, Memory: 4000}, u)
	require.Equal(t, usage{CPU: time.Second, Commands: 1, Trips: 2, Memory: 3},
		u.minus(usage{CPU: 2750 * time.Millisecond, Commands: 69, Trips: 18, Memory: 3997}))
	_, err = parseUsage("used_memory:1\r\n")
	require.EqualError(t, err, "INFO has no used_cpu_user")
}

func TestWhatIsKept(t *testing.T) {
	t.Parallel()
	needRedis(t)
	s, err := startRedis(t.Context())
	require.NoError(t, err)
	t.Cleanup(s.stop)
	keys, bytes, err := s.kept(t.Context())
	require.NoError(t, err)
	require.Zero(t, keys)
	require.Zero(t, bytes)
	require.NoError(t, s.rdb.Set(t.Context(), "a", padding, 0).Err())
	require.NoError(t, s.rdb.SAdd(t.Context(), "b", 1).Err())
	keys, bytes, err = s.kept(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, keys)
	require.Greater(t, bytes, len(padding))

	// "info" is counted in the next answer.
	before, err := s.usage(t.Context())
	require.NoError(t, err)
	for range 10 {
		require.NoError(t, s.rdb.Ping(t.Context()).Err())
	}
	after, err := s.usage(t.Context())
	require.NoError(t, err)
	require.Equal(t, 11, after.minus(before).Commands)
	require.Equal(t, 11, after.minus(before).Trips)

	_, err = startRedis(t.Context(), "--no-such-option", "1")
	require.ErrorContains(t, err, "ended at its start")
}
