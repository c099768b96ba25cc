package pawlsql_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
	"github.com/pawlq/pawl/pawlsql"
)

// A key of the queue that is of a wrong type is no fault of a row, whether or not its
// job has a Unique of its own.
func TestAQueueThatIsBrokenIsNotTheFaultOfARowWithAUnique(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"jobs", "held", "due", "prio", "leases", "runs", "meta", "minutes", "wake"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t, pawlsql.SQLite)
			rdb := redistest.Start(t).Client(t)
			c, o := clientOf(t, rdb), newOutbox(t, d, pawlsql.OutboxConfig{})
			require.NoError(t, rdb.SetBit(t.Context(), "pawl:{q}:"+key, 1, 1).Err())
			put(t, d, o, "q", pawl.Item{Args: charge{0}, Options: []pawl.Option{pawl.Unique{Key: "mine", For: 24 * time.Hour}}})
			var log journal
			r := newRelay(t, d, o, c, pawlsql.RelayConfig{Logger: log.logger()})
			run(t, r)
			eventually(t, "it was tried", func() bool { return len(log.lines("WRONGTYPE")) > 0 })
			require.EqualValues(t, 1, d.pending(t))
			require.NoError(t, rdb.Del(t.Context(), "pawl:{q}:"+key).Err())
			drained(t, r)
			requireOnce(t, c, "q", 1)
		})
	}
}
