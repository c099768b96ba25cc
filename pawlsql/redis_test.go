package pawlsql_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// realRedis is a client of a redis-server of the test's own.
func realRedis(t testing.TB) *pawl.Client {
	t.Helper()
	return clientOf(t, redistest.Start(t).Client(t))
}

func clientOf(t testing.TB, rdb redis.UniversalClient) *pawl.Client {
	t.Helper()
	c, err := pawl.New(rdb, pawl.Config{})
	require.NoError(t, err)
	return c
}
