package pawltest_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

// region lost

// lossy is a redis.Hook. While it is on, what scripts did stays done, and their
// answers are lost.
type lossy struct{ on atomic.Bool }

func (l *lossy) lose(cmd redis.Cmder, err error) error {
	if l.on.Load() && err == nil && strings.HasPrefix(cmd.Name(), "eval") {
		err = io.ErrUnexpectedEOF
		cmd.SetErr(err)
	}
	return err
}

func (l *lossy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *lossy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return l.lose(cmd, next(ctx, cmd)) }
}

func (l *lossy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			err = errors.Join(err, l.lose(cmd, cmd.Err()))
		}
		return err
	}
}

func TestAnOrderWhoseAnswerIsLostIsChargedOnce(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		shop, err := NewShop(env.Client, paid)
		require.NoError(t, err)
		line := new(lossy)
		line.on.Store(true)
		env.Redis.AddHook(line)
		require.ErrorIs(t, shop.Order(t.Context(), 7), pawl.ErrUnconfirmed) // after 5 s

		line.on.Store(false)
		require.NoError(t, shop.Order(t.Context(), 7)) // the customer tries again
		pawltest.RequireEnqueued(env, "payments", Charge{Order: 7})
	})
}

// endregion
