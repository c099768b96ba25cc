package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/exampletest"
	"github.com/pawlq/pawl/internal/redistest"
)

// told is what happens, in order; other lines may stand between.
var told = []string{
	`^ *\d+ ms  parent    has nightly  cron 30 2 \* \* \* in Europe/Berlin, next at \d{4}-\d\d-\d\d 0[01]:[03]0:00 UTC$`,
	`^ *\d+ ms  parent    has often    every 1s, next at `,
	`^ *\d+ ms  worker c  starts$`,
	`^ *\d+ ms  worker [abc]  runs the job of \d\d:\d\d:\d\d\.\d{3}$`,
	`^ *\d+ ms  parent    kills worker [abc] \(SIGKILL\)$`,
	`^ *\d+ ms  worker [abc]  runs the job of \d\d:\d\d:\d\d\.\d{3}$`,
	`^ *\d+ ms  worker [abc]  runs the nightly job, triggered by hand$`,
	`^12 times, each one job; the canary came through less than [123]s ago$`,
	`^pawl schedule: ok$`,
}

func TestThreeProcessesFireEachTimeOnce(t *testing.T) {
	t.Parallel()
	binary := exampletest.Build(t)
	t.Run("on the Redis inside the example", func(t *testing.T) {
		t.Parallel()
		out, err := exampletest.Execute(t, binary, "")
		require.NoError(t, err, out)
		exampletest.RequireStory(t, out, told)
		require.True(t, strings.HasSuffix(out, "\npawl schedule: ok\n"), "the last line of:\n%s", out)
	})
	t.Run("on the Redis of REDIS_URL, leaving nothing there", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		out, err := exampletest.Execute(t, binary, "redis://"+server.Addr())
		require.NoError(t, err, out)
		exampletest.RequireStory(t, out, told)
		exampletest.RequireNoKeys(t, server)
	})
}
