package pawl_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

// slowFirst is a hook that holds the first scripts for a time each.
type slowFirst struct {
	redis.Hook
	scripts atomic.Int32
	used    int32 // scripts that the enqueues took
	first   int32
	delay   time.Duration
}

func (s *slowFirst) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *slowFirst) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if name := cmd.Name(); (name == "evalsha" || name == "eval") && s.scripts.Add(1) <= s.first {
			<-time.After(s.delay)
		}
		return next(ctx, cmd)
	}
}

func (s *slowFirst) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// behindSlowCalls enqueues jobs one after another, the first of them in slow calls,
// and returns how long each took.
func behindSlowCalls(t *testing.T, slow *slowFirst, sizes ...int) []time.Duration {
	took := make([]time.Duration, len(sizes))
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		q := env.Client.Queue("slow")
		_, err := q.Enqueue(t.Context(), note{}) // the server knows the script
		require.NoError(t, err)
		env.Redis.AddHook(slow)
		var all sync.WaitGroup
		for i, n := range sizes {
			all.Go(func() {
				start := time.Now()
				_, err := q.EnqueueMany(context.Background(), pawl.Items(make([]note, n)))
				took[i] = time.Since(start)
				require.NoError(t, err)
			})
			synctest.Wait()
		}
		all.Wait()
		slow.used = slow.scripts.Load()
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		total := int64(1)
		for _, n := range sizes {
			total += int64(n)
		}
		require.Equal(t, total, s.Total.Enqueued)
	})
	return took
}

func TestEnqueuesThatComeDuringACallShareTheNext(t *testing.T) {
	t.Parallel()
	slow := &slowFirst{first: 1, delay: 20 * time.Millisecond}
	took := behindSlowCalls(t, slow, 1, 1, 1, 200)
	for _, d := range took {
		require.Equal(t, 20*time.Millisecond, d)
	}
	require.EqualValues(t, 2, slow.used)
}

func TestACallThatStallsHoldsBackNobody(t *testing.T) {
	t.Parallel()
	const stall = 25 * time.Millisecond
	slow := &slowFirst{first: 2, delay: time.Second}
	took := behindSlowCalls(t, slow, 1, 1, 1)
	require.Equal(t, []time.Duration{time.Second, time.Second + stall, time.Second + stall}, took)
	slow = &slowFirst{first: 1, delay: time.Second}
	took = behindSlowCalls(t, slow, 1, 1, 1)
	require.Equal(t, []time.Duration{time.Second, stall, stall}, took)
}

func TestWhatFillsACallWaitsForNoOther(t *testing.T) {
	t.Parallel()
	slow := &slowFirst{first: 1, delay: 20 * time.Millisecond}
	took := behindSlowCalls(t, slow, 1, 1, 500, 1)
	require.Equal(t, []time.Duration{20 * time.Millisecond, 0, 0, 20 * time.Millisecond}, took)
}

func TestNoMoreThanTwoFullCallsAreUnderWay(t *testing.T) {
	t.Parallel()
	slow := &slowFirst{first: 2, delay: 20 * time.Millisecond}
	took := behindSlowCalls(t, slow, 500, 500, 500, 500)
	require.Equal(t, []time.Duration{20 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond}, took)
}
