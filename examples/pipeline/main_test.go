package main

import (
	"testing"

	"github.com/pawlq/pawl/internal/exampletest"
)

// told is the story, in order; other lines may stand between.
var told = []string{
	`^Two worker processes start\.$`,
	`\d+ ms  worker [12] +is ready$`,
	`\d+ ms  worker [12] +is ready$`,
	`^One photo: `,
	`\d+ ms  worker \d +fetch    begins$`,
	`\d+ ms  parent +kills worker \d \(SIGKILL\) within a step: fetch of photo 1$`,
	`\d+ ms  worker \d +fetch    begins$`,
	`\d+ ms  worker \d +fetch    effect$`,
	`\d+ ms  worker \d +resize   begins$`,
	`\d+ ms  worker \d +resize   effect$`,
	`\d+ ms  parent +kills worker \d \(SIGKILL\) after the effect of a step, before its end is stored: resize of photo 1$`,
	`\d+ ms  worker \d +resize   begins$`,
	`\d+ ms  worker \d +resize   effect, which is there already: nothing changes$`,
	`\d+ ms  worker \d +publish  effect$`,
	`\d+ ms  worker \d +publish  hands on$`,
	`\d+ ms  parent +kills worker \d \(SIGKILL\) after the mail was enqueued, before the end of the step is stored: publish of photo 1$`,
	`\d+ ms  worker \d +publish  begins$`,
	`\d+ ms  worker \d +publish  effect, which is there already: nothing changes$`,
	`\d+ ms  worker \d +publish  ended$`,
	`^Many chains at once, and 6 workers are killed under them, `,
	`\d+ ms  parent +kills worker \d+ \(SIGKILL\) between two steps: \w+ of (photo|night) \d+$`,
	`\d+ ms  parent +kills worker \d+ \(SIGKILL\) within a step: \w+ of (photo|night) \d+$`,
	`^All workers are killed\. `,
	`\d+ ms  parent +sees \d+ jobs, and no worker$`,
	`\d+ ms  worker \d+ +is ready$`,
	`\d+ ms  parent +sees no job any more, and tells the workers to stop$`,
	`^What became of it:$`,
	` chains    19 photos of 4 steps, 6 nights of 3$`,
	` workers   13 started, 11 killed$`,
	` runs      \d+ begun; [1-9]\d* effects came again under their key, and changed nothing$`,
	` steps     94 done by one job each, 0 missing, 0 doubled$`,
	` work      enqueued 75, duplicate 0, done 75, failed 0; left 0 waiting, 0 running, 0 dead; check: 0 violations$`,
	` mail      enqueued 19, duplicate [1-9]\d*, done 19, failed 0; left 0 waiting, 0 running, 0 dead; check: 0 violations$`,
	`^pawl pipeline: ok$`,
}

// mailed is told beside it: the mail does not wait for the end of what it follows.
var mailed = []string{
	`\d+ ms  worker \d +publish  effect$`,
	`\d+ ms  worker \d +mail     effect$`,
	`\d+ ms  worker \d +mail     ended$`,
	`^Many chains at once, `,
}

func TestEachStepOfEachChainIsDoneByOneJobWhateverIsKilled(t *testing.T) {
	t.Parallel()
	binary := exampletest.Build(t)
	exampletest.OnBoth(t, binary, "pipeline", [][]string{told, mailed})
	t.Run("told to stop, it says so and leaves nothing", func(t *testing.T) {
		t.Parallel()
		exampletest.Stopped(t, binary, "pipeline", "Many chains at once")
	})
}
