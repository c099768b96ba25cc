package pawlsql_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlsql"
	"github.com/pawlq/pawl/pawltest"
)

// The code of docs/testing.md.

// region testing
func TestAnOrderIsChargedOnce(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		db, err := sql.Open("sqlite3", ":memory:")
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		db.SetMaxOpenConns(1) // each connection would have a memory of its own
		outbox, err := pawlsql.NewOutbox(pawlsql.OutboxConfig{Dialect: pawlsql.SQLite})
		require.NoError(t, err)
		inbox, err := pawlsql.NewInbox(pawlsql.InboxConfig{Dialect: pawlsql.SQLite})
		require.NoError(t, err)
		_, err = db.Exec(outbox.Schema() + inbox.Schema() + "CREATE TABLE charges (n INTEGER)")
		require.NoError(t, err)

		relay, err := outbox.NewRelay(db, env.Client, pawlsql.RelayConfig{})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- relay.Run(ctx) }()

		tx, err := db.Begin()
		require.NoError(t, err)
		_, err = outbox.Enqueue(ctx, pawlsql.Std(tx), "payments", Charge{Order: 7}, pawl.Delay(time.Hour))
		require.NoError(t, err)
		env.Advance(time.Minute)
		pawltest.RequireNone[Charge](env, "payments") // it is not committed
		require.NoError(t, tx.Commit())
		env.Advance(time.Minute) // the relay polls
		require.Len(t, pawltest.Jobs[Charge](env, "payments"), 1)
		stop()
		require.NoError(t, <-stopped)

		crash := func() {}
		start := func() *pawl.Worker {
			w, err := pawl.NewWorker(env.Client, pawl.WorkerConfig{Queues: pawl.Queues("payments")})
			require.NoError(t, err)
			pawl.Handle(w, func(ctx context.Context, job *pawl.Job[Charge]) error {
				_, err := inbox.Do(ctx, db, job, func(ctx context.Context, tx *sql.Tx) error {
					_, err := tx.ExecContext(ctx, "INSERT INTO charges VALUES (1)")
					return err
				})
				crash()
				return err
			})
			return w
		}
		first := start()
		crash = func() { env.Crash(first) } // the charge is committed, and Redis does not know
		require.Empty(t, env.Drain(first).Runs)
		crash = func() {}
		require.Len(t, env.Drain(start()).Runs, 1)

		var charges int
		require.NoError(t, db.QueryRow("SELECT count(*) FROM charges").Scan(&charges))
		require.Equal(t, 1, charges)
	})
}

// endregion
