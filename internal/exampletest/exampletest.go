// Package exampletest runs the programs of examples/ as a reader would, and holds
// what they print against their stories.
package exampletest

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

// patience is how long a program may run: many times as long as it does.
const patience = 90 * time.Second

// Build builds the program of the package under test.
func Build(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "example")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	return binary
}

// Command is a run of the program on the Redis at url, or on the one inside it if
// url is empty.
func Command(t *testing.T, binary, url string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), exampleredis.Env+"="+url)
	return cmd
}

// Execute runs the program to its end, and returns all that it prints.
func Execute(t *testing.T, binary, url string, args ...string) (out string, err error) {
	t.Helper()
	text, err := Command(t, binary, url, args...).CombinedOutput()
	return string(text), err
}

// Terminate sends SIGTERM once the program has printed a line with the text, and
// returns its standard output.
func Terminate(t *testing.T, text string, cmd *exec.Cmd) (out string, err error) {
	t.Helper()
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

// OnBoth runs the program on the Redis inside it and on one of REDIS_URL, where it has
// to leave nothing. Each time it is to tell the stories, and to end with "pawl NAME: ok".
func OnBoth(t *testing.T, binary, name string, stories [][]string, args ...string) {
	t.Helper()
	run := func(t *testing.T, url string) {
		t.Helper()
		out, err := Execute(t, binary, url, args...)
		require.NoError(t, err, out)
		for _, story := range stories {
			RequireStory(t, out, story)
		}
		require.True(t, strings.HasSuffix(out, "\npawl "+name+": ok\n"), "the last line of:\n%s", out)
	}
	t.Run("on the Redis inside the example", func(t *testing.T) {
		t.Parallel()
		run(t, "")
	})
	t.Run("on the Redis of REDIS_URL, leaving nothing there", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		run(t, "redis://"+server.Addr()+"/1")
		RequireNoKeys(t, server)
	})
}

// Stopped tells the program to stop once it has printed a line with the text: it is to
// fail, and to leave nothing. out is its standard output.
func Stopped(t *testing.T, binary, name, text string, args ...string) (out string) {
	t.Helper()
	server := redistest.Start(t)
	out, err := Terminate(t, text, Command(t, binary, "redis://"+server.Addr(), args...))
	require.Error(t, err, out)
	require.NotContains(t, out, "pawl "+name+": ok")
	RequireNoKeys(t, server)
	return out
}

// RequireStory fails unless each pattern matches a line of its own, in their
// order; other lines may stand between.
func RequireStory(t *testing.T, out string, patterns []string) {
	t.Helper()
	lines := strings.Split(out, "\n")
	for _, p := range patterns {
		re := regexp.MustCompile(p)
		for len(lines) > 0 && !re.MatchString(lines[0]) {
			lines = lines[1:]
		}
		require.NotEmpty(t, lines, "no line, after those before it, matches %s in:\n%s", p, out)
		lines = lines[1:]
	}
}

// RequireNoKeys fails if the program has left something on the server.
func RequireNoKeys(t *testing.T, server *redistest.Server) {
	t.Helper()
	space, err := server.Client(t).Info(t.Context(), "keyspace").Result() // of all databases
	require.NoError(t, err)
	require.NotContains(t, space, "keys=")
}
