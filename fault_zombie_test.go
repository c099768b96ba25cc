package pawl_test

import (
	"context"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// frozen is a job whose worker was stopped in the handler for so long that its
// lease is over.
func frozen(t *testing.T) (*env, *redistest.Proxy, *process, pawl.ID) {
	t.Helper()
	const visibility = 500 * time.Millisecond
	server := redistest.Start(t)
	e := newEnv(t, server.Client(t), nil)
	job, err := e.Queue("q").Enqueue(t.Context(), note{})
	require.NoError(t, err)
	proxy := behindProxy(t, server, 0).Proxy
	p := startChild(t, "hang", proxy.Addr(), visibility)
	require.True(t, p.await("started"))
	require.NoError(t, p.Process.Signal(syscall.SIGSTOP))
	<-time.After(2 * visibility)
	return e, proxy, p, job.ID
}

// layout is every key of a queue but the lanes, the tokens, which are hints, and the
// beats of the workers, which come with time.
func layout(t *testing.T, e *env, queue string) map[string]string {
	t.Helper()
	keys := redistest.Dump(t.Context(), e.Redis, "pawl:{"+queue+"}:")
	for key := range keys {
		if strings.Contains(key, ":lane:") || strings.HasSuffix(key, ":wake") || strings.Contains(key, ":workers") {
			delete(keys, key)
		}
		if strings.HasSuffix(key, ":meta") { // when the queue was last looked over
			keys[key] = regexp.MustCompile(`"mend" = "[^"]*"\n?`).ReplaceAllString(keys[key], "")
		}
	}
	return keys
}

// W2, W3, case 3. A worker that was frozen in its handler comes back.
// TestEveryCallOfAZombieIsLost has the other calls.
func TestAZombieChangesNothing(t *testing.T) {
	t.Parallel()
	t.Run("when another has finished its job", func(t *testing.T) {
		t.Parallel()
		e, proxy, p, _ := frozen(t)
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		stop := e.Start(w)
		e.Log.Wait(t, "done", 1)
		require.NoError(t, stop())
		before := layout(t, e, "q")
		answered := proxy.On("settle", 1, redistest.Delay(0))
		require.NoError(t, p.Process.Signal(syscall.SIGCONT))
		require.True(t, p.await("cause "+pawl.ErrLeaseLost.Error()))
		came(t, "the answer of its call", answered)
		require.Equal(t, before, layout(t, e, "q"))
	})
	t.Run("but that its crash is given back while another runs it", func(t *testing.T) {
		t.Parallel()
		e, _, p, id := frozen(t)
		q := e.Queue("q")
		w := e.Worker("q", pawl.WorkerConfig{})
		alive := make(chan struct{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error {
			<-alive
			return nil
		})
		stop := e.Start(w)
		require.Equal(t, 1, e.Log.Wait(t, "started", 1)[0].Job.Crashes)
		require.NoError(t, p.Process.Signal(syscall.SIGCONT))
		require.True(t, p.await("cause "+pawl.ErrLeaseLost.Error()))
		redistest.Eventually(t, "its crash is given back", func(ctx context.Context) bool {
			info, err := q.Get(ctx, id)
			return err == nil && info.Crashes == 0 && info.State == pawl.StateRunning
		})
		close(alive)
		e.Log.Wait(t, "done", 1)
		require.NoError(t, stop())
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Total.Done)
	})
	t.Run("and one whose job nobody took is still its holder", func(t *testing.T) {
		t.Parallel()
		e, _, p, _ := frozen(t)
		require.NoError(t, p.Process.Signal(syscall.SIGCONT))
		require.True(t, p.await("cause "+pawl.ErrLeaseLost.Error()))
		require.True(t, p.await("done"))
		s, err := e.Queue("q").Stats(t.Context())
		require.NoError(t, err)
		// It may have taken the lease that ran out itself, for the same run.
		require.EqualValues(t, 1, s.Total.Done)
		require.Zero(t, s.Total.Failed+s.Total.Retried+s.Total.Released)
	})
}
