package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// Case 20, on a real server, where no clock can be turned: the first 50 of 150
// deaths are dated back by hand. TestRetentionDropsWhatIsTooOldAndNothingElse
// has it with a clock that can.
func TestRetentionOnARealServerDropsWhatIsTooOld(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	const all, old = 150, 50
	f.put(t, "mail", all, pawl.MaxAttempts(1))
	w := f.Worker("mail", pawl.WorkerConfig{Concurrency: 1})
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return errors.New("no") })
	f.Run(w, "dead", all)
	dateBack(t, f.Direct, "pawl:{mail}:dead", old, 2*time.Hour)
	ids := idsOfDead(listedDead(t, f.env, pawl.DeadFilter{}))
	require.Len(t, ids, all)
	keys := slices.Sorted(maps.Keys(layout(t, f.env, "mail")))

	u := &undertaker{}
	keeping(t, f.env, time.Hour, u)
	redistest.Eventually(t, "the old ones are dropped", func(context.Context) bool { return len(u.ids()) == old })
	require.ElementsMatch(t, ids[:old], u.ids())
	require.EqualValues(t, old, f.Total(t, "mail").Dropped)
	require.Equal(t, ids[old:], idsOfDead(listedDead(t, f.env, pawl.DeadFilter{})))
	require.EqualValues(t, all-old, f.Direct.XLen(t.Context(), "pawl:{mail}:dead").Val())
	require.EqualValues(t, all-old, f.Direct.HLen(t.Context(), "pawl:{mail}:dead:index").Val())
	require.Equal(t, keys, slices.Sorted(maps.Keys(layout(t, f.env, "mail"))), "no other key")
}

// dateBack makes the first n entries of a stream of the dead older by age.
func dateBack(t *testing.T, rdb *redis.Client, key string, n int, age time.Duration) {
	t.Helper()
	ctx := t.Context()
	entries, err := rdb.Do(ctx, "XRANGE", key, "-", "+").Slice()
	require.NoError(t, err)
	require.NoError(t, rdb.Del(ctx, key).Err())
	for i, e := range entries {
		entry := e.([]any)
		id, fields := entry[0].(string), entry[1].([]any)
		if i < n {
			id = fmt.Sprintf("%d-%d", time.Now().Add(-age).UnixMilli()-int64(n-i), i)
			require.Equal(t, "i", fields[0])
			require.NoError(t, rdb.HSet(ctx, key+":index", fields[1], id).Err())
		}
		require.NoError(t, rdb.Do(ctx, append([]any{"XADD", key, id}, fields...)...).Err())
	}
}
