package redistest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

func TestAClusterReplacesAMaster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 3, 1)
	rdb := c.Client(t)
	for i := range 20 {
		require.NoError(t, rdb.Set(t.Context(), fmt.Sprint(i), i, 0).Err())
	}
	old := c.MasterOf("7")
	promoted := c.Failover(old)
	require.Equal(t, promoted, c.MasterOf("7"))
	require.Equal(t, old, c.ReplicaOf(promoted))
	c.AwaitOK()
	promoted.Kill()
	redistest.Eventually(t, "the old master takes over", func(ctx context.Context) bool { return old.Role(ctx) == "master" })
	c.AwaitOK()
	require.Equal(t, old, c.MasterOf("7"))
	for i := range 20 {
		require.Equal(t, fmt.Sprint(i), rdb.Get(t.Context(), fmt.Sprint(i)).Val())
	}
	promoted.Restart()
	c.AwaitOK()
	require.Equal(t, promoted, c.ReplicaOf(old))
}

func TestASlotMovesKeyByKey(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, 2, 0)
	rdb := c.Client(t)
	for i := range 5 {
		require.NoError(t, rdb.Set(t.Context(), fmt.Sprintf("{a}%d", i), i, 0).Err())
	}
	source, target := c.MasterOf("{a}"), c.OtherMaster("{a}")
	require.NotEqual(t, source, target)
	require.NotEqual(t, source, c.MasterOf(c.KeyElsewhere("{b%d}", "{a}")))
	c.Migrate("{a}", target, func(moved int) {
		require.Len(t, c.Keys(source, "{a}"), 5-moved)
		require.Len(t, c.Keys(target, "{a}"), moved)
		for i := range 5 {
			require.Equal(t, fmt.Sprint(i), rdb.Get(t.Context(), fmt.Sprintf("{a}%d", i)).Val())
		}
	})
	require.Equal(t, target, c.MasterOf("{a}"))
	c.AwaitOK()
	require.Equal(t, "3", rdb.Get(t.Context(), "{a}3").Val())
}
