package pawl_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A key of a wrong type is told of, whatever else there is.
func TestCheckTellsOfEachKeyOfAWrongType(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Client.Queue("bad")
		require.NoError(t, e.Redis.SAdd(t.Context(), "pawl:queues", "bad").Err())
		for _, name := range []string{"jobs", "held", "due", "prio", "leases", "runs", "dead", "dead:index", "done", "done:at",
			"meta", "minutes", "wake", "workers", "workers:info", "schedules", "schedules:at", "schedules:state"} {
			key := "pawl:{bad}:" + name
			require.NoError(t, e.Redis.Set(t.Context(), key, "x", 0).Err())
			_, err := q.Check(t.Context())
			require.ErrorContains(t, err, "WRONGTYPE", name)
			require.NoError(t, e.Redis.Del(t.Context(), key).Err())
		}
	})
}
