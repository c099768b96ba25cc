// Package pawltest tests code that enqueues and code that handles, against the
// real engine on an in-memory Redis, under a fake clock. Nothing needs to be
// installed and hours of backoff pass in milliseconds.
//
//	func TestSignUpSendsAWelcome(t *testing.T) {
//		t.Parallel()
//		pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
//			app, err := NewApp(env.Client)
//			require.NoError(t, err)
//			require.NoError(t, app.SignUp(t.Context(), "ada@example.com"))
//			pawltest.RequireEnqueued(env, "emails", Welcome{"ada@example.com"}, pawl.Delay(time.Hour))
//
//			report := env.Drain(app.Worker) // an hour passes
//			require.Len(t, report.Runs, 1)
//			require.Empty(t, report.Dead)
//		})
//	}
//
// More of it is in docs/testing.md, and in the example_*_test.go of this package,
// which are compiled and run.
//
// To call one handler, no package is needed: a literal will do. Its methods
// do nothing.
//
//	err := handler(ctx, &pawl.Job[Welcome]{Args: Welcome{Email: "ada@example.com"}})
//
// # Time
//
// Run is a bubble of testing/synctest. Time in it stands still while anything
// can still be done, then jumps to the next moment that something waits for. A
// Drain jumps as far as the jobs need, a DrainReady not at all, and Advance as
// far as it says.
//
// # Workers
//
// Drain and DrainReady run a copy of the worker until it has nothing to do, and
// stop it. Between two of them nothing runs, so what a test enqueues there waits
// to be looked at. The worker may be drained as often as needed, and started
// afterwards. A worker that was started with Start runs all the time, and a
// drain of it only waits.
//
// An Env and its functions belong to the goroutine of the test that made it.
// Only Crash may be called from a handler. There, and in what a handler calls, a
// test fails by t.Error and assert: t.Fatal and require end the goroutine, which
// for pawl is a failed attempt.
package pawltest
