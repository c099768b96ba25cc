package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// requireRefused enqueues with a short deadline until no attempt was under way at
// its end, and says that the error names the server's word and that nothing was
// enqueued.
func requireRefused(t *testing.T, q *pawl.Queue, deadline time.Duration, word string) {
	t.Helper()
	var err error
	for range 20 {
		if _, err = q.Enqueue(within(t, deadline), note{-1}); !errors.Is(err, pawl.ErrUnconfirmed) {
			break
		}
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, pawl.ErrUnconfirmed)
	require.ErrorContains(t, err, word)
}

// P3.
func TestAServerThatLoadsSlowlyIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--enable-debug-command", "yes", "--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024")
	f := behindProxy(t, s, 0)
	w := f.Worker("q", pawl.WorkerConfig{Concurrency: 4, VisibilityTimeout: time.Second})
	var handled runs
	gate := make(chan struct{})
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		handled.add(job.Args.N)
		<-gate
		return nil
	})
	stop := f.Start(w)
	f.env.put("q", 0, 20)
	f.Log.Wait(t, "started", 4)
	require.NoError(t, f.Direct.Do(t.Context(), "DEBUG", "POPULATE", 2000, "ballast", 1024).Err())
	require.NoError(t, f.Direct.Save(t.Context()).Err())
	s.RestartLoading()
	down := time.Now()
	requireRefused(t, f.Queue("q"), time.Second, "LOADING")
	waited := make(chan error, 1)
	go func() {
		_, err := f.Queue("q").Enqueue(within(t, 30*time.Second), note{20})
		waited <- err
	}()
	redistest.Eventually(t, "Healthy says why", func(context.Context) bool {
		err := w.Healthy()
		return err != nil && strings.Contains(err.Error(), "LOADING")
	})
	close(gate) // the outcomes are kept until it has loaded
	require.NoError(t, f.Direct.ConfigSet(t.Context(), "key-load-delay", "0").Err())
	redistest.Eventually(t, "it has loaded", func(ctx context.Context) bool {
		info, _ := f.Direct.Info(ctx, "persistence").Result()
		return strings.Contains(info, "\nloading:0")
	})
	up := time.Now()
	require.NoError(t, <-waited, "a caller with time enough waits")
	f.Log.Wait(t, "done", 21)
	measured(t, "P3", "all done after a LOADING of "+up.Sub(down).Round(time.Millisecond).String(), time.Since(up))
	redistest.Eventually(t, "Healthy says that it is over", func(context.Context) bool { return w.Healthy() == nil })
	require.NoError(t, stop())
	handled.each(t, 21, 1)
	require.Equal(t, pawl.Counters{Enqueued: 21, Started: 21, Done: 21}, f.Total(t, "q"))
	require.Len(t, f.Log.Of("back"), len(f.Log.Of("outage")))
}

// P4. Each kind of outcome is there while Redis refuses to write, some for longer
// than the leases last.
func TestOutcomesAreKeptWhileRedisCannotWriteToItsDisk(t *testing.T) {
	t.Parallel()
	const visibility = time.Second
	f := behindProxy(t, redistest.Start(t, "--save", "3600 1000000"), 0)
	w := f.Worker("q", pawl.WorkerConfig{Concurrency: 8, VisibilityTimeout: visibility,
		Backoff: pawl.Backoff{Base: time.Millisecond, Jitter: pawl.JitterNone}})
	var handled runs
	gate := make(chan struct{})
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		first := handled.add(job.Args.N) == 1
		if job.Args.N < 8 {
			<-gate
		}
		switch {
		case job.Args.N == 1 && first:
			return errors.New("again")
		case job.Args.N == 2 && first:
			return pawl.Snooze(time.Millisecond)
		case job.Args.N == 3:
			return pawl.Permanent(errors.New("no"))
		case job.Args.N == 4:
			return pawl.Discard(errors.New("not wanted"))
		}
		return nil
	})
	stop := f.Start(w)
	f.put(t, "q", 20)
	f.Log.Wait(t, "started", 8)
	f.breakSaving(t)
	close(gate)
	f.Log.Wait(t, "outage", 1)
	requireRefused(t, f.past.Queue("q"), 300*time.Millisecond, "MISCONF")
	require.ErrorContains(t, w.Healthy(), "MISCONF")
	sent := func() int { return f.Proxy.Calls("settle") + f.Proxy.Calls("retry") + f.Proxy.Calls("bury") }
	before := sent()
	<-time.After(2 * visibility)
	require.Greater(t, sent(), before, "they are sent again")
	require.Empty(t, f.Log.Of("done"))
	require.NoError(t, f.Direct.ConfigSet(t.Context(), "stop-writes-on-bgsave-error", "no").Err())
	up := time.Now()
	f.Log.Wait(t, "done", 18)
	measured(t, "P4", "all done after a MISCONF of twice the visibility timeout", time.Since(up))
	require.NoError(t, stop())
	for n, times := range handled.of {
		want := 1
		if n == 1 || n == 2 {
			want = 2
		}
		require.Equal(t, want, times, "note %d", n)
	}
	require.Empty(t, f.Log.Of("lost"))
	require.Equal(t, pawl.Counters{Enqueued: 20, Started: 22, Done: 18, Failed: 2, Retried: 1, Snoozed: 1, Dead: 1, Discarded: 1},
		f.Total(t, "q"))
}

// E4. The script of another client keeps the server from all else, for so long
// that it answers BUSY.
func TestABusyServerIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--lua-time-limit", "100") // busy-reply-threshold, by the name that Redis 6 knows too
	e := newEnv(t, s.Client(t), nil)
	l := e.load("q", 10*time.Second, e.same)
	l.more(50)
	other := redis.NewClient(&redis.Options{Addr: s.Addr(), ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = other.Close() })
	busy, begun := make(chan error, 1), time.Now()
	go func() { busy <- other.Eval(context.Background(), "while true do redis.call('TIME') end", nil).Err() }()
	e.Log.Wait(t, "outage", 1)
	requireRefused(t, e.Queue("other"), 500*time.Millisecond, "BUSY")
	if more := time.Until(begun.Add(sized(0, 8*time.Second))); more > 0 {
		<-time.After(more)
	}
	require.NoError(t, other.ScriptKill(t.Context()).Err())
	require.ErrorContains(t, <-busy, "killed")
	up := time.Now()
	l.more(1)
	measured(t, "E4", "an enqueue and a job done after a script of "+up.Sub(begun).Round(time.Millisecond).String(), time.Since(up))
	l.well()
	l.once(t, l.end("q"))
}
