package main

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

// TestMain has this binary be a worker process where a test asks for one.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childWord {
		if err := child(context.Background(), os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// needRedis skips a test where there is no redis-server, or fails it where one
// must be.
func needRedis(t *testing.T) {
	t.Helper()
	if redistest.Available() {
		return
	}
	require.Empty(t, os.Getenv(redistest.RequireEnv), "no redis-server on PATH")
	t.Skip("SKIPPED: no redis-server on PATH")
}

func TestFlags(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-short", "-only", "^drain-10$", "-systems", "raw,pawl"}, os.Stderr)
	require.NoError(t, err)
	require.Equal(t, 1, o.rounds, "a short run has one round")
	h, err := o.harness(os.Stderr)
	require.NoError(t, err)
	require.Len(t, h.workloads, 1)
	require.Equal(t, []string{"pawl", "raw"}, names(h.systems), "in the order of the table")

	o, err = parse([]string{"-short"}, os.Stderr)
	require.NoError(t, err)
	h, err = o.harness(os.Stderr)
	require.NoError(t, err)
	require.Equal(t, []string{"pawl", "raw", "asynq-4"}, names(h.systems), "nothing has to be installed")

	o, err = parse(nil, os.Stderr)
	require.NoError(t, err)
	h, err = o.harness(os.Stderr)
	require.NoError(t, err)
	require.Equal(t, []string{"pawl", "raw", "asynq", "asynq-4", "river", "bullmq"}, names(h.systems))

	for _, wrong := range [][]string{{"-only", "nothing"}, {"-only", "("}, {"-systems", "pawl,sidekiq"}, {"-rounds", "0"}, {"-resume"}, {"drain"}} {
		o, err := parse(wrong, os.Stderr)
		if err == nil {
			_, err = o.harness(os.Stderr)
		}
		require.Error(t, err, "%q", wrong)
	}
}

func names(all []*system) []string {
	var names []string
	for _, s := range all {
		names = append(names, s.name)
	}
	return names
}

func TestWorkloadsAreToldApart(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, w := range workloads() {
		require.False(t, seen[w.name], w.name)
		seen[w.name] = true
		require.Positive(t, w.short, w.name)
		require.GreaterOrEqual(t, w.n, w.short, w.name)
		rows := map[metric]bool{}
		for _, m := range w.metrics {
			require.False(t, rows[m], "%s: %s", w.name, m.name)
			rows[m] = true
		}
	}
	for _, c := range charted {
		require.True(t, seen[c[0]], "the chart shows %s", c[0])
	}
}
