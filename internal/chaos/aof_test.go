package chaos

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

// Each remedy that docs/failure-modes.md names, and the runner's own.
func TestATornTransactionNeverComesBackInHalf(t *testing.T) {
	t.Parallel()
	nothing := func(*testing.T, *redistest.Server) {}
	for name, remedy := range map[string]struct {
		before, after func(t *testing.T, s *redistest.Server) // of the first start
	}{
		"the runner's cut":      {cutTorn, nothing},
		"redis-check-aof --fix": {checkAOF, nothing},
		"BGREWRITEAOF":          {nothing, rewriteAOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, write := torn(t)
			remedy.before(t, s)
			s.Restart()
			remedy.after(t, s)
			write("redis.call('SET', 'f', 1) redis.call('SET', 'g', 1)")
			s.Restart() // without a remedy, c comes back here
			require.ElementsMatch(t, []string{"a", "b", "f", "g"}, s.Client(t).Keys(t.Context(), "*").Val())
		})
	}
}

// torn is a server that was killed in the middle of writing a script's transaction,
// after a whole one.
func torn(t *testing.T) (s *redistest.Server, write func(body string)) {
	t.Helper()
	s = redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	c := s.Client(t)
	write = func(body string) { require.NoError(t, c.Eval(t.Context(), body+" return 1", nil).Err()) }
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
	return s, write
}

func cutTorn(t *testing.T, s *redistest.Server) {
	t.Helper()
	cut, err := cutOpenTransaction(s.Dir())
	require.NoError(t, err)
	require.True(t, cut)
}

// checkAOF runs redis-server by the name by which it is the tool.
func checkAOF(t *testing.T, s *redistest.Server) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), path)
	cmd.Args = []string{"redis-check-aof", "--fix", filepath.Join(s.Dir(), "appendonlydir", "appendonly.aof.manifest")}
	cmd.Stdin = strings.NewReader("y\n")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "Successfully truncated AOF")
}

// What docs/failure-modes.md warns of.
func TestTheToolComesTooLateOnceTheServerHasStarted(t *testing.T) {
	t.Parallel()
	s, write := torn(t)
	s.Restart()
	write("redis.call('SET', 'f', 1) redis.call('SET', 'g', 1)")
	s.Kill()
	checkAOF(t, s)
	s.Restart()
	require.ElementsMatch(t, []string{"a", "b"}, s.Client(t).Keys(t.Context(), "*").Val())
}

func rewriteAOF(t *testing.T, s *redistest.Server) {
	t.Helper()
	c := s.Client(t)
	require.NoError(t, c.BgRewriteAOF(t.Context()).Err())
	redistest.Eventually(t, "the file is written anew", func(ctx context.Context) bool {
		info := c.Info(ctx, "persistence").Val()
		return strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_rewrite_scheduled:0") &&
			!strings.Contains(info, "aof_last_rewrite_time_sec:-1")
	})
}
