package pawl_test

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// nastyNames are what names must not be made of.
var nastyNames = map[string]string{
	"braces": "a{b}c", "a brace": "}", "an empty tag": "{}", "a newline": "a\nb", "NUL": "a\x00b", "CRLF": "a\r\nDEL x", "a glob": "*?[a]",
	"64 KiB": strings.Repeat("k", 64<<10), "invalid UTF-8": "\xff\xfe", "a blank": "a b", "nothing": "",
}

// D1, case 12. A name of a queue is refused at the first call and at the worker's
// construction, by a cluster's client too, and never at a settle; nothing is sent.
func TestNamesThatWouldBreakKeysAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	refusesNames(t, rdb)
	require.Empty(t, redistest.Dump(t.Context(), rdb, ""))
	// There is no cluster, so that whatever were sent would be another error.
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	t.Cleanup(func() { _ = cluster.Close() })
	refusesNames(t, cluster)
}

func refusesNames(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	c, err := pawl.New(rdb, pawl.Config{})
	require.NoError(t, err)
	for what, name := range nastyNames {
		_, err := c.Queue(name).Enqueue(t.Context(), note{1})
		require.ErrorIs(t, err, pawl.ErrName, what)
		require.ErrorIs(t, err, pawl.ErrInvalid, what)
		_, err = pawl.NewWorker(c, pawl.WorkerConfig{Queues: pawl.Queues(name)})
		require.ErrorIs(t, err, pawl.ErrInvalid, what)
		if name != "" {
			_, err = pawl.New(rdb, pawl.Config{Namespace: name})
			require.ErrorIs(t, err, pawl.ErrInvalid, what)
		}
	}
}

// D1. Kinds and unique keys are the user's texts: they work byte for byte, or are
// refused, and no key of Redis is made outside of the prefix of its queue.
func TestKindsAndKeysOfAnyBytesWorkOrAreRefused(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		w := e.Worker("mail", pawl.WorkerConfig{})
		n := 0
		for what, kind := range nastyNames {
			_, err := q.EnqueueRaw(ctx, kind, []byte("x"))
			if err != nil {
				require.ErrorIs(t, err, pawl.ErrInvalid, what)
				continue
			}
			n++
			w.HandleRaw(kind, func(_ context.Context, job *pawl.RawJob) error {
				require.Equal(t, kind, job.Kind)
				return nil
			})
		}
		require.Equal(t, 5, n, "braces, globs and blanks are in no key")
		w.HandleRaw("k", func(context.Context, *pawl.RawJob) error { return nil })
		for what, key := range nastyNames {
			if key == "" {
				continue
			}
			job, err := q.EnqueueRaw(ctx, "k", nil, pawl.Unique{Key: key})
			if len(key) > 512 {
				require.ErrorIs(t, err, pawl.ErrInvalid, what)
				continue
			}
			require.NoError(t, err, what)
			n++
			again, err := q.EnqueueRaw(ctx, "k", nil, pawl.Unique{Key: key})
			require.NoError(t, err)
			require.True(t, again.Duplicate, what)
			require.Equal(t, job.ID, again.ID)
			require.EqualValues(t, 1, e.Redis.Exists(ctx, "pawl:{mail}:unique:"+key).Val(), what)
		}
		for key := range redistest.Dump(ctx, e.Redis, "") {
			require.True(t, key == "pawl:queues" || strings.HasPrefix(key, "pawl:{mail}:"), "%q", key)
		}
		e.Run(w, "done", n)
		for key := range redistest.Dump(ctx, e.Redis, "") {
			require.NotContains(t, key, ":unique:", "each was freed by the end of its job")
		}
	})
}

// D2. Payloads are stored and handed over byte for byte, or refused.
func TestPayloadsReachTheHandlerByteForByte(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		const limit = 70_000
		c := e.NewClient(pawl.Config{MaxPayload: limit})
		e.Queue("mail")
		q := c.Queue("mail")
		payloads := []string{"", "x", "\x00", "\xff", strings.Repeat("\x00\r\n\xfe", limit/4), `{"n":9007199254740993,"m":-9223372036854775808,"f":[]}`}
		got := make(chan string, len(payloads))
		w, err := pawl.NewWorker(c, pawl.WorkerConfig{Queues: pawl.Queues("mail"), Concurrency: 1})
		require.NoError(t, err)
		w.HandleRaw("raw", func(_ context.Context, job *pawl.RawJob) error {
			got <- string(job.Payload)
			if job.Attempt == 1 {
				return pawl.RetryAfter(1, nil) // through the other home
			}
			return nil
		})
		for _, p := range payloads {
			_, err := q.EnqueueRaw(t.Context(), "raw", []byte(p))
			require.NoError(t, err)
		}
		_, err = q.EnqueueRaw(t.Context(), "raw", make([]byte, limit+1))
		require.ErrorIs(t, err, pawl.ErrTooLarge)
		stop := e.Start(w)
		times := map[string]int{}
		for range 2 * len(payloads) {
			times[<-got]++
		}
		e.Log.Wait(t, "done", len(payloads))
		require.NoError(t, stop())
		require.Len(t, times, len(payloads))
		for _, p := range payloads {
			require.Equal(t, 2, times[p], "%.40q", p)
		}
	})
}
