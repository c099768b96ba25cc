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

// The tests of this file show how a service that uses pawl is tested. An Example
// could not: it has no *testing.T.

// Welcome greets a new user, an hour after the sign-up.
type Welcome struct {
	Email string `json:"email"`
}

// Kind names the job.
func (Welcome) Kind() string { return "welcome" }

// App is a service that takes sign-ups and sends mail.
type App struct {
	emails *pawl.Queue
	Worker *pawl.Worker
	Send   func(ctx context.Context, to string) error
}

// NewApp makes the service. All it needs of pawl is the client.
func NewApp(client *pawl.Client) (*App, error) {
	app := &App{emails: client.Queue("emails")}
	w, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("emails"), MaxAttempts: 5})
	if err != nil {
		return nil, err
	}
	app.Worker = w
	pawl.Handle(w, app.SendWelcome)
	return app, nil
}

// SignUp takes a user.
func (a *App) SignUp(ctx context.Context, email string) error {
	_, err := a.emails.Enqueue(ctx, Welcome{Email: email}, pawl.Delay(time.Hour), pawl.Unique{})
	return err
}

// SendWelcome handles a Welcome.
func (a *App) SendWelcome(ctx context.Context, job *pawl.Job[Welcome]) error {
	if job.Args.Email == "" {
		return pawl.Permanent(errors.New("no address"))
	}
	return a.Send(ctx, job.Args.Email)
}

// region usage-enqueue

func TestUsageSignUpSendsAWelcome(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		app, err := NewApp(env.Client)
		require.NoError(t, err)
		var sent []string
		app.Send = func(_ context.Context, to string) error { sent = append(sent, to); return nil }

		require.NoError(t, app.SignUp(t.Context(), "ada@example.com"))
		require.NoError(t, app.SignUp(t.Context(), "ada@example.com"), "twice: one job")
		pawltest.RequireEnqueued(env, "emails", Welcome{"ada@example.com"}, pawl.Delay(time.Hour))

		report := env.Drain(app.Worker) // an hour passes
		require.Len(t, report.Runs, 1)
		require.Empty(t, report.Dead)
		require.Equal(t, []string{"ada@example.com"}, sent)
	})
}

// endregion

// An outage: hours of backoff, and the post-mortem at its end.
func TestUsageAnOutageEndsInTheDeadLetterQueue(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		app, err := NewApp(env.Client)
		require.NoError(t, err)
		down := true
		app.Send = func(context.Context, string) error {
			if down {
				return errors.New("mail server is down")
			}
			return nil
		}
		require.NoError(t, app.SignUp(t.Context(), "ada@example.com"))
		require.Len(t, env.Drain(app.Worker).Runs, 5)
		dead := pawltest.RequireDead(env, "emails", Welcome{"ada@example.com"})
		require.Equal(t, "mail server is down", dead.Error)

		down = false
		_, err = env.Client.Queue("emails").Dead().Redrive(t.Context(), dead.ID)
		require.NoError(t, err)
		require.NoError(t, env.DrainReady(app.Worker).Runs[0].Err)
	})
}

// A worker that dies in the middle of a job.
func TestUsageACrashSendsTheMailAgain(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		first, err := NewApp(env.Client)
		require.NoError(t, err)
		sent := 0
		first.Send = func(context.Context, string) error {
			sent++
			env.Crash(first.Worker) // after the effect, before the acknowledgement
			return nil
		}
		require.NoError(t, first.SignUp(t.Context(), "ada@example.com"))
		env.Drain(first.Worker)

		second, err := NewApp(env.Client)
		require.NoError(t, err)
		second.Send = func(context.Context, string) error { sent++; return nil }
		report := env.Drain(second.Worker)
		require.Equal(t, 1, report.Runs[0].Job.Crashes)
		require.Equal(t, 2, sent, "delivery is at least once: the key of the mail must be job.IdempotencyKey()")
	})
}

// region usage-handler

func TestUsageOneHandler(t *testing.T) {
	t.Parallel()
	app := &App{Send: func(context.Context, string) error { return nil }}
	require.NoError(t, app.SendWelcome(t.Context(), &pawl.Job[Welcome]{Args: Welcome{Email: "ada@example.com"}}))
	require.True(t, pawl.IsPermanent(app.SendWelcome(t.Context(), &pawl.Job[Welcome]{})))
}

// endregion
