package redistest_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

func TestAReplicaThatLagsHasWhatCameBefore(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	require.NoError(t, master.Client(t).Set(t.Context(), "first", 1, 0).Err())
	replica := redistest.StartReplica(t, master)
	for i := range 1000 {
		require.NoError(t, master.Client(t).Set(t.Context(), "early"+strconv.Itoa(i), 1, 0).Err())
	}
	replica.AwaitSync(t, master)
	replica.Lag()
	require.NoError(t, master.Client(t).Set(t.Context(), "late", 1, 0).Err())
	rdb := replica.Client(t)
	require.EqualValues(t, 1001, rdb.DBSize(t.Context()).Val())

	replica.CatchUp()
	replica.AwaitSync(t, master)
	require.EqualValues(t, 1002, rdb.DBSize(t.Context()).Val())

	replica.Lag()
	require.NoError(t, master.Client(t).Set(t.Context(), "lost", 1, 0).Err())
	master.Kill()
	replica.Promote(t)
	require.Equal(t, "master", replica.Role(t.Context()))
	require.EqualValues(t, 1002, rdb.DBSize(t.Context()).Val())
	require.NoError(t, rdb.Set(t.Context(), "new", 1, 0).Err())
	replica.CatchUp() // what was held has nowhere to go
	require.EqualValues(t, 1003, rdb.DBSize(t.Context()).Val())
}

func TestSentinelsPromoteAReplicaThatLags(t *testing.T) {
	t.Parallel()
	for name, lives := range map[string]bool{"of a dead master": false, "of one that lives": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master := redistest.Start(t)
			replica := redistest.StartReplica(t, master)
			sentinels := redistest.StartSentinels(t, master, replica)
			rdb := sentinels.FailoverClient(t)
			require.NoError(t, rdb.Set(t.Context(), "early", 1, 0).Err())
			replica.AwaitSync(t, master)
			replica.Lag()
			require.NoError(t, rdb.Set(t.Context(), "late", 1, 0).Err())
			if lives {
				sentinels.Failover()
			} else {
				sentinels.Kill(master)
			}
			sentinels.AwaitMaster(replica)
			redistest.Eventually(t, "the client finds the new master", func(ctx context.Context) bool {
				return rdb.Set(ctx, "new", 1, 0).Err() == nil && replica.Client(t).Exists(ctx, "new").Val() == 1
			})
			require.EqualValues(t, 2, replica.Client(t).DBSize(t.Context()).Val(), "early and new")
			if !lives {
				master.Restart()
			}
			redistest.Eventually(t, "the old master is a replica", func(ctx context.Context) bool {
				return master.Role(ctx) == "slave" && master.Client(t).Exists(ctx, "late").Val() == 0
			})
		})
	}
}
