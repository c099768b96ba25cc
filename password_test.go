package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

func TestAMissingOrWrongPasswordIsNamed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--requirepass", "secret", "--masterauth", "secret")
	for word, password := range map[string]string{"NOAUTH": "", "WRONGPASS": "guess"} {
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), Password: password})
		t.Cleanup(func() { _ = rdb.Close() })
		c, err := pawl.New(rdb, pawl.Config{})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for name, call := range map[string]func() error{
			"enqueue":      func() error { _, err := c.Queue("q").Enqueue(ctx, note{1}); return err },
			"enqueue many": func() error { _, err := c.Queue("q").EnqueueMany(ctx, pawl.Items(make([]note, 100))); return err },
			"stats":        func() error { _, err := c.Queue("q").Stats(ctx); return err },
			"len":          func() error { _, err := c.Queue("q").Dead().Len(ctx); return err },
		} {
			err := call()
			require.ErrorContains(t, err, word, name)
			if word == "WRONGPASS" {
				// Without a password Redis ends the connection, and may do so
				// before its answer has been read: then nobody can tell.
				require.NotErrorIs(t, err, pawl.ErrUnconfirmed, name)
			}
			require.NotErrorIs(t, err, context.DeadlineExceeded, name)
		}
	}
}
