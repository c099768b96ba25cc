package main

import (
	"testing"

	"github.com/pawlq/pawl/internal/exampletest"
)

// told is the story, in order; other lines may stand between.
var told = []string{
	`^In asynq 285 tasks wait, 30 of which for their time and 5 for their next attempt\.$`,
	`^The forwarder has moved 35 and dies with others in both: pawl has 135\.$`,
	`^It is started again and moves 250; 100 of them were there already\. pawl has 285, 3\d of them for later\.$`,
	`^A worker of pawl has run 285 tasks, 0 of them twice\.$`,
	`^pawl fromasynq: ok$`,
}

func TestEachTaskOfAsynqIsRunOnceThoughTheForwarderDies(t *testing.T) {
	t.Parallel()
	exampletest.OnBoth(t, exampletest.Build(t), "fromasynq", [][]string{told})
}
