package pawl_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// Redis remembers a lane for two minutes. A call whose answer was lost, and
// whose next connection takes longer than that, must not be sent again.
func TestAnEnqueueIsNotSentAgainOnceItsLaneMayBeForgotten(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		dialer := &slowDialer{dial: e.Mini.Dial}
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", PoolSize: 1, MaxRetries: -1, DialerRetries: 1,
			PoolTimeout: time.Hour, DialTimeout: time.Hour, ReadTimeout: -1, Dialer: dialer.Dial})
		t.Cleanup(func() { _ = rdb.Close() })
		lost := &loseNext{then: dialer.slowDown}
		rdb.AddHook(lost)
		c, err := pawl.New(rdb, pawl.Config{})
		require.NoError(t, err)
		q := c.Queue("mail")
		_, err = q.Enqueue(t.Context(), note{1})
		require.NoError(t, err)

		lost.on.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err = q.Enqueue(ctx, note{2})
		require.ErrorIs(t, err, pawl.ErrUnconfirmed)
		s, err := e.Queue("mail").Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Ready, "one job of each enqueue")
	})
}

// slowDialer is a network on which, once slowed down, a connection takes longer
// than Redis remembers a lane.
type slowDialer struct {
	dial func() (net.Conn, error)
	slow atomic.Bool
	mu   sync.Mutex
	open []net.Conn
}

func (d *slowDialer) Dial(context.Context, string, string) (net.Conn, error) {
	if d.slow.Load() {
		<-time.After(130 * time.Second)
	}
	conn, err := d.dial()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = append(d.open, conn)
	return conn, err
}

func (d *slowDialer) slowDown() {
	d.slow.Store(true)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.open {
		_ = conn.Close()
	}
}

// loseNext loses the answer of the next script, which ran.
type loseNext struct {
	on   atomic.Bool
	then func()
}

func (l *loseNext) DialHook(next redis.DialHook) redis.DialHook { return next }
func (l *loseNext) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && strings.HasPrefix(cmd.Name(), "eval") && l.on.CompareAndSwap(true, false) {
			l.then()
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return err
	}
}

func (l *loseNext) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
