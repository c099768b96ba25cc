package pawl_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// "Sync this user" has the same arguments each time, and yet is to run after the change
// that it was enqueued for: a run that began before is not the run of what replaced it.
func TestAJobThatWasReplacedByOneOfTheSameArgumentsRunsAfterIt(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		unique := pawl.Unique{Key: "sync:1", OnDuplicate: pawl.ReplaceWaiting}
		var runs atomic.Int32
		started, letGo := make(chan struct{}), make(chan struct{})
		w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 4})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			if job.Args.N == 1 && runs.Add(1) == 1 {
				close(started)
				<-letGo // whatever becomes of its context
			}
			return nil
		})
		old := put(t, q, 1, unique)
		e.Start(w)
		<-started
		leases := e.Redis.ZRangeWithScores(t.Context(), "pawl:{mail}:leases", 0, -1).Val()
		require.Len(t, leases, 1)
		e.Redis.ZAddXX(t.Context(), "pawl:{mail}:leases", redis.Z{Score: 1000, Member: leases[0].Member}) // it runs out
		require.NoError(t, q.Reschedule(t.Context(), old, time.Now().Add(time.Hour)))
		got, err := q.Enqueue(t.Context(), note{1}, unique)
		require.NoError(t, err)
		require.True(t, got.Replaced)
		put(t, q, 3) // it runs after the lease of the other was answered
		e.Log.Wait(t, "done", 1)
		close(letGo)
		put(t, q, 4)
		e.Log.Wait(t, "done", 3)
		require.EqualValues(t, 2, runs.Load())
	})
}
