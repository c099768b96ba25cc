package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/exampleredis"
	"github.com/pawlq/pawl/internal/redistest"
)

// told is what happens, in order; other lines may stand between.
var told = []string{
	`\d+ ms  parent    enqueues job [0-9a-f-]{36}$`,
	`\d+ ms  worker [ab]  starts the job: attempt 1, crashes 0$`,
	`\d+ ms  worker [ab]  step 2 of 4$`,
	`\d+ ms  parent    kills worker [ab] \(SIGKILL\) in the middle of the job$`,
	`\d+ ms  parent    sees the job as running: its lease has not run out$`,
	`\d+ ms  worker [ab]  starts the job: attempt 1, crashes 1$`,
	`\d+ ms  worker [ab]  step 4 of 4$`,
	`\d+ ms  worker [ab]  has done the job$`,
	`\d+ ms  worker [ab]  was told to stop, and has$`,
	`^run again \d\.\d\d s after the kill, with a visibility timeout of 2s$`,
	`^attempt 1 before the kill and attempt 1 after it: no attempt was spent; crashes 1$`,
	`^pawl crash: ok$`,
}

func TestAnotherWorkerFinishesTheJobOfAKilledOne(t *testing.T) {
	t.Parallel()
	binary := build(t)
	t.Run("on the Redis inside the example", func(t *testing.T) {
		t.Parallel()
		out, err := execute(t, binary, "")
		require.NoError(t, err, out)
		requireStory(t, out, told)
		require.True(t, strings.HasSuffix(out, "\npawl crash: ok\n"), "the last line of:\n%s", out)
	})
	t.Run("on the Redis of REDIS_URL, leaving nothing there", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		out, err := execute(t, binary, "redis://"+server.Addr())
		require.NoError(t, err, out)
		requireStory(t, out, told)
		keys, err := server.Client(t).Keys(t.Context(), "*").Result()
		require.NoError(t, err)
		require.Empty(t, keys)
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

func build(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "example")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	return binary
}

func execute(t *testing.T, binary, url string) (out string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary)
	cmd.Env = append(os.Environ(), exampleredis.Env+"="+url)
	text, err := cmd.CombinedOutput()
	return string(text), err
}
