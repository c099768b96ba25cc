package chaos

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

func TestATornTransactionNeverComesBackInHalf(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	c := s.Client(t)
	write := func(body string) { require.NoError(t, c.Eval(t.Context(), body+" return 1", nil).Err()) }
	write("redis.call('SET', 'a', 1) redis.call('SET', 'b', 1)")
	cut, err := cutOpenTransaction(s.Dir())
	require.NoError(t, err)
	require.False(t, cut, "it is whole")
	write("redis.call('SET', 'c', 1) redis.call('SET', 'd', 1) redis.call('SET', 'e', 1)")
	s.Kill()
	paths, err := filepath.Glob(filepath.Join(s.Dir(), "appendonlydir", "*.incr.aof"))
	require.NoError(t, err)
	require.Len(t, paths, 1)
	text, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	require.NoError(t, os.Truncate(paths[0], int64(bytes.LastIndex(text, []byte("$1\r\nd")))))
	cut, err = cutOpenTransaction(s.Dir())
	require.NoError(t, err)
	require.True(t, cut)
	s.Restart()
	write("redis.call('SET', 'f', 1) redis.call('SET', 'g', 1)")
	s.Restart() // without the cut, c comes back here
	keys, err := c.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a", "b", "f", "g"}, keys)
}
