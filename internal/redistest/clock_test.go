package redistest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

func TestTheClockOfAServerIsSet(t *testing.T) {
	t.Parallel()
	s := redistest.StartWithClock(t)
	rdb := s.Client(t)
	for _, offset := range []time.Duration{0, time.Hour, -time.Hour, 36 * time.Hour, 0} {
		s.SetClock(offset)
		now, err := rdb.Time(t.Context()).Result()
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(offset), now, 5*time.Second)
		byScript, err := rdb.Eval(t.Context(), "return redis.call('TIME')[1]", nil).Int64()
		require.NoError(t, err)
		require.InDelta(t, now.Unix(), byScript, 5)
	}
	require.NoError(t, rdb.Set(t.Context(), "k", "v", time.Minute).Err())
	s.SetClock(time.Hour)
	require.Zero(t, rdb.Exists(t.Context(), "k").Val(), "expiry goes by it")
	begun := time.Now()
	require.Error(t, rdb.BLPop(t.Context(), time.Second, "none").Err())
	require.GreaterOrEqual(t, time.Since(begun), 900*time.Millisecond)
}
