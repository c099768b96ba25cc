package main

import (
	"testing"

	"github.com/pawlq/pawl/internal/exampletest"
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
	exampletest.OnBoth(t, binary, "schedule", [][]string{told})
}
