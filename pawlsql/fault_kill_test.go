package pawlsql_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
	"github.com/pawlq/pawl/pawlsql"
)

// A relay is killed in the middle of a pass, another runs beside it, and each row is
// one job: none is lost, and none is there twice, whatever the step was.
func TestARelayThatIsKilledAtAnyStepMovesEachRowOnce(t *testing.T) {
	t.Parallel()
	const n = 60
	for _, step := range []string{"taken", "enqueued", "deleted", "committed"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, d *database) {
				server := redistest.Start(t)
				c, o := clientOf(t, server.Client(t)), newOutbox(t, d, pawlsql.OutboxConfig{})
				put(t, d, o, "q", charges(0, n)...)
				<-suicide{d.Dialect, d.driver, d.dsn, server.Addr(), step, 2, 10}.start(t)
				moved := map[string]int{"taken": 10, "enqueued": 20, "deleted": 20, "committed": 20}[step]
				require.Len(t, orders(t, c, "q"), moved, "it got as far as that")
				stay := map[string]int64{"taken": n - 10, "enqueued": n - 10, "deleted": n - 10, "committed": n - 20}[step]
				eventually(t, "the database knows of the end", func() bool { return d.pending(t) == stay })

				relayed(t, d, o, c)
				requireOnce(t, c, "q", n)
				stats, err := c.Queue("q").Stats(t.Context())
				require.NoError(t, err)
				require.EqualValues(t, int(stay)-(n-moved), stats.Total.Duplicate, "those that were enqueued and not deleted came again")
			})
		})
	}
}

// Two relays, one of which dies and comes back all the time, while producers go on.
func TestARelayThatDiesAllTheTimeLosesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		server := redistest.Start(t)
		c, o := clientOf(t, server.Client(t)), newOutbox(t, d, pawlsql.OutboxConfig{})
		const n = 40
		survivor := newRelay(t, d, o, c, pawlsql.RelayConfig{Batch: 3})
		run(t, survivor)
		lives := 0
		for i, step := range []string{"enqueued", "deleted", "taken"} {
			put(t, d, o, "q", charges(i*n, n)...)
			ended := suicide{d.Dialect, d.driver, d.dsn, server.Addr(), step, 1, 5}.start(t)
			put(t, d, o, "late", charges(i*n, n)...)
			drained(t, survivor)
			select {
			case <-ended:
				lives++
			default: // it came too late to get a row, and is ended with the test
			}
		}
		t.Logf("%d of 3 died in a pass", lives)
		requireOnce(t, c, "q", 3*n)
		requireOnce(t, c, "late", 3*n)
	})
}
