package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// many is how many jobs the large queue has; PAWL_CLI_JOBS changes it.
func many(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("PAWL_CLI_JOBS"))
	if err != nil {
		return 10_000
	}
	require.Positive(t, n)
	return n
}

// A thousand queues, and a queue with very many jobs: every command answers, and of the
// commands that Redis has counted none reads all of something at once.
func TestManyQueuesAndManyJobs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const queues = 1000
	for i := range queues {
		r.enqueue(fmt.Sprintf("queue-%04d", i), "welcome", "{}")
	}
	n := many(t)
	items := make([]pawl.Item, 1000)
	for at := 0; at < n; at += len(items) {
		for i := range items {
			items[i] = pawl.Item{Args: charge{at + i}}
		}
		_, err := r.client.Queue("large").EnqueueMany(t.Context(), items)
		require.NoError(t, err)
	}
	dead := r.bury("buried", "charge", strings.Split(strings.Repeat("declined ", 300)+"declined", " ")...)

	got := r.pawl(words("stats --text"))
	require.Equal(t, queues+3, strings.Count(got.out, "\n"), "a header, and two more queues")
	got = r.pawl(words("queues"))
	require.Equal(t, queues+2, strings.Count(got.out, "\n"))
	got = r.pawl(words("jobs large --json"))
	require.Zero(t, got.code, got.err)
	require.Equal(t, n, strings.Count(got.out, "\n"))
	got = r.pawl(words("jobs large --text"))
	require.Equal(t, shownByDefault+1, strings.Count(got.out, "\n"))
	require.Contains(t, got.err, "there are more")
	got = r.pawl(words("jobs large --text --limit 0"))
	require.Equal(t, n+1, strings.Count(got.out, "\n"))
	got = r.pawl(words("dead list buried --json"))
	require.Equal(t, len(dead), strings.Count(got.out, "\n"))
	got = r.pawl(words("dead list buried --text"))
	require.Contains(t, got.err, "the oldest 100 dead jobs shown, there are more: --limit 0 shows all")
	for _, line := range everyCommand {
		for _, queue := range []string{"large", "buried"} {
			if queue == "buried" && !strings.Contains(line, "emails") {
				continue // it is of all queues
			}
			line := strings.ReplaceAll(strings.ReplaceAll(line, "emails", queue), someID, dead[7].String())
			if strings.HasPrefix(line, "destroy") {
				line = strings.ReplaceAll(line, queue, "queue-0007")
			}
			got := r.pawl(words(line))
			require.Contains(t, []int{exitOK, exitNotFound, exitRefused, exitFound}, got.code, "%s: %s", line, got.err)
		}
	}
	info, err := r.rdb.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	require.Contains(t, info, "cmdstat_scan:")
	for _, command := range []string{"keys", "hkeys", "hvals", "flushall", "flushdb", "sort", "lrange"} {
		require.NotContains(t, info, "cmdstat_"+command+":")
	}
}
