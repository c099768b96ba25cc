package pawl_test

import (
	"context"
	"crypto/sha1" //nolint:gosec // scripts are named by it
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// scaleEnv names the number of jobs of TestAGreatManyJobs; make it 1000000 where
// there is time and memory.
const scaleEnv = "PAWL_SCALE"

func scale(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(scaleEnv))
	if err != nil {
		return 10_000
	}
	return n
}

// D3. A great many ready jobs, as many that are due in the same millisecond, and a
// tenth of it dead: each runs once, Redis has its memory back when they have gone,
// and the longest call of each script is told.
func TestAGreatManyJobs(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := newEnvAs(t, s.Client(t), logIn(t, s, s.Addr(), time.Minute), nil)
	n := scale(t)
	set(t, e.Redis, "slowlog-log-slower-than", "500")
	set(t, e.Redis, "slowlog-max-len", "100000")
	serveAll(t, e, "warm", fillWith(t, e, "warm", 1000)) // the scripts are cached, the fixed keys there
	before := memoryOf(t, e)

	fillWith(t, e, "ready", n)
	full := memoryOf(t, e) - before
	longest(t, e, "n ready: enqueue")
	serveAll(t, e, "ready", n)
	longest(t, e, "n ready: drain")

	due := time.Now().Add(3*time.Second + time.Duration(n)*50*time.Microsecond)
	fillWith(t, e, "due", n, pawl.At(due))
	longest(t, e, "n due at once: enqueue")
	serveAll(t, e, "due", n)
	longest(t, e, "n due at once: drain")

	dead(t, e, n/10)
	longest(t, e, "n/10 dead")

	require.Less(t, memoryOf(t, e)-before, max(8<<20, full/10), "bytes more than before; %d were in use", full)
}

func memoryOf(t *testing.T, e *env) int {
	t.Helper()
	require.NoError(t, e.Redis.Do(t.Context(), "slowlog", "reset").Err())
	n, err := strconv.Atoi(e.Redis.InfoMap(t.Context(), "memory").Item("Memory", "used_memory"))
	require.NoError(t, err)
	return n
}

// fillWith enqueues notes 0 to n-1, and returns n.
func fillWith(t *testing.T, e *env, queue string, n int, opts ...pawl.Option) int {
	t.Helper()
	q := e.Queue(queue)
	for from := 0; from < n; from += 5000 {
		notes := make([]note, min(5000, n-from))
		for i := range notes {
			notes[i].N = from + i
		}
		_, err := q.EnqueueMany(t.Context(), pawl.Items(notes, opts...))
		require.NoError(t, err)
	}
	return n
}

// serveAll runs a worker that takes as many jobs a call as can be, until each of n
// notes has run once.
func serveAll(t *testing.T, e *env, queue string, n int) {
	t.Helper()
	runs := make([]atomic.Int32, n)
	ended := make(chan struct{})
	var left atomic.Int64
	left.Store(int64(n))
	w, err := pawl.NewWorker(e.quiet(), pawl.WorkerConfig{Queues: pawl.Queues(queue), Concurrency: 500, VisibilityTimeout: time.Minute})
	require.NoError(t, err)
	pawl.Handle(w, func(_ context.Context, j *pawl.Job[note]) error {
		runs[j.Args.N].Add(1)
		if left.Add(-1) == 0 {
			close(ended)
		}
		return nil
	})
	stop := e.Start(w)
	<-ended
	require.NoError(t, stop())
	for i := range runs {
		require.EqualValues(t, 1, runs[i].Load(), "note %d", i)
	}
	stats, err := e.Queue(queue).Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, n, stats.Total.Done)
	require.Zero(t, stats.Depth()+stats.Running)
}

// quiet is a client without the recorder, which would keep every event.
func (e *env) quiet() *pawl.Client {
	c, err := pawl.New(e.App, pawl.Config{})
	require.NoError(e.t, err)
	return c
}

// dead has n jobs die, looks at them as an operator does, redrives them and runs
// them.
func dead(t *testing.T, e *env, n int) {
	t.Helper()
	fillWith(t, e, "dead", n)
	w, err := pawl.NewWorker(e.quiet(), pawl.WorkerConfig{Queues: pawl.Queues("dead"), Concurrency: 500, VisibilityTimeout: time.Minute})
	require.NoError(t, err)
	no := errors.New("no")
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return pawl.Permanent(no) })
	stop := e.Start(w)
	q := e.quiet().Queue("dead")
	require.Eventually(t, func() bool {
		s, err := q.Stats(context.Background())
		return err == nil && s.Dead == int64(n)
	}, 30*time.Minute, 50*time.Millisecond)
	require.NoError(t, stop())
	seen := 0
	for _, err := range q.Dead().List(t.Context(), pawl.DeadFilter{}) {
		require.NoError(t, err)
		seen++
	}
	require.Equal(t, n, seen)
	longest(t, e, "n/10 dead: buried and listed")
	report, err := q.Dead().RedriveAll(t.Context(), pawl.DeadFilter{}, pawl.Redrive{})
	require.NoError(t, err)
	require.Equal(t, n, report.Moved)
	serveAll(t, e, "dead", n)
}

// longest logs the longest call of each script since the last time, if it was half
// a millisecond or more.
func longest(t *testing.T, e *env, what string) {
	t.Helper()
	names := map[string]string{}
	for name, body := range pawl.Scripts() {
		sum := sha1.Sum([]byte(body)) //nolint:gosec // see the import
		names[hex.EncodeToString(sum[:])] = name
	}
	calls, err := e.Redis.SlowLogGet(t.Context(), -1).Result()
	require.NoError(t, err)
	require.NoError(t, e.Redis.Do(t.Context(), "slowlog", "reset").Err())
	byScript := map[string][]redis.SlowLog{}
	for _, c := range calls {
		if len(c.Args) > 1 && names[c.Args[1]] != "" {
			byScript[names[c.Args[1]]] = append(byScript[names[c.Args[1]]], c)
		}
	}
	for name, calls := range byScript {
		slices.SortFunc(calls, func(a, b redis.SlowLog) int { return int(b.Duration - a.Duration) })
		above := slices.IndexFunc(calls, func(c redis.SlowLog) bool { return c.Duration <= 5*time.Millisecond })
		if above < 0 {
			above = len(calls)
		}
		t.Logf("measured D3: %s, longest %s: %v, %d above 5 ms", what, name, calls[0].Duration, above)
	}
}
