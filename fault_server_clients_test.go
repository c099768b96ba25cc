package pawl_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

// E8. What an operator does to all clients, or to the whole server, for a while.
func TestWhatAnOperatorDoesToAllClientsPasses(t *testing.T) {
	t.Parallel()
	pause := sized(2*time.Second, 5*time.Second)
	for name, do := range map[string]func(t *testing.T, rdb *redis.Client){
		"CLIENT KILL of all": func(t *testing.T, rdb *redis.Client) {
			every := time.NewTicker(50 * time.Millisecond)
			defer every.Stop()
			for range 20 {
				require.NoError(t, rdb.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
				<-every.C
			}
		},
		"CLIENT PAUSE WRITE": func(t *testing.T, rdb *redis.Client) {
			require.NoError(t, rdb.Do(t.Context(), "CLIENT", "PAUSE", pause.Milliseconds(), "WRITE").Err())
			<-time.After(pause)
		},
		"DEBUG SLEEP": func(t *testing.T, rdb *redis.Client) {
			require.NoError(t, rdb.Do(t.Context(), "DEBUG", "SLEEP", pause.Seconds()).Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, "--enable-debug-command", "yes")
			e := newEnv(t, s.Client(t), nil)
			rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), ReadTimeout: time.Minute})
			t.Cleanup(func() { _ = rdb.Close() })
			l := e.load("q", 20*time.Second, e.same)
			l.more(50)
			do(t, rdb)
			over := time.Now()
			l.more(1)
			measured(t, "E8 "+name, "an enqueue and a job done", time.Since(over))
			l.well()
			l.once(t, l.end("q"))
		})
	}
}

// P5. Everything is gone at once, in the middle of a load.
func TestWorkGoesOnAfterAFlushUnderLoad(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := newEnv(t, s.Client(t), nil)
	l := e.load("q", 10*time.Second, e.same)
	for range 3 {
		l.more(30)
		require.NoError(t, s.Client(t).FlushAll(t.Context()).Err())
		flushed := time.Now()
		l.more(1)
		measured(t, "P5", "an enqueue and a job done", time.Since(flushed))
	}
	l.more(30)
	total := l.end("q")
	require.Empty(t, l.errs, "no producer sees an error")
	require.Zero(t, total.Dead+total.Lost+total.Healed+total.Crashed)
	require.Equal(t, total.Enqueued, total.Done, "of what was enqueued since")
	require.GreaterOrEqual(t, total.Done, int64(30))
	require.LessOrEqual(t, len(l.handled.of), len(l.acked))
}
