package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// rig is a Redis of one test, a client of it, and the command line.
type rig struct {
	t      *testing.T
	addr   string
	rdb    *redis.Client
	client *pawl.Client
}

// onBoth runs a test on a redis-server and on miniredis.
func onBoth(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, newRig(t))
	})
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		test(t, rigAt(t, miniredis.RunT(t).Addr()))
	})
}

// newRig is a rig on a redis-server of its own.
func newRig(t *testing.T, args ...string) *rig {
	t.Helper()
	return rigAt(t, redistest.Start(t, args...).Addr())
}

func rigAt(t *testing.T, addr string) *rig {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = rdb.Close() })
	c, err := pawl.New(rdb, pawl.Config{})
	require.NoError(t, err)
	return &rig{t: t, addr: addr, rdb: rdb, client: c}
}

// result is what a command has said and ended with.
type result struct {
	code     int
	out, err string
}

// terminal has a call believe that it talks to people.
func terminal(w *world) {
	w.inTerminal, w.outTerminal, w.errTerminal, w.width = true, true, true, 0
}

// typing gives a call an input.
func typing(text string) func(*world) { return func(w *world) { w.in = strings.NewReader(text) } }

// env adds variables of the environment.
func env(pairs ...string) func(*world) {
	return func(w *world) {
		before := w.env
		w.env = func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return before(name)
		}
	}
}

// pawl runs a command against the rig's Redis.
func (r *rig) pawl(args []string, with ...func(*world)) result {
	return call(r.t.Context(), args, append([]func(*world){env("REDIS_URL", "redis://"+r.addr)}, with...)...)
}

// call runs a command, in a world without a terminal and an environment.
func call(ctx context.Context, args []string, with ...func(*world)) result {
	var out, errs lockedBuffer
	w := world{in: strings.NewReader(""), out: &out, err: &errs, env: func(string) string { return "" }, now: time.Now,
		ticks: time.Millisecond, lines: time.Hour}
	for _, f := range with {
		f(&w)
	}
	code := run(ctx, args, w)
	return result{code, out.String(), errs.String()}
}

// words are the arguments of a command that has no spaces in them.
func words(line string) []string { return strings.Fields(line) }

// lockedBuffer may be read while a command writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var _ io.Writer = (*lockedBuffer)(nil)

// requireHarmless fails if a terminal would obey something of a text.
func requireHarmless(t *testing.T, text, what string) {
	t.Helper()
	require.True(t, utf8.ValidString(text), "%s: %q", what, text)
	for i, r := range text {
		if r != '\n' && !shown(r) {
			t.Fatalf("%s: %q has %q at %d", what, text, r, i)
		}
	}
}

// enqueue adds a job, and returns its id.
func (r *rig) enqueue(queue, kind, payload string, opts ...pawl.Option) pawl.ID {
	r.t.Helper()
	got, err := r.client.Queue(queue).EnqueueRaw(r.t.Context(), kind, []byte(payload), opts...)
	require.NoError(r.t, err)
	return got.ID
}

// bury has a worker fail jobs of a queue, one after the other, and stop. It returns their
// ids in the order of their deaths.
func (r *rig) bury(queue, kind string, errs ...string) []pawl.ID {
	r.t.Helper()
	define := pawl.Define[map[string]any](kind)
	w, err := pawl.NewWorker(r.client, pawl.WorkerConfig{Queues: pawl.Queues(queue), Name: "gravedigger", Concurrency: 1})
	require.NoError(r.t, err)
	at := 0
	define.Handle(w, func(context.Context, *pawl.Job[map[string]any]) error {
		at++
		return pawl.Permanent(fmt.Errorf("%s", errs[at-1]))
	})
	var ids []pawl.ID
	for i := range errs {
		ids = append(ids, r.enqueue(queue, kind, fmt.Sprintf(`{"order":%d}`, i)))
	}
	stop := r.work(w)
	r.await(queue, func(st pawl.Stats) bool { return st.Dead >= int64(len(errs)) })
	stop()
	return ids
}

// work runs a worker until stop, or the end of the test.
func (r *rig) work(w *pawl.Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		var drain *pawl.DrainError // of a handler that does not end by itself
		if err := <-ended; !errors.As(err, &drain) {
			require.NoError(r.t, err)
		}
	})
	r.t.Cleanup(stop)
	return stop
}

// await waits until the counts of a queue are as they should be.
func (r *rig) await(queue string, as func(pawl.Stats) bool) {
	r.t.Helper()
	redistest.Eventually(r.t, "the stats of "+queue, func(ctx context.Context) bool {
		st, err := r.client.Queue(queue).Stats(ctx)
		return err == nil && as(st)
	})
}

// eventually waits for what gives no signal.
func (r *rig) eventually(what string, cond func() bool) {
	r.t.Helper()
	redistest.Eventually(r.t, what, func(context.Context) bool { return cond() })
}
