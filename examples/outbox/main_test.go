package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/exampletest"
)

// told is the story, in order; other lines may stand between.
var told = []string{
	`^A shop takes an order, and its process is killed before the commit\.$`,
	`\d+ ms  shop    is killed \(SIGKILL\) before the commit$`,
	`\d+ ms  look     0 orders,  0 rows,  0 jobs: `,
	`^The next one takes twelve, and is killed after the last commit\. No relay runs yet\.$`,
	`\d+ ms  shop    is killed \(SIGKILL\) after the commit$`,
	`\d+ ms  look    12 orders, 12 rows,  0 jobs: `,
	`^A relay moves them, 5 at a time, and is killed `,
	`\d+ ms  relay   is killed \(SIGKILL\) between Redis and the rows$`,
	`\d+ ms  look    12 orders,  7 rows, 10 jobs: `,
	`\d+ ms  relay   the next one starts$`,
	`\d+ ms  look    12 orders,  0 rows, 12 jobs: `,
	`^A worker starts\.$`,
	`\d+ ms  worker  has shipped 12 orders$`,
	`^Redis goes away\. The shop takes twenty orders\.$`,
	`\d+ ms  shop    has taken them$`,
	`\d+ ms  look    32 orders, 20 rows,  0 jobs: `,
	`\d+ ms  redis   is back$`,
	`\d+ ms  worker  has shipped 32 orders$`,
	`^For 2s more, shop and relay are killed at any moment, and started again\.$`,
	`\d+ ms  storm   [1-9]\d* processes were killed \(SIGKILL\)$`,
	`\d+ ms  worker  has shipped [1-9]\d+ orders$`,
	`^What became of it:$`,
	` orders    [1-9]\d+$`,
	` shipped   [1-9]\d+ once, 0 more than once, 0 not at all, 0 that were not committed$`,
	` counted   enqueued [1-9]\d+, duplicate [1-9]\d*, done [1-9]\d+, failed 0$`,
	` left      0 rows, 0 jobs, 0 dead$`,
	` check     0 violations$`,
	`^pawl outbox: ok$`,
}

func TestEachCommittedOrderIsShippedOnceWhateverIsKilled(t *testing.T) {
	t.Parallel()
	binary := exampletest.Build(t)
	exampletest.OnBoth(t, binary, "outbox", [][]string{told})
	t.Run("told to stop, it says so and leaves nothing", func(t *testing.T) {
		t.Parallel()
		exampletest.Stopped(t, binary, "outbox", "Redis goes away")
	})
}

// A relay that is told to stop while it still opens its database has not failed.
func TestARelayThatIsStoppedAtItsStartIsNoError(t *testing.T) {
	t.Parallel()
	binary := exampletest.Build(t)
	for range 20 {
		p, err := json.Marshal(place{Namespace: "pawl", Database: filepath.Join(t.TempDir(), "shop.db"), Redis: "redis://127.0.0.1:1"})
		require.NoError(t, err)
		out, err := exec.CommandContext(t.Context(), binary, "relay", string(p)).CombinedOutput() // its standard input is at its end
		require.NoError(t, err, string(out))
	}
}
