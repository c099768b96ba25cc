package exampleredis

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pawlq/pawl/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWithoutAURLARedisIsStarted(t *testing.T) {
	t.Parallel()
	rdb, namespace, cleanup, err := open(t.Context(), "")
	require.NoError(t, err)
	defer cleanup()
	require.NotEmpty(t, namespace)

	other := redis.NewClient(&redis.Options{Addr: rdb.Options().Addr})
	defer func() { _ = other.Close() }()
	require.NoError(t, other.Set(t.Context(), namespace+":k", "v", 0).Err(), "another connection reaches it over TCP")
	require.Equal(t, "v", rdb.Get(t.Context(), namespace+":k").Val())
}

// The examples show time passing, so the embedded Redis must go by the clock.
func TestTheEmbeddedRedisGoesByTheRealClock(t *testing.T) {
	t.Parallel()
	rdb, _, cleanup, err := open(t.Context(), "")
	require.NoError(t, err)
	defer cleanup()

	before := time.Now()
	now, err := rdb.Time(t.Context()).Result()
	require.NoError(t, err)
	require.WithinRange(t, now, before.Add(-time.Millisecond), time.Now().Add(time.Millisecond))

	require.NoError(t, rdb.Set(t.Context(), "k", "v", 20*time.Millisecond).Err())
	require.Eventually(t, func() bool { return rdb.Exists(t.Context(), "k").Val() == 0 },
		10*time.Second, 5*time.Millisecond, "a key with a TTL expires")
}

func TestCleanupRemovesTheNamespaceAndNothingElse(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb, namespace, cleanup, err := open(t.Context(), "redis://"+server.Addr()+"/0")
	require.NoError(t, err)
	_, err = rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 3000 { // more than one page of SCAN
			p.Set(t.Context(), namespace+":{q}:"+time.Duration(i).String(), "v", 0)
		}
		p.Set(t.Context(), "someone:else", "v", 0)
		return nil
	})
	require.NoError(t, err)
	cleanup()
	keys, err := server.Client(t).Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Equal(t, []string{"someone:else"}, keys)
}

func TestAURLThatCannotBeUsedIsAnErrorThatNamesTheVariable(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"localhost:6379", "redis://127.0.0.1:1"} {
		_, _, _, err := open(t.Context(), url)
		require.ErrorContains(t, err, Env, url)
	}
}
