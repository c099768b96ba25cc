package pawl_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// P1.
func TestAServerThatIsKilledUnderLoadForgetsNothing(t *testing.T) {
	t.Parallel()
	for _, fsync := range []string{"always", "everysec"} {
		t.Run(fsync, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", fsync)
			e := newEnv(t, s.Client(t), nil)
			l := e.load("q", 10*time.Second, e.same)
			for range 3 {
				l.more(50)
				awaitSync(t, e.Redis)
				s.Kill()
				s.Restart()
				up := time.Now()
				l.more(1)
				measured(t, "P1 "+fsync, "an enqueue and a job done after the restart", time.Since(up))
			}
			l.well()
			l.once(t, l.end("q"))
		})
	}
}

// awaitSync returns when no sync of the AOF is under way. With everysec Redis
// answers during one, for 2 s at most, and keeps what it would have written to
// itself: a kill loses it (seen with a disk that took 1.5 s).
func awaitSync(t *testing.T, rdb *redis.Client) {
	t.Helper()
	redistest.Eventually(t, "no sync is under way", func(ctx context.Context) bool {
		info, _ := rdb.Info(ctx, "persistence").Result()
		return strings.Contains(info, "aof_pending_bio_fsync:0")
	})
}

// P1, durability: no AOF.
func TestWithoutAnAOFAKillLosesAllSinceTheSnapshot(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := newEnv(t, s.Client(t), nil)
	w := e.Worker("q", pawl.WorkerConfig{Concurrency: 4, VisibilityTimeout: time.Second})
	var handled runs
	gate := make(chan struct{})
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		handled.add(job.Args.N)
		if job.Args.N >= 200 {
			<-gate
		}
		return nil
	})
	stop := e.Start(w)
	e.put("q", 0, 10)
	e.Log.Wait(t, "done", 10)
	later := e.put("q", 20, 30, pawl.Delay(time.Hour), pawl.Unique{Key: "k"})[0]
	require.NoError(t, e.Redis.Save(t.Context()).Err())
	tail := e.put("q", 100, 120)
	e.Log.Wait(t, "done", 30)
	tail = append(tail, e.put("q", 200, 204)...)
	e.Log.Wait(t, "started", 34)
	s.Kill()
	s.Restart()
	up := time.Now()
	close(gate)
	e.Log.Wait(t, "lost", 4)
	fresh := e.put("q", 300, 301)[0]
	e.Log.Wait(t, "done", 31)
	measured(t, "P1 no AOF", "an enqueue and a job done after the restart", time.Since(up))
	for _, job := range tail {
		require.Empty(t, e.state("q", job.ID))
		require.Less(t, job.ID.String(), fresh.ID.String(), "ids go on rising")
	}
	require.Equal(t, pawl.StateDelayed, e.state("q", later.ID))
	require.True(t, e.put("q", 20, 21, pawl.Unique{Key: "k"})[0].Duplicate)
	require.NoError(t, stop())
	handled.each(t, 35, 1)
	stats, err := e.Queue("q").Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, pawl.Counters{Enqueued: 12, Started: 11, Done: 11, Duplicate: 9 + 1}, stats.Total)
}
