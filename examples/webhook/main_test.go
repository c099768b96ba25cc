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

// told is the story, in order; other lines may stand between.
var told = []string{
	`\d+ ms  enqueue   evt_1  well    job \w{12}$`,
	`\d+ ms  enqueue   evt_1  mute    job \w{12}$`,
	`\d+ ms  enqueue   evt_1  well    job \w{12} is there already: no second job$`,
	`\d+ ms  enqueue   evt_1  mute    job \w{12} is there already: no second job$`,
	`^A worker starts\.`,
	`\d+ ms  done      evt_1  well    attempt 1$`,
	`^The customer "well" goes down\.`,
	`\d+ ms  enqueue   evt_2  well    job \w{12}$`,
	`\d+ ms  enqueue   evt_6  well    job \w{12}$`,
	`\d+ ms  failed    evt_\d  well    attempt 2, again in \d+ ms: .*connection refused$`,
	`^Each has failed at least twice, and all 5 are there\. The customer comes back\.$`,
	`\d+ ms  done      evt_\d  well    attempt \d+$`,
	`^What became of it:$`,
	`customer  well    6 events had their effect, 0 came again$`,
	`customer  busy    1 events had their effect, 0 came again$`,
	`customer  gone    0 events had their effect, 0 came again$`,
	`customer  strict  0 events had their effect, 0 came again$`,
	`customer  shaky   1 events had their effect, 0 came again$`,
	`customer  mute    1 events had their effect, 1 came again$`,
	`dead      \w{12}, permanent after attempt 1: endpoint answered 4\d\d `,
	`dead      \w{12}, permanent after attempt 1: endpoint answered 4\d\d `,
	`counted   enqueued 11, duplicate 6, done 9, dead 2$`,
	`left      0 waiting, 0 running, 2 dead$`,
	`check     0 violations$`,
	`^pawl webhook: ok$`,
}

// answered is what goes on beside it, customer by customer.
var answered = map[string][]string{
	"busy": {
		`failed    evt_1  busy    attempt 1, again in 1000 ms: endpoint answered 429 Too Many Requests$`,
		`failed    evt_1  busy    attempt 2, again in \d+ ms: endpoint answered 503 Service Unavailable$`,
		`done      evt_1  busy    attempt 3$`,
	},
	"gone": {
		`dead      evt_1  gone    attempt 1, permanent: endpoint answered 410 Gone$`,
	},
	"strict": {
		`dead      evt_1  strict  attempt 1, permanent: endpoint answered 422 Unprocessable Entity$`,
	},
	"shaky": {
		`failed    evt_1  shaky   attempt 1, again in \d+ ms: endpoint answered 500 Internal Server Error$`,
		`failed    evt_1  shaky   attempt 2, again in \d+ ms: endpoint answered 502 Bad Gateway$`,
		`done      evt_1  shaky   attempt 3$`,
	},
	"mute": {
		`receive   evt_1  mute    has its effect, and the answer is lost$`,
		`receive   evt_1  mute    had this Idempotency-Key before: no second effect$`,
		`done      evt_1  mute    attempt 2$`,
	},
	"well, after the outage": {
		`^Each has failed`,
		`done      evt_\d  well `, `done      evt_\d  well `, `done      evt_\d  well `, `done      evt_\d  well `, `done      evt_\d  well `,
		`^What became of it:$`,
	},
}

func TestEachWebhookIsDeliveredOnceOrDeadWithItsReason(t *testing.T) {
	t.Parallel()
	binary := build(t)
	t.Run("on the Redis inside the example", func(t *testing.T) {
		t.Parallel()
		out, err := command(t, binary, "").CombinedOutput()
		require.NoError(t, err, string(out))
		requireStories(t, string(out))
		require.True(t, strings.HasSuffix(string(out), "\npawl webhook: ok\n"), "the last line of:\n%s", out)
	})
	t.Run("on the Redis of REDIS_URL, leaving nothing there", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		out, err := command(t, binary, "redis://"+server.Addr()).CombinedOutput()
		require.NoError(t, err, string(out))
		requireStories(t, string(out))
		requireNoKeys(t, server)
	})
	t.Run("told to stop, it drains and leaves nothing", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		out, err := terminate(t, "A worker starts", command(t, binary, "redis://"+server.Addr()))
		require.Error(t, err, out)
		require.NotContains(t, out, "pawl webhook: ok")
		requireNoKeys(t, server)
	})
}

func requireStories(t *testing.T, out string) {
	t.Helper()
	requireStory(t, out, told)
	for _, patterns := range answered {
		requireStory(t, out, patterns)
	}
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
		lines = lines[1:]
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

func command(t *testing.T, binary, url string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, binary)
	cmd.Env = append(os.Environ(), exampleredis.Env+"="+url)
	return cmd
}

// terminate sends SIGTERM once the program has printed a line with the text.
func terminate(t *testing.T, text string, cmd *exec.Cmd) (out string, err error) {
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
