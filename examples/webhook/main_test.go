package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/pawlq/pawl/internal/exampletest"
)

// told is the story, in order; other lines may stand between.
var told = []string{
	`\d+ ms  enqueue   evt_1  well    job \w{12}$`,
	`\d+ ms  enqueue   evt_1  mute    job \w{12}$`,
	`\d+ ms  enqueue   evt_1  well    job \w{12} is there already: no second job$`,
	`\d+ ms  enqueue   evt_1  mute    job \w{12} is there already: no second job$`,
	`^A worker starts\.`,
	`\d+ ms  done      evt_1  well    attempt 1$`,
	`^The customer "well" goes down\.`,
	`\d+ ms  enqueue   evt_2  well    job \w{12}$`,
	`\d+ ms  enqueue   evt_6  well    job \w{12}$`,
	`\d+ ms  failed    evt_\d  well    attempt 2, again in \d+ ms: .*connection refused$`,
	`^Each has failed at least twice, and all 5 are there\. The customer comes back\.$`,
	`\d+ ms  done      evt_\d  well    attempt \d+$`,
	`^What became of it:$`,
	`customer  well    6 events had their effect, 0 came again$`,
	`customer  busy    1 events had their effect, 0 came again$`,
	`customer  gone    0 events had their effect, 0 came again$`,
	`customer  strict  0 events had their effect, 0 came again$`,
	`customer  shaky   1 events had their effect, 0 came again$`,
	`customer  mute    1 events had their effect, 1 came again$`,
	`dead      \w{12}, permanent after attempt 1: endpoint answered 4\d\d `,
	`dead      \w{12}, permanent after attempt 1: endpoint answered 4\d\d `,
	`counted   enqueued 11, duplicate 6, done 9, dead 2$`,
	`left      0 waiting, 0 running, 2 dead$`,
	`check     0 violations$`,
	`^pawl webhook: ok$`,
}

// answered is what goes on beside it, customer by customer.
var answered = map[string][]string{
	"busy": {
		`failed    evt_1  busy    attempt 1, again in 1000 ms: endpoint answered 429 Too Many Requests$`,
		`failed    evt_1  busy    attempt 2, again in \d+ ms: endpoint answered 503 Service Unavailable$`,
		`done      evt_1  busy    attempt 3$`,
	},
	"gone": {
		`dead      evt_1  gone    attempt 1, permanent: endpoint answered 410 Gone$`,
	},
	"strict": {
		`dead      evt_1  strict  attempt 1, permanent: endpoint answered 422 Unprocessable Entity$`,
	},
	"shaky": {
		`failed    evt_1  shaky   attempt 1, again in \d+ ms: endpoint answered 500 Internal Server Error$`,
		`failed    evt_1  shaky   attempt 2, again in \d+ ms: endpoint answered 502 Bad Gateway$`,
		`done      evt_1  shaky   attempt 3$`,
	},
	"mute": {
		`receive   evt_1  mute    has its effect, and the answer is lost$`,
		`receive   evt_1  mute    had this Idempotency-Key before: no second effect$`,
		`done      evt_1  mute    attempt 2$`,
	},
	"well, after the outage": {
		`^Each has failed`,
		`done      evt_\d  well `, `done      evt_\d  well `, `done      evt_\d  well `, `done      evt_\d  well `, `done      evt_\d  well `,
		`^What became of it:$`,
	},
}

func TestEachWebhookIsDeliveredOnceOrDeadWithItsReason(t *testing.T) {
	t.Parallel()
	binary := exampletest.Build(t)
	exampletest.OnBoth(t, binary, "webhook", append(slices.Collect(maps.Values(answered)), told))
	t.Run("told to stop, it drains and leaves nothing", func(t *testing.T) {
		t.Parallel()
		exampletest.Stopped(t, binary, "webhook", "A worker starts")
	})
}
