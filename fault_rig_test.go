package pawl_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// faulty is an env whose client reaches its server through a proxy. At the end
// the proxy heals, and Check finds nothing.
type faulty struct {
	*env
	Server *redistest.Server
	Proxy  *redistest.Proxy
	Direct *redis.Client // past the proxy
	past   *pawl.Client
}

// behindProxy puts a proxy before a server, which several may share. The read
// timeout is go-redis's own unless it is given.
func behindProxy(t *testing.T, s *redistest.Server, readTimeout time.Duration) *faulty {
	t.Helper()
	f := &faulty{Server: s, Proxy: redistest.NewProxy(t, s.Addr()), Direct: s.Client(t)}
	for name, body := range pawl.Scripts() {
		sha, err := f.Direct.ScriptLoad(t.Context(), body).Result()
		require.NoError(t, err)
		f.Proxy.Script(name, sha)
	}
	// The user's client keeps its own MaxRetries: pawl's calls must not heed it.
	f.env = newEnvAs(t, f.Direct, logIn(t, s, f.Proxy.Addr(), readTimeout), nil)
	t.Cleanup(func() {
		f.Proxy.Clear()
		f.Proxy.Blackhole(false)
	})
	var err error
	f.past, err = pawl.New(f.Direct, pawl.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { f.Client = f.past }) // Check needs no short read timeout
	return f
}

// Total is the queue's counters, read past the proxy.
func (f *faulty) Total(t *testing.T, queue string) pawl.Counters {
	t.Helper()
	s, err := f.past.Queue(queue).Stats(context.Background())
	require.NoError(t, err)
	return s.Total
}

var queues atomic.Int64

// freshQueue names a queue that no other test of a shared server uses.
func freshQueue() string { return fmt.Sprintf("q%d", queues.Add(1)) }

// put enqueues notes 0 to n-1 past the proxy.
func (f *faulty) put(t *testing.T, queue string, n int, opts ...pawl.Option) []pawl.Enqueued {
	t.Helper()
	notes := make([]note, n)
	for i := range notes {
		notes[i].N = i
	}
	f.Queue(queue)
	jobs, err := f.past.Queue(queue).EnqueueMany(context.Background(), pawl.Items(notes, opts...))
	require.NoError(t, err)
	return jobs
}

// runs counts how often each note was handled.
type runs struct {
	mu sync.Mutex
	of map[int]int
}

func (r *runs) add(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[int]int{}
	}
	r.of[n]++
	return r.of[n]
}

// each fails the test unless every one of jobs notes was handled so often.
func (r *runs) each(t *testing.T, jobs, times int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Len(t, r.of, jobs)
	for n, got := range r.of {
		require.Equal(t, times, got, "note %d", n)
	}
}

// within is a context that ends after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// measured logs a figure of docs/failure-modes.md in one form: the row or case of
// a fault, what was waited for, and for how long.
func measured(t *testing.T, row, what string, took time.Duration) {
	t.Helper()
	t.Logf("measured %s: %s after %v", row, what, took.Round(time.Millisecond))
}

// came waits until ch is closed, and fails the test after a minute.
func came(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(time.Minute):
		require.FailNow(t, "it did not come", "%s", what)
	}
}
