package main

import (
	"testing"

	"github.com/pawlq/pawl/internal/exampletest"
)

// told is the story, in order; other lines may stand between.
var told = []string{
	`^A job of 3\.2s, where a silent worker loses its jobs after 1s\.$`,
	`\d+ ms  enqueue   feature\.mov  64 parts of 50ms$`,
	`\d+ ms  start     feature\.mov  attempt 1 of 2$`,
	`\d+ ms  part      feature\.mov  16$`,
	`\d+ ms  part      feature\.mov  64$`,
	`\d+ ms  done      feature\.mov  attempt 1 of 2, after \d{4,} ms$`,
	`\d+ ms  lease     feature\.mov  was renewed \d+ times, and the job ran 1 time$`,
	`\d+ ms  start     broken\.mov   attempt 1 of 2$`,
	`\d+ ms  stopped   broken\.mov   the cause: pawl: timeout$`,
	`\d+ ms  failed    broken\.mov   attempt 1 of 2, again in \d+ ms: pawl: timeout after 400ms: part \d of 10: context deadline exceeded$`,
	`\d+ ms  start     broken\.mov   attempt 2 of 2$`,
	`\d+ ms  clear up  broken\.mov   \d parts removed$`,
	`\d+ ms  dead      broken\.mov   attempt 2 of 2, exhausted: pawl: timeout after 400ms: part \d of 10: context deadline exceeded$`,
	`\d+ ms  attempt   broken\.mov   1 took \d{3,} ms: pawl: timeout after 400ms`,
	`\d+ ms  attempt   broken\.mov   2 took \d{3,} ms: pawl: timeout after 400ms`,
	`\d+ ms  deleted   broken\.mov   from the dead, now that somebody has looked at it$`,
	`\d+ ms  start     holiday\.mov  attempt 1 of 2$`,
	`\d+ ms  cancel    holiday\.mov  is asked for$`,
	`\d+ ms  clear up  holiday\.mov  \d+ parts removed$`,
	`\d+ ms  stopped   holiday\.mov  the cause: pawl: cancelled$`,
	`\d+ ms  gone      holiday\.mov  its handler heard of it after \d+ ms; promised is 333$`,
	`\d+ ms  start     series\.mov   attempt 1 of 2$`,
	`\d+ ms  start     teaser\.mov   attempt 1 of 2$`,
	`\d+ ms  worker    media-1      is told to stop$`,
	`\d+ ms  done      teaser\.mov   attempt 1 of 2, after \d+ ms$`,
	`\d+ ms  stopped   series\.mov   the cause: pawl: shutting down$`,
	`\d+ ms  released  series\.mov   attempt 1 of 2, which is not spent$`,
	`\d+ ms  worker    media-1      has stopped: pawl: drain: released 1, stuck 0$`,
	`\d+ ms  worker    media-2      starts$`,
	`\d+ ms  start     series\.mov   attempt 1 of 2$`,
	`\d+ ms  resume    series\.mov   after part \d+, where the run before stopped$`,
	`\d+ ms  part      series\.mov   48$`,
	`\d+ ms  done      series\.mov   attempt 1 of 2, after \d+ ms$`,
	`enqueued 5, done 3, failed 2, retried 1, dead 1, cancelled 1, released \d+, crashed 0$`,
	`left: 0 waiting, 0 running, 0 dead, 0 scratch files$`,
	`check: 0 violations$`,
	`^pawl media: ok$`,
}

func TestLongJobsAreKeptBoundedCancelledAndHandedOn(t *testing.T) {
	t.Parallel()
	binary := exampletest.Build(t)
	exampletest.OnBoth(t, binary, "media", [][]string{told})
}
