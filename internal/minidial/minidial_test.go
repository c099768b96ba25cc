package minidial

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) *redis.Client {
	t.Helper()
	m := miniredis.NewMiniRedis()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379",
		Dialer: func(context.Context, string, string) (net.Conn, error) { return Dial(m) }})
	t.Cleanup(func() {
		_ = rdb.Close()
		m.Close()
	})
	return rdb
}

func TestAPipelineMayBeLongerThanABuffer(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 100, 5_000, 100_000} {
		synctest.Test(t, func(t *testing.T) {
			rdb := open(t)
			start := time.Now()
			_, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
				for range 200 {
					p.Echo(t.Context(), strings.Repeat("x", size))
				}
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, "PONG", rdb.Ping(t.Context()).Val(), "what comes after it is in order")
			require.Zero(t, time.Since(start))
		})
	}
}

func TestALongWriteEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		c, err := Dial(m)
		require.NoError(t, err)
		long := []byte(strings.Repeat("*1\r\n$4\r\nPING\r\n", 10_000)) // whose answers nobody reads
		n, err := c.Write(long)
		require.NoError(t, err)
		require.Equal(t, len(long), n)
		synctest.Wait()
		require.NoError(t, c.Close())
		m.Close()
		synctest.Wait()
		_, err = c.Write([]byte("x"))
		require.Error(t, err)
	})
}
