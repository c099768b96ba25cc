package pawl_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// Why New refuses a Ring: when a server does not answer, its keys are looked for on
// another, and those that were written there are out of sight once it is back.
func TestARingLosesSightOfWhatWasWrittenDuringAnOutage(t *testing.T) {
	t.Parallel()
	one, two := redistest.Start(t), redistest.Start(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": one.Addr(), "two": two.Addr()},
		HeartbeatFrequency: 20 * time.Millisecond})
	t.Cleanup(func() { _ = ring.Close() })
	home, err := ring.GetShardClientForKey("{q}")
	require.NoError(t, err)
	down := map[string]*redistest.Server{one.Addr(): one, two.Addr(): two}[home.Options().Addr]
	down.Kill()
	redistest.Eventually(t, "the ring writes to the other server", func(ctx context.Context) bool {
		return ring.LPush(ctx, "{q}jobs", "a job").Err() == nil
	})
	down.Restart()
	redistest.Eventually(t, "the job is out of sight", func(ctx context.Context) bool {
		n, err := ring.LLen(ctx, "{q}jobs").Result()
		return err == nil && n == 0
	})

	for name, rdb := range map[string]redis.UniversalClient{"itself": ring, "embedded": struct{ *redis.Ring }{ring}} {
		_, err = pawl.New(rdb, pawl.Config{})
		require.ErrorIs(t, err, pawl.ErrInvalid, name)
		require.ErrorContains(t, err, "redis.Ring", name)
		c, err := pawl.New(one.Client(t), pawl.Config{})
		require.NoError(t, err)
		_, err = pawl.NewWorker(c, pawl.WorkerConfig{Queues: pawl.Queues("q"), Blocking: rdb})
		require.ErrorIs(t, err, pawl.ErrInvalid, name)
		require.ErrorContains(t, err, "redis.Ring", name)
	}
}

// crossings counts the blocking reads that a cluster refuses.
type crossings struct{ n atomic.Int64 }

func (*crossings) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *crossings) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "blpop" && err != nil && err != redis.Nil {
			c.n.Add(1)
		}
		return err
	}
}

func (*crossings) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A type of the user's own may hide that there are several servers.
func TestAWorkerReadsEachQueueByItselfBehindATypeOfTheUsersOwn(t *testing.T) {
	t.Parallel()
	s := onCluster(t, 3, 0)
	for name, wrap := range map[string]func(*redis.ClusterClient) redis.UniversalClient{
		"an interface": func(c *redis.ClusterClient) redis.UniversalClient { return struct{ redis.UniversalClient }{c} },
		"embedded":     func(c *redis.ClusterClient) redis.UniversalClient { return struct{ *redis.ClusterClient }{c} },
	} {
		t.Run(name, func(t *testing.T) {
			log := newRecorder(false)
			var refused crossings
			rdb := s.Cluster.Client(t)
			rdb.AddHook(&refused)
			c, err := pawl.New(wrap(rdb), pawl.Config{Hooks: []pawl.Hook{log}, Namespace: fmt.Sprintf("n%d", len(name))})
			require.NoError(t, err)
			queues := []string{"q", s.elsewhere()}
			w, err := pawl.NewWorker(c, pawl.WorkerConfig{Queues: pawl.Queues(queues...)})
			require.NoError(t, err)
			pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
			stop := s.Start(w)
			for n := range 20 {
				_, err := c.Queue(queues[n%2]).Enqueue(t.Context(), note{n})
				require.NoError(t, err)
				log.Wait(t, "done", n+1)
			}
			require.NoError(t, stop())
			require.Zero(t, refused.n.Load(), "blocking reads were refused")
			if name == "embedded" {
				require.NoError(t, c.Queue("q").Destroy(t.Context()))
			}
		})
	}
}
