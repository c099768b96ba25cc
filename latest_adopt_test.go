package pawl_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// A run whose lease ran out is handed the new lease if its own worker gets the job
// again. If the job has other arguments by then, that run's end is not the end of them:
// the enqueue that replaced it was told that they are in the queue.
func TestAReplacedJobRunsThoughItsOldRunStillDoes(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]error{"done": nil, "fails": errors.New("no")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contract(t, func(t *testing.T, e *env) {
				q := e.Queue("mail")
				unique := pawl.Unique{Key: "sync:1", OnDuplicate: pawl.ReplaceWaiting}
				var mu sync.Mutex
				var ran []int
				started, letGo := make(chan struct{}), make(chan struct{})
				w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 4, Backoff: pawl.Backoff{Base: time.Millisecond}})
				pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
					mu.Lock()
					ran = append(ran, job.Args.N)
					mu.Unlock()
					if job.Args.N == 1 {
						close(started)
						<-letGo // whatever becomes of its context
						return outcome
					}
					return nil
				})
				old := put(t, q, 1, unique)
				e.Start(w)
				<-started
				leases := e.Redis.ZRangeWithScores(t.Context(), "pawl:{mail}:leases", 0, -1).Val()
				require.Len(t, leases, 1)
				e.Redis.ZAddXX(t.Context(), "pawl:{mail}:leases", redis.Z{Score: 1000, Member: leases[0].Member}) // it runs out
				got, err := q.Enqueue(t.Context(), note{5}, unique)
				require.NoError(t, err)
				require.Equal(t, pawl.Enqueued{ID: old, Queue: "mail", Duplicate: true}, got, "it is still its holder's")

				require.NoError(t, q.Reschedule(t.Context(), old, time.Now().Add(time.Hour)), "not any more")
				got, err = q.Enqueue(t.Context(), note{2}, unique)
				require.NoError(t, err)
				require.Equal(t, pawl.Enqueued{ID: old, Queue: "mail", Duplicate: true, Replaced: true}, got)
				put(t, q, 3) // it runs after the lease of the other was answered
				e.Log.Wait(t, "done", 1)
				close(letGo)
				put(t, q, 4)
				e.Log.Wait(t, "done", 2)
				e.Log.Wait(t, "done", 3)
				mu.Lock()
				defer mu.Unlock()
				require.ElementsMatch(t, []int{1, 2, 3, 4}, ran)
			})
		})
	}
}
