package main

import (
	"testing"

	"github.com/pawlq/pawl/internal/exampletest"
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
	binary := exampletest.Build(t)
	exampletest.OnBoth(t, binary, "crash", [][]string{told})
}
