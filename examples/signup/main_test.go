package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/exampletest"
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
	binary := exampletest.Build(t)
	t.Run("10,000 on the Redis inside the example", func(t *testing.T) {
		t.Parallel()
		out, err := exampletest.Execute(t, binary, "")
		require.NoError(t, err, out)
		exampletest.RequireStory(t, out, told)
		require.True(t, strings.HasSuffix(out, "\npawl signup: ok\n"), "the last line of:\n%s", out)
	})
	t.Run("2,000 on the Redis of REDIS_URL, leaving nothing there", func(t *testing.T) {
		t.Parallel()
		server := redistest.Start(t)
		out, err := exampletest.Execute(t, binary, "redis://"+server.Addr(), "-users", "2000")
		require.NoError(t, err, out)
		smaller := strings.NewReplacer("10000", "2000", "10100", "2020", "duplicate 100", "duplicate 20")
		patterns := strings.Split(smaller.Replace(strings.Join(told, "\n")), "\n")
		exampletest.RequireStory(t, out, patterns)
		exampletest.RequireNoKeys(t, server)
	})
	t.Run("told to stop, it drains, says what is left and leaves nothing", func(t *testing.T) {
		t.Parallel()
		out := exampletest.Stopped(t, binary, "signup", "  answered ", "-users", "100000")
		require.Regexp(t, `\nstopped: \d+ mails sent, 0 on their way, \d+ wait for the next worker\n`, out)
	})
}
