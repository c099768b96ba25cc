package pawltest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

func TestAJobThatIsNeverDoneWithFailsTheTest(t *testing.T) {
	t.Parallel()
	require.Equal(t, 1000, pawltest.MaxRunsOfAJob)
	const limit = 50 // for the sake of time
	for name, after := range map[string]time.Duration{"comes back at once": 0, "comes back later": time.Minute} {
		for mode, start := range map[string]bool{"drained": false, "started": true} {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				runs := 0
				text := failing(t, func(t testing.TB, env *pawltest.Env) {
					env.SetLimit(limit)
					w := worker(t, env, pawl.WorkerConfig{}, func(context.Context, *pawl.Job[welcome]) error {
						runs++
						return pawl.Snooze(after)
					})
					if start {
						env.Start(w)
					}
					enqueue(t, env, "emails", welcome{1}, pawl.Delay(time.Minute))
					env.Drain(w)
				})
				require.Contains(t, text, `of kind "welcome" in queue "emails" has run 51 times`)
				require.Equal(t, limit+1, runs)
			})
		}
	}
}

func TestMisuseSaysWhatToDo(t *testing.T) {
	t.Parallel()
	mine := func(t testing.TB, env *pawltest.Env) *pawl.Worker { return worker(t, env, pawl.WorkerConfig{}, done) }
	for name, tc := range map[string]struct {
		fn   func(t testing.TB, env *pawltest.Env)
		says string
	}{
		"a nil worker is drained": {func(t testing.TB, env *pawltest.Env) { env.Drain(nil) }, "Drain: the worker is nil"},
		"a worker of another client is drained": {func(t testing.TB, env *pawltest.Env) {
			c, err := pawl.New(env.Redis, pawl.Config{})
			require.NoError(t, err)
			w, err := pawl.NewWorker(c, pawl.WorkerConfig{Queues: pawl.Queues("emails")})
			require.NoError(t, err)
			env.Drain(w)
		}, "Drain: the worker belongs to another client; make it with pawl.NewWorker(env.Client, …)"},
		"a worker of another Env is started": {func(t testing.TB, env *pawltest.Env) {
			env.Start(mine(t, pawltest.New(t, pawl.Config{})))
		}, "Start: the worker belongs to another client"},
		"a worker is started twice": {func(t testing.TB, env *pawltest.Env) {
			w := mine(t, env)
			env.Start(w)
			env.Start(w)
		}, "Start: the worker was started before"},
		"a worker that runs by itself is drained": {func(t testing.TB, env *pawltest.Env) {
			ctx, cancel := context.WithCancel(context.Background())
			w := mine(t, env)
			ended := make(chan error)
			go func() { ended <- w.Run(ctx) }()
			env.Advance(0)
			cancel()
			require.NoError(t, <-ended)
			env.DrainReady(w)
		}, "DrainReady: the worker was run by its own Run; leave that to env.Start"},
		"a worker that does not run crashes": {func(t testing.TB, env *pawltest.Env) {
			w := mine(t, env)
			env.Drain(w)
			env.Crash(w)
		}, "Crash: the worker does not run; env.Start it first"},
		"a crashed worker is drained": {func(t testing.TB, env *pawltest.Env) {
			w := mine(t, env)
			env.Start(w)
			env.Crash(w)
			env.Drain(w)
		}, "Drain: the worker has crashed; make a new one"},
		"a crashed worker crashes": {func(t testing.TB, env *pawltest.Env) {
			w := mine(t, env)
			env.Start(w)
			env.Crash(w)
			env.Crash(w)
		}, "Crash: the worker does not run"},
		"a worker without handlers is drained": {func(t testing.TB, env *pawltest.Env) {
			w, err := pawl.NewWorker(env.Client, pawl.WorkerConfig{Queues: pawl.Queues("emails")})
			require.NoError(t, err)
			env.Drain(w)
		}, "Drain: the worker's Run: pawl: run: pawl: invalid: the worker has no handler"},
		"a worker without handlers is started": {func(t testing.TB, env *pawltest.Env) {
			w, err := pawl.NewWorker(env.Client, pawl.WorkerConfig{Queues: pawl.Queues("emails")})
			require.NoError(t, err)
			env.Start(w)
		}, "Start: the worker's Run: pawl: run: pawl: invalid: the worker has no handler"},
		"a drain calls a drain": {func(t testing.TB, env *pawltest.Env) {
			var w *pawl.Worker
			w = worker(t, env, pawl.WorkerConfig{MaxAttempts: 1}, func(context.Context, *pawl.Job[welcome]) error {
				env.Drain(w)
				return nil
			})
			enqueue(t, env, "emails", welcome{1})
			env.Drain(w)
		}, "Drain: a drain of the worker is under way"},
		"time is to go back":  {func(t testing.TB, env *pawltest.Env) { env.Advance(-time.Second) }, "Advance(-1s): time does not go back"},
		"a queue has no name": {func(t testing.TB, env *pawltest.Env) { pawltest.RequireNone[welcome](env, "a b") }, `invalid queue name "a b"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, failing(t, tc.fn), tc.says)
		})
	}
}

func TestAdvanceNeedsABubble(t *testing.T) {
	t.Parallel()
	text := failures(t, func(t testing.TB) { pawltest.New(t, pawl.Config{}).Advance(time.Second) })
	require.Equal(t, "pawltest: Advance(1s): the clock is the real one; use pawltest.Run, or New inside synctest.Test", text)
}

func TestNewRefusesABadConfig(t *testing.T) {
	t.Parallel()
	text := failures(t, func(t testing.TB) { pawltest.New(t, pawl.Config{Namespace: "a b"}) })
	require.Contains(t, text, "pawltest: New: pawl: invalid: Config.Namespace")
}
