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

// renamed was once called welcome, and is used by pointer.
type renamed struct{ UserID int }

func (*renamed) Kind() string          { return "greeting" }
func (*renamed) KindAliases() []string { return []string{"salute"} }

func TestJobsAreTheWaitingOnesOldestFirst(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		require.Empty(t, pawltest.Jobs[welcome](env, "emails"))
		var ids []pawl.ID
		for i, opts := range [][]pawl.Option{nil, {pawl.Delay(time.Hour)}, {pawl.Priority(9)}, nil, {pawl.Delay(time.Second)}} {
			ids = append(ids, enqueue(t, env, "emails", welcome{i}, opts...))
			enqueue(t, env, "emails", other{})
		}
		enqueue(t, env, "texts", welcome{9})
		jobs := pawltest.Jobs[welcome](env, "emails")
		require.Len(t, jobs, 5)
		for i, job := range jobs {
			require.Equal(t, i, job.Args.UserID)
			require.Equal(t, ids[i], job.ID)
			require.Equal(t, "emails", job.Queue)
			require.Same(t, env.Client, job.Client())
		}
		require.Len(t, pawltest.Jobs[other](env, "emails"), 5)
		all := pawltest.Jobs[pawl.Args](env, "emails")
		require.Len(t, all, 10)
		require.Nil(t, all[0].Args)
		require.Equal(t, "welcome", all[0].Kind)
	})
}

func TestJobsThatRunOrAreDeadDoNotWait(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		w := worker(t, env, pawl.WorkerConfig{MaxAttempts: 2, Concurrency: 1}, func(context.Context, *pawl.Job[welcome]) error {
			pawltest.RequireNone[welcome](env, "emails")
			return errors.New("no")
		})
		enqueue(t, env, "emails", welcome{1})
		env.DrainReady(w)
		jobs := pawltest.Jobs[welcome](env, "emails")
		require.Len(t, jobs, 1, "it waits for its retry")
		require.Equal(t, 1, jobs[0].Attempt)
		require.Equal(t, "no", jobs[0].LastError)
		env.Drain(w)
		pawltest.RequireNone[pawl.Args](env, "emails")
	})
}

func TestAliasesAndPointersAreFound(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		enqueue(t, env, "emails", &renamed{1})
		_, err := env.Client.Queue("emails").EnqueueRaw(t.Context(), "salute", []byte(`{"UserID": 2, "old": true}`))
		require.NoError(t, err)
		require.Len(t, pawltest.Jobs[*renamed](env, "emails"), 2)
		pawltest.RequireEnqueued(env, "emails", &renamed{1})
		pawltest.RequireEnqueued(env, "emails", &renamed{2})
	})
}

func TestJobsThatDoNotDecodeFailTheTest(t *testing.T) {
	t.Parallel()
	text := failing(t, func(t testing.TB, env *pawltest.Env) {
		_, err := env.Client.Queue("emails").EnqueueRaw(context.Background(), "welcome", []byte(`[1]`))
		require.NoError(t, err)
		pawltest.Jobs[welcome](env, "emails")
	})
	require.Contains(t, text, "pawltest: Jobs: welcome [1] does not decode as pawltest_test.welcome: json")
}

func TestRequireNoneSaysWhatWaits(t *testing.T) {
	t.Parallel()
	text := failing(t, func(t testing.TB, env *pawltest.Env) {
		enqueue(t, env, "emails", other{})
		pawltest.RequireNone[welcome](env, "emails")
		pawltest.RequireNone[pawl.Args](env, "texts")
		enqueue(t, env, "emails", welcome{1})
		enqueue(t, env, "emails", welcome{2}, pawl.Delay(90*time.Minute))
		pawltest.RequireNone[welcome](env, "emails")
	})
	require.Equal(t, "pawltest: RequireNone: in queue \"emails\" there wait\n"+
		"\twelcome {\"user_id\":1}\n\twelcome {\"user_id\":2}, due in 1h30m0s", text)
}

func TestALiteralIsEnoughToCallAHandler(t *testing.T) {
	t.Parallel()
	greet := func(_ context.Context, job *pawl.Job[welcome]) error {
		job.Logger().Info("greeting", "last", job.LastAttempt())
		if job.IdempotencyKey() != "" || job.Client() != nil {
			return errors.New("a literal has no key and no client")
		}
		if job.Args.UserID == 0 {
			return pawl.Permanent(errors.New("no user"))
		}
		return nil
	}
	require.NoError(t, greet(t.Context(), &pawl.Job[welcome]{Args: welcome{UserID: 42}}))
	require.True(t, pawl.IsPermanent(greet(t.Context(), &pawl.Job[welcome]{})))
}
