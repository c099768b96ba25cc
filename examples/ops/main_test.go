package main

import (
	"bufio"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/exampletest"
	"github.com/pawlq/pawl/internal/redistest"
)

// answer is what a URL answers.
func answer(t *testing.T, url string) (status int, body string) {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// enqueued is how many jobs ever were, or 0 if Redis does not say.
func enqueued(t *testing.T, base string) (n int) {
	t.Helper()
	_, metrics := answer(t, base+"/metrics")
	if found := regexp.MustCompile(`pawl_queue_events_total\{event="enqueued",queue="emails"\} (\d+)`).FindStringSubmatch(metrics); found != nil {
		n, _ = strconv.Atoi(found[1])
	}
	return n
}

func TestItIsSeenFromOutsideAndEndsWhenItIsTold(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	cmd := exampletest.Command(t, exampletest.Build(t), "redis://"+server.Addr())
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var printed strings.Builder
	lines := bufio.NewReader(io.TeeReader(stdout, &printed))
	var base string
	for where := regexp.MustCompile(`http://[0-9.:]+`); base == ""; {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, printed.String())
		base = where.FindString(line)
	}
	status, _ := answer(t, base+"/healthz")
	require.Equal(t, http.StatusOK, status)
	require.Eventually(t, func() bool {
		status, _ := answer(t, base+"/readyz")
		return status == http.StatusOK
	}, time.Minute, 10*time.Millisecond, "it reaches Redis")
	for _, want := range []string{"pawl_redis_up 1", `pawl_queue_jobs{queue="emails",state="dead"} [1-9]`,
		`pawl_job_runs_total{kind="mail",outcome="done",queue="emails"} [1-9]`, `pawl_queue_workers{queue="emails"} 1`,
		`pawl_queue_canary_period_seconds{queue="emails"} 60`} {
		re := regexp.MustCompile("(?m)^" + want)
		require.Eventually(t, func() bool {
			_, metrics := answer(t, base+"/metrics")
			return re.MatchString(metrics)
		}, time.Minute, 50*time.Millisecond, want)
	}
	before := enqueued(t, base)
	require.Positive(t, before)
	server.Pause()
	require.Eventually(t, func() bool {
		status, why := answer(t, base+"/readyz")
		return status == http.StatusServiceUnavailable && why != ""
	}, time.Minute, 10*time.Millisecond, "and says that it does not")
	status, _ = answer(t, base+"/healthz")
	require.Equal(t, http.StatusOK, status)
	status, metrics := answer(t, base+"/metrics")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, metrics, "\npawl_redis_up 0\n")
	server.Resume()
	require.Eventually(t, func() bool {
		status, _ := answer(t, base+"/readyz")
		return status == http.StatusOK
	}, time.Minute, 10*time.Millisecond, "it comes back by itself")
	require.Eventually(t, func() bool { return enqueued(t, base) > before+100 }, time.Minute, 50*time.Millisecond, "and so do the producers")

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_, err = io.Copy(io.Discard, lines)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), printed.String())
	require.True(t, strings.HasSuffix(printed.String(), "\npawl ops: ok\n"), printed.String())
	exampletest.RequireNoKeys(t, server)
}

func TestItRunsWithoutARedis(t *testing.T) {
	t.Parallel()
	out, err := exampletest.Execute(t, exampletest.Build(t), "", "-for", "1s")
	require.NoError(t, err, out)
	require.True(t, strings.HasSuffix(out, "\npawl ops: ok\n"), out)
}
