package pawltest_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// welcome is the job of most tests.
type welcome struct {
	UserID int `json:"user_id"`
}

func (welcome) Kind() string { return "welcome" }

// other is a job of another kind.
type other struct{}

func (other) Kind() string { return "other" }

func enqueue(t testing.TB, env *pawltest.Env, queue string, args pawl.Args, opts ...pawl.Option) pawl.ID {
	t.Helper()
	job, err := env.Client.Queue(queue).Enqueue(context.Background(), args, opts...)
	require.NoError(t, err)
	return job.ID
}

// worker serves the queue "emails" with one handler of welcome.
func worker(t testing.TB, env *pawltest.Env, cfg pawl.WorkerConfig, fn func(context.Context, *pawl.Job[welcome]) error) *pawl.Worker {
	t.Helper()
	if cfg.Queues == nil {
		cfg.Queues = pawl.Queues("emails")
	}
	w, err := pawl.NewWorker(env.Client, cfg)
	require.NoError(t, err)
	pawl.Handle(w, fn)
	return w
}

func done(context.Context, *pawl.Job[welcome]) error { return nil }

// fakeTB is a test that writes down how it fails.
type fakeTB struct {
	testing.TB
	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func (f *fakeTB) Helper()           {}
func (f *fakeTB) Cleanup(fn func()) { f.cleanups = append(f.cleanups, fn) }

func (f *fakeTB) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failures = append(f.failures, fmt.Sprintf(format, args...))
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// failures runs fn as a test of its own and returns what it failed with.
func failures(t testing.TB, fn func(t testing.TB)) string {
	f := &fakeTB{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		fn(f)
	}()
	<-ended
	for i := len(f.cleanups) - 1; i >= 0; i-- {
		f.cleanups[i]()
	}
	return strings.Join(f.failures, "\n")
}

// failing is failures of a test in a bubble.
func failing(t *testing.T, fn func(t testing.TB, env *pawltest.Env)) (text string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		text = failures(t, func(t testing.TB) { fn(t, pawltest.New(t, pawl.Config{})) })
	})
	return text
}
