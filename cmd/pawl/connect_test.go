package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

func TestASocket(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(shortDir(t), "s")
	redistest.Start(t, "--unixsocket", socket)
	for _, line := range []string{"enqueue emails --kind welcome --payload {}", "stats emails"} {
		got := call(t.Context(), append(words(line), "--redis", "unix://"+socket))
		require.Zero(t, got.code, got.err)
	}
	got := call(t.Context(), append(words("stats nobody"), "--redis", "unix://"+socket+"?db=3"))
	require.Equal(t, exitNotFound, got.code, got.err)
}

// shortDir is a folder whose name leaves room for that of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pawl")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestANamespaceIsAFlagOrAVariable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	put := words("enqueue emails --kind welcome --payload {}")
	require.Zero(t, r.pawl(append(put, "--namespace", "a")).code)
	require.Zero(t, r.pawl(put, env("PAWL_NAMESPACE", "b")).code)
	require.Zero(t, r.pawl(append(put, "--namespace", "a"), env("PAWL_NAMESPACE", "b")).code)
	for namespace, ready := range map[string]string{"a": `"ready":2`, "b": `"ready":1`} {
		require.Contains(t, r.pawl(words("stats emails --namespace "+namespace)).out, ready)
	}
	got := r.pawl(words("stats emails"))
	require.Equal(t, exitNotFound, got.code)
	got = r.pawl(words("stats --namespace {x}"))
	require.Equal(t, exitUsage, got.code, got.err)
}

// callAt runs a command against a cluster, by the first of its nodes that is not without.
func callAt(t *testing.T, c *redistest.Cluster, without *redistest.Server, args ...string) result {
	node := c.Nodes[0]
	if node == without {
		node = c.Nodes[1]
	}
	return call(t.Context(), append(args, "--cluster"), env("REDIS_URL", "redis://"+node.Addr()))
}

func TestACluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	first := func(args ...string) result { return callAt(t, c, nil, args...) }
	for _, queue := range words("a b c d e f") {
		got := first("enqueue", queue, "--kind", "welcome", "--payload", "{}")
		require.Zero(t, got.code, got.err)
	}
	got := first("stats", "--json")
	require.Zero(t, got.code, got.err)
	require.Equal(t, 6, strings.Count(got.out, `"ready":1`))
	for _, line := range []string{"jobs a", "check --all", "pause b", "purge c --state ready --yes", "destroy d --yes", "dead groups e", "workers --text"} {
		got := first(words(line)...)
		require.Contains(t, []int{exitOK, exitNotFound}, got.code, got.err)
	}
	got = first("doctor", "--json")
	require.Contains(t, got.out, "cluster_state is ok")
	got = call(t.Context(), []string{"stats", "--cluster"}, env("REDIS_URL", "redis://"+c.Nodes[0].Addr()+"/2"))
	require.Equal(t, exitUsage, got.code)
	got = call(t.Context(), words("stats --cluster --timeout 1s"), env("REDIS_URL", "redis://127.0.0.1:1"))
	require.Equal(t, exitAway, got.code, got.err)
}

// A master is away, and no replica takes over: what is asked of its queues ends in time, and
// those of the others are shown.
func TestAClusterWithoutOneMaster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 0)
	for _, node := range c.Nodes {
		require.NoError(t, node.Client(t).ConfigSet(t.Context(), "cluster-require-full-coverage", "no").Err())
	}
	key := c.KeyElsewhere("pawl:{a%d}:meta", "pawl:queues")
	a := strings.TrimSuffix(strings.TrimPrefix(key, "pawl:{"), "}:meta")
	for _, queue := range []string{a, "b", "c", "d", "e", "f"} {
		got := callAt(t, c, nil, words("enqueue "+queue+" --kind welcome --payload {}")...)
		require.Zero(t, got.code, got.err)
	}
	lost := c.MasterOf(key)
	lost.Kill()
	for _, line := range []string{"stats", "jobs", "pause", "check", "destroy --yes", "dead groups", "purge --state ready --yes", "enqueue --kind x --payload 1"} {
		got := callAt(t, c, lost, append(words(line), a, "--timeout", "500ms")...)
		require.Contains(t, []int{exitAway, exitUnconfirmed}, got.code, "%s: %s", line, got.err)
		require.Equal(t, 1, strings.Count(got.err, "\n"), got.err)
	}
	got := callAt(t, c, lost, words("stats --json --timeout 1s")...)
	require.Equal(t, exitAway, got.code, got.err)
	require.NotContains(t, got.out, `"queue":"`+a+`"`)
	require.Contains(t, got.out, `"ready":`, "the queues of the others: %s", got.err)
	require.Equal(t, 1, strings.Count(got.err, "\n"), got.err)
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	sentinels := redistest.StartSentinels(t, master)
	url := "redis://" + sentinels.Addrs()[0] + "/0?master_name=" + redistest.MasterName
	put := words("enqueue emails --kind welcome --payload {} --sentinel")
	got := call(t.Context(), append(put, "--redis", url))
	require.Zero(t, got.code, got.err)
	c, err := pawl.New(master.Client(t), pawl.Config{})
	require.NoError(t, err)
	st, err := c.Queue("emails").Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(1), st.Ready)
	got = call(t.Context(), append(put, "--redis", "redis://"+sentinels.Addrs()[0]))
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "master_name")
}

// The user of docs/security.md may run every command, and is refused nothing.
func TestTheUserOfTheDocsMayRunEveryCommand(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/security.md")
	require.NoError(t, err)
	rules := strings.Fields(regexp.MustCompile(`(?m)^ACL SETUSER pawl (.*)$`).FindStringSubmatch(string(page))[1])
	s := redistest.Start(t)
	s.SetUser(t, "pawl", rules...)
	r := rigAt(t, s.Addr())
	live(newGolden(r, "look"))
	for _, line := range everyCommand {
		got := call(t.Context(), words(line), env("REDIS_URL", "redis://pawl@"+s.Addr(), "PAWL_REDIS_PASSWORD", "change-me"))
		require.Contains(t, []int{exitOK, exitNotFound, exitRefused, exitFound}, got.code, "%s: %s", line, got.err)
	}
	entries, err := r.rdb.ACLLog(t.Context(), 1000).Result()
	require.NoError(t, err)
	for _, entry := range entries {
		require.Contains(t, []string{"info", "config|get", "config"}, entry.Object, "which only the doctor sends: %v", entry)
	}
}

// A user that lacks a right is told which.
func TestAMissingRightIsNamed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.SetUser(t, "reader", "on", ">x", "~pawl:*", "+time", "+smembers")
	got := call(t.Context(), words("pause emails"), env("REDIS_URL", "redis://reader@"+s.Addr(), "PAWL_REDIS_PASSWORD", "x"))
	require.Equal(t, exitFailed, got.code, got.err)
	require.Contains(t, got.err, "NOPERM")
}
