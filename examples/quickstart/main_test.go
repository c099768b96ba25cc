package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/exampletest"
)

// told is the story, in order; other lines may stand between.
var told = []string{
	`\d+ ms  enqueue   mail\.receipt    job \w{12}$`,
	`\d+ ms  enqueue   payment\.charge  job \w{12}$`,
	`\d+ ms  enqueue   payment\.charge  job \w{12} is there already: no second job$`,
	`\d+ ms  enqueue   invoice\.render  job \w{12}$`,
	`\d+ ms  worker    shop-v1 starts$`,
	`\d+ ms  failed    invoice\.render  attempt 1 of 2, again in \d+ ms: panic: runtime error`,
	`\d+ ms  dead      invoice\.render  attempt 2 of 2, exhausted: panic: runtime error`,
	`\d+ ms  worker    shop-v1 has stopped$`,
	`job       invoice\.render [0-9a-f-]{36}$`,
	`payload   \{"order":1002\}$`,
	`reason    exhausted$`,
	`error     panic: runtime error: invalid memory address or nil pointer dereference$`,
	`attempt   1 failed \d+ ms after the enqueue$`,
	`attempt   2 failed \d+ ms after the enqueue$`,
	`stack     main\.renderInvoice1 at jobs\.go:\d+$`,
	`worker    shop-v1$`,
	`build     \S+`,
	`\d+ ms  worker    shop-v2 starts$`,
	`\d+ ms  redrive   invoice\.render  1 of 1$`,
	`\d+ ms  done      invoice\.render  attempt 1 of 2$`,
	`\d+ ms  worker    shop-v2 has stopped$`,
	`enqueued 3, duplicate 1, started 7, done 3, failed 4, retried 3, dead 1, redriven 1$`,
	`left: 0 waiting, 0 running, 0 dead$`,
	`check: 0 violations$`,
	`^pawl quickstart: ok$`,
}

// paid is the story of the payment, which goes on beside that of the invoice.
var paid = []string{
	`worker    shop-v1 starts$`,
	`failed    payment\.charge  attempt 1 of 8, again in \d+ ms: gateway answered 503`,
	`failed    payment\.charge  attempt 2 of 8, again in \d+ ms: gateway answered 503`,
	`done      payment\.charge  attempt 3 of 8$`,
	`worker    shop-v1 has stopped$`,
}

func TestTheQuickstartTellsItsStory(t *testing.T) {
	t.Parallel()
	binary := exampletest.Build(t)
	exampletest.OnBoth(t, binary, "quickstart", [][]string{told, paid})
	t.Run("where there is no Redis, it says so and fails", func(t *testing.T) {
		t.Parallel()
		out, err := exampletest.Execute(t, binary, "redis://127.0.0.1:1")
		require.Error(t, err)
		require.Contains(t, out, "pawl quickstart: connect to the Redis of REDIS_URL")
	})
}
