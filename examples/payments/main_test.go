package main

import (
	"testing"

	"github.com/pawlq/pawl/internal/exampletest"
)

// told is what it prints, in order; other lines may stand between. What is left to
// chance is far from zero: a run that has none of it has not shown anything.
var told = []string{
	`^For 2s orders come in, .* 3 worker processes charge them; every$`,
	`^ *\d+ ms  orders +\d+  jobs done +\d+, left +0  workers killed +[1-9]\d*$`,
	`^The same without Unique, without Idempotency, without a key for the API, without an inbox:$`,
	`^ *\d+ ms  orders +\d+  jobs done +\d+, left +0  workers killed +[1-9]\d*$`,
	`^What happened +with guards +without$`,
	`^  orders +[1-9]\d+ +[1-9]\d+$`,
	`^  sent again at once +[1-9]\d* +[1-9]\d*$`,
	`^  sent again later than the 1s that Unique keeps a key +[1-9]\d* +[1-9]\d*$`,
	`^  worker processes killed +[1-9]\d* +[1-9]\d*$`,
	`^    their jobs between charge and ledger entry +\d+ +\d+$`,
	`^    their jobs between ledger entry and end of the job +\d+ +\d+$`,
	`^  API: 503, and nothing charged +[1-9]\d* +[1-9]\d*$`,
	`^  API: 500 or no answer, and it was charged +[1-9]\d* +[1-9]\d*$`,
	`^What each guard has stopped$`,
	`^  at the door, second jobs: Unique +[1-9]\d* +0$`,
	`^  in the worker, second jobs that came late: Idempotency +[1-9]\d* +0$`,
	`^  in the API, second charges: job.IdempotencyKey +[1-9]\d* +0$`,
	`^  in the ledger, second entries: pawlsql.Inbox +\d+ +0$`,
	`^What came of it$`,
	`^  charged once +[1-9]\d* +[1-9]\d*$`,
	`^  charged more than once +0 +[1-9]\d*$`,
	`^    though the shop had sent them once +0 +[1-9]\d*$`,
	`^  never charged +0 +0$`,
	`^  booked once +[1-9]\d* +[1-9]\d*$`,
	`^  booked more than once +0 +[1-9]\d*$`,
	`^    though the shop had sent them once +0 +\d+$`,
	`^  never booked +0 +0$`,
	`^  worth of the orders +\d+\.\d\d +\d+\.\d\d$`,
	`^  charged in excess +0\.00 +\d+\.\d\d$`,
	`^  balance in excess +0\.00 +\d+\.\d\d$`,
	`^pawl payments: ok$`,
}

func TestEachOrderIsChargedOnceWhileItsWorkersAreKilled(t *testing.T) {
	t.Parallel()
	binary := exampletest.Build(t)
	exampletest.OnBoth(t, binary, "payments", [][]string{told}, "-for", "2s")
	t.Run("told to stop, it says so and leaves nothing", func(t *testing.T) {
		t.Parallel()
		exampletest.Stopped(t, binary, "payments", "  jobs done ", "-for", "8s")
	})
}
