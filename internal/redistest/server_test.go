package redistest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

func TestStartGivesEachTestAnEmptyServerOfItsOwn(t *testing.T) {
	t.Parallel()
	servers := make([]*redistest.Server, 4)
	servers[0] = redistest.Start(t) // only the test's own goroutine may skip it
	var starting sync.WaitGroup
	for i := range servers[1:] {
		starting.Go(func() { servers[i+1] = redistest.Start(t) })
	}
	starting.Wait()
	pids := map[int]bool{}
	for _, s := range servers {
		require.NotNil(t, s)
		pids[s.Pid()] = true
		rdb := s.Client(t)
		n, err := rdb.Incr(t.Context(), "n").Result()
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
	}
	require.Len(t, pids, len(servers))
}

func TestRestartKeepsPortAndData(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	addr, pid := s.Addr(), s.Pid()
	rdb := impatient(t, s)
	require.NoError(t, rdb.Set(t.Context(), "k", "v", 0).Err())
	s.Kill()
	s.Kill()
	require.Error(t, rdb.Ping(t.Context()).Err())
	s.Restart()
	require.Equal(t, addr, s.Addr())
	require.NotEqual(t, pid, s.Pid())
	require.Equal(t, "v", rdb.Get(t.Context(), "k").Val())

	pid = s.Pid()
	s.Restart() // of a running server
	require.NotEqual(t, pid, s.Pid())
	require.Equal(t, "v", rdb.Get(t.Context(), "k").Val())
}

func TestRestartLoadingReturnsWhileItLoads(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--enable-debug-command", "yes", "--key-load-delay", "3000", "--loading-process-events-interval-bytes", "1024")
	rdb := impatient(t, s)
	require.NoError(t, rdb.Do(t.Context(), "DEBUG", "POPULATE", 1000, "key", 1024).Err())
	require.NoError(t, rdb.Save(t.Context()).Err())
	s.RestartLoading()
	require.ErrorContains(t, rdb.Get(t.Context(), "key:1").Err(), "LOADING")
}

func TestPauseFreezesAndResumeThaws(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := impatient(t, s, 100*time.Millisecond)
	require.NoError(t, rdb.Ping(t.Context()).Err())
	s.Pause()
	require.ErrorContains(t, rdb.Ping(t.Context()).Err(), "timeout")
	s.Resume()
	redistest.Eventually(t, "it answers again", func(ctx context.Context) bool {
		return rdb.Ping(ctx).Err() == nil
	})
	s.Pause()
	s.Kill()
}

func TestStartTakesAServerThatWantsAPassword(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--requirepass", "secret")
	require.ErrorContains(t, s.Client(t).Get(t.Context(), "k").Err(), "NOAUTH")
}

// impatient returns a client that tries once.
func impatient(t *testing.T, s *redistest.Server, readTimeout ...time.Duration) *redis.Client {
	t.Helper()
	opts := &redis.Options{Addr: s.Addr(), MaxRetries: -1, DialerRetries: 1}
	if len(readTimeout) > 0 {
		opts.ReadTimeout = readTimeout[0]
	}
	rdb := redis.NewClient(opts)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
