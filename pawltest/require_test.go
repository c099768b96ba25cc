package pawltest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

// visit has what does not compare with == or is not the same once decoded.
type visit struct {
	At    time.Time      `json:"at"`
	Tags  []string       `json:"tags,omitempty"`
	Extra map[string]any `json:"extra"`
	note  string
}

func (visit) Kind() string { return "visit" }

func TestArgumentsAreComparedAsAHandlerGetsThem(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		v := visit{At: time.Now(), Tags: []string{}, Extra: map[string]any{"n": int64(1) << 60, "m": nil}, note: "lost"}
		enqueue(t, env, "visits", v)
		pawltest.RequireEnqueued(env, "visits", v)
		v.note = "other"
		pawltest.RequireEnqueued(env, "visits", v)
	})
}

var receipt = pawl.Define[string]("receipt")

func TestKindsByDefineAreFoundByTheirArgs(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		enqueue(t, env, "emails", receipt.Args("no. 1"), pawl.Delay(time.Hour))
		enqueue(t, env, "emails", receipt.Args("no. 2"))
		pawltest.RequireEnqueued(env, "emails", receipt.Args("no. 1"), pawl.Delay(time.Hour))
		w, err := pawl.NewWorker(env.Client, pawl.WorkerConfig{Queues: pawl.Queues("emails")})
		require.NoError(t, err)
		receipt.Handle(w, func(context.Context, *pawl.Job[string]) error { return pawl.Permanent(errors.New("no")) })
		env.DrainReady(w)
		require.Equal(t, "no", pawltest.RequireDead(env, "emails", receipt.Args("no. 2")).Error)
	})
	text := failing(t, func(t testing.TB, env *pawltest.Env) {
		enqueue(t, env, "emails", receipt.Args("no. 1"))
		pawltest.RequireEnqueued(env, "emails", receipt.Args("no. 2"))
	})
	require.Contains(t, text, "no job in queue \"emails\" equals\n\treceipt \"no. 2\"\nthere wait\n\treceipt \"no. 1\"")
}

func TestRequireEnqueuedSaysWhatWaitsInstead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fn   func(t testing.TB, env *pawltest.Env)
		says string
	}{
		"nothing was enqueued": {func(testing.TB, *pawltest.Env) {},
			"no job in queue \"emails\" equals\n\twelcome {\"user_id\":1}\nnothing waits there"},
		"it is in another queue": {func(t testing.TB, env *pawltest.Env) { enqueue(t, env, "texts", welcome{1}) },
			"nothing waits there; the queues that were used are [\"texts\"]"},
		"it has run and others died": {func(t testing.TB, env *pawltest.Env) {
			enqueue(t, env, "emails", welcome{1})
			enqueue(t, env, "emails", welcome{2})
			w := worker(t, env, pawl.WorkerConfig{}, func(_ context.Context, job *pawl.Job[welcome]) error {
				if job.Args.UserID == 1 {
					return nil
				}
				return pawl.Permanent(errors.New("no"))
			})
			env.Drain(w)
		}, "nothing waits there; 0 running, 1 dead"},
		"others wait": {func(t testing.TB, env *pawltest.Env) {
			enqueue(t, env, "emails", welcome{2}, pawl.Delay(time.Hour))
			enqueue(t, env, "emails", other{})
			_, err := env.Client.Queue("emails").EnqueueRaw(context.Background(), "raw", []byte{0xff, 0})
			require.NoError(t, err)
		}, "there wait\n\twelcome {\"user_id\":2}, due in 1h0m0s\n\tother {}\n\traw \"\\xff\\x00\""},
		"one waits for its retry": {func(t testing.TB, env *pawltest.Env) {
			enqueue(t, env, "emails", welcome{2})
			w := worker(t, env, pawl.WorkerConfig{}, func(context.Context, *pawl.Job[welcome]) error {
				return pawl.RetryAfter(time.Minute, errors.New("busy"))
			})
			env.DrainReady(w)
		}, "\twelcome {\"user_id\":2}, due in 1m0s, failed 1 times, last with \"busy\""},
		"two are equal": {func(t testing.TB, env *pawltest.Env) {
			enqueue(t, env, "emails", welcome{1})
			enqueue(t, env, "emails", welcome{1}, pawl.Delay(time.Hour))
		}, "2 jobs in queue \"emails\", not one, equal\n\twelcome {\"user_id\":1}\nthey are\n\twelcome {\"user_id\":1}\n\twelcome {\"user_id\":1}, due in 1h0m0s"},
		"many others wait": {func(t testing.TB, env *pawltest.Env) {
			for i := range 30 {
				enqueue(t, env, "emails", welcome{i + 2})
			}
		}, "\n\tand 10 more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := failing(t, func(t testing.TB, env *pawltest.Env) {
				tc.fn(t, env)
				pawltest.RequireEnqueued(env, "emails", welcome{1})
			})
			require.Contains(t, text, "pawltest: RequireEnqueued: ")
			require.Contains(t, text, tc.says)
		})
	}
}

func TestRequireDeadReturnsThePostMortem(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		w := worker(t, env, pawl.WorkerConfig{MaxAttempts: 2}, func(context.Context, *pawl.Job[welcome]) error {
			return errors.New("no")
		})
		id := enqueue(t, env, "emails", welcome{1})
		enqueue(t, env, "emails", welcome{2})
		env.Drain(w)
		dead := pawltest.RequireDead(env, "emails", welcome{1})
		require.Equal(t, id, dead.ID)
		require.Equal(t, pawl.ReasonExhausted, dead.Reason)
		require.Len(t, dead.Errors, 2)
	})
}

func TestRequireDeadSaysWhatIsThereInstead(t *testing.T) {
	t.Parallel()
	text := failing(t, func(t testing.TB, env *pawltest.Env) {
		enqueue(t, env, "emails", welcome{1})
		pawltest.RequireDead(env, "emails", welcome{1})
	})
	require.Equal(t, "pawltest: RequireDead: 0 dead jobs in queue \"emails\", not one, equal\n\twelcome {\"user_id\":1}\n"+
		"no job is dead there; there wait\n\twelcome {\"user_id\":1}", text)

	text = failing(t, func(t testing.TB, env *pawltest.Env) {
		w := worker(t, env, pawl.WorkerConfig{}, func(context.Context, *pawl.Job[welcome]) error {
			return pawl.Permanent(errors.New("no such user"))
		})
		enqueue(t, env, "emails", welcome{2})
		enqueue(t, env, "emails", welcome{2})
		env.Drain(w)
		pawltest.RequireDead(env, "emails", welcome{2})
	})
	require.Contains(t, text, "2 dead jobs in queue \"emails\", not one, equal\n\twelcome {\"user_id\":2}\n"+
		"dead there are\n\twelcome {\"user_id\":2}, permanent: no such user\n")
}
