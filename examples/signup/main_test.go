package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/exampleredis"
	"github.com/pawlq/pawl/internal/redistest"
)

// told is the story of 10,000 users, in order; other lines may stand between.
var told = []string{
	`^10000 users sign up over \d+ connections; \d+ mails at once take \d+ms each\.$`,
	`^ *\d+ ms  answered +\d+  waiting +\d+  sent +\d+$`,
	`^ *\d+ ms  answered +10100  waiting +0  sent +10000$`,
	`answered   10100 with 202 Accepted$`,
	`handler    p50 \d+\.\d ms, p99 \d+\.\d ms, longest \d+\.\d ms$`,
	`queue      [1-9]\d* mails waited at the top$`,
	`counted    enqueued 10000, duplicate 100, done 10000, failed 0$`,
	`mails      to 10000 users, given twice \d+$`,
	`check      0 violations$`,
	`^pawl signup: ok$`,
}

func TestABurstOfSignUpsIsAbsorbed(t *testing.T) {
	t.Parallel()
	binary := build(t)
	t.Run("10,000 on the Redis inside the example", func(t *testing.T) {
		t.Parallel()
		out, err := execute(t, binary, "")
		require.NoError(t, err, out)
		requireStory(t, out, told)
		require.True(t, strings.HasSuffix(out, "\npawl signup: ok\n"), "the last line of:\n%s", out)
	})
	t.Run("2,000 on the Redis of REDIS_URL, leaving nothing there", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		out, err := execute(t, binary, "redis://"+server.Addr(), "-users", "2000")
		require.NoError(t, err, out)
		smaller := strings.NewReplacer("10000", "2000", "10100", "2020", "duplicate 100", "duplicate 20")
		patterns := strings.Split(smaller.Replace(strings.Join(told, "\n")), "\n")
		requireStory(t, out, patterns)
		requireNoKeys(t, server)
	})
	t.Run("told to stop, it drains, says what is left and leaves nothing", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		out, err := terminate(t, "  answered ", binary, "redis://"+server.Addr(), "-users", "100000")
		require.Error(t, err, out)
		require.Regexp(t, `\nstopped: \d+ mails sent, 0 on their way, \d+ wait for the next worker\n`, out)
		require.NotContains(t, out, "pawl signup: ok")
		requireNoKeys(t, server)
	})
}

// requireStory fails unless each pattern matches a line, in their order.
func requireStory(t *testing.T, out string, patterns []string) {
	t.Helper()
	lines := strings.Split(out, "\n")
	for _, p := range patterns {
		re := regexp.MustCompile(p)
		for len(lines) > 0 && !re.MatchString(lines[0]) {
			lines = lines[1:]
		}
		require.NotEmpty(t, lines, "no line, after those before it, matches %s in:\n%s", p, out)
	}
}

func requireNoKeys(t *testing.T, server *redistest.Server) {
	t.Helper()
	keys, err := server.Client(t).Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Empty(t, keys)
}

func build(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "example")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	return binary
}

func command(t *testing.T, binary, url string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), exampleredis.Env+"="+url)
	return cmd
}

func execute(t *testing.T, binary, url string, args ...string) (out string, err error) {
	t.Helper()
	text, err := command(t, binary, url, args...).CombinedOutput()
	return string(text), err
}

// terminate sends SIGTERM once the program has printed a line with the text.
func terminate(t *testing.T, text, binary, url string, args ...string) (out string, err error) {
	t.Helper()
	cmd := command(t, binary, url, args...)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var printed strings.Builder
	lines := bufio.NewReader(io.TeeReader(stdout, &printed))
	for line := ""; !strings.Contains(line, text); {
		line, err = lines.ReadString('\n')
		require.NoError(t, err, printed.String())
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_, err = io.Copy(io.Discard, lines)
	require.NoError(t, err)
	return printed.String(), cmd.Wait()
}
