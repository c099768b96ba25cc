package pawlsql_test

import (
	"bytes"
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlsql"
)

// Drivers without prepared statements, as behind a pooler, isolation levels, SQL modes and
// output formats: the same jobs, rows and results, to the byte.
func TestSessionsOfOtherSettingsMakeNoDifference(t *testing.T) {
	t.Parallel()
	modes := map[pawlsql.Dialect][]string{
		pawlsql.Postgres: {"default_query_exec_mode=simple_protocol", "default_query_exec_mode=exec", "default_query_exec_mode=describe_exec",
			"default_transaction_isolation=serializable", "default_transaction_isolation=repeatable%20read", "DateStyle=German", "intervalstyle=postgres_verbose&timezone=Pacific/Chatham", "bytea_output=escape", "standard_conforming_strings=off"},
		pawlsql.MySQL: {"interpolateParams=true", "sql_mode=%27ANSI%2CTRADITIONAL%27", "tx_isolation=%27SERIALIZABLE%27",
			"tx_isolation=%27READ-UNCOMMITTED%27", "sql_mode=%27%27", "interpolateParams=true&sql_mode=%27NO_BACKSLASH_ESCAPES%27", "parseTime=true&loc=Local", "clientFoundRows=true", "sql_auto_is_null=1&autocommit=1",
			"sql_mode=%27ORACLE%27", "innodb_snapshot_isolation=1"},
	}
	for dialect, params := range modes {
		for _, p := range params {
			t.Run(dialect.String()+" "+p, func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				base := withEffects(t, newDatabase(t, dialect))
				o, in := newOutbox(t, base, pawlsql.OutboxConfig{}), newInbox(t, base, pawlsql.InboxConfig{})
				d := base.again(t, p)
				c := realRedis(t)
				payload := append(bytes.Repeat([]byte{0, '\'', '\\', '?', '$', '1', 0xff, '"', '\n'}, 28000), "😀"...)
				kind := "k'\\?😀$1"
				put(t, d, o, "q", pawl.Item{Args: pawl.Raw{Name: kind, Payload: payload}, Options: []pawl.Option{pawl.Header{Key: "h", Value: "\x00'\\?😀"}, pawl.Delay(time.Hour),
					pawl.Idempotency{Key: "i\x00'\\?😀"}}},
					pawl.Item{Args: pawl.Raw{Name: "empty"}})
				relayed(t, d, o, c)
				r := newRelay(t, d, o, c, pawlsql.RelayConfig{})
				s, err := r.Stats(ctx)
				require.NoError(t, err)
				require.Zero(t, s.Failed)
				n := 0
				for _, state := range []pawl.State{pawl.StateReady, pawl.StateDelayed} {
					for job, err := range c.Queue("q").List(ctx, state, pawl.Filter{}) {
						require.NoError(t, err)
						n++
						if job.Kind == kind {
							require.Equal(t, payload, job.Payload)
							require.Equal(t, "\x00'\\?😀", job.Headers["h"])
							require.WithinDuration(t, time.Now().Add(time.Hour), job.DueAt, time.Minute)
						}
					}
				}
				require.Equal(t, 2, n)
				d.exec(t, "INSERT INTO pawl_outbox (job_key, queue, kind, payload, options, created_at) VALUES ('x', 'q', 'k', 'p', 'nonsense', CURRENT_TIMESTAMP)")
				relayed(t, d, o, c)
				s, err = r.Stats(ctx)
				require.NoError(t, err)
				require.EqualValues(t, 1, s.Failed)
				again, err := r.Retry(ctx)
				require.NoError(t, err)
				require.EqualValues(t, 1, again)

				key := pawlsql.Key("k'\\?😀 ")
				in2, err := pawlsql.NewInbox(pawlsql.InboxConfig{Dialect: dialect, Consumer: "c'\\?😀"})
				require.NoError(t, err)
				for i := range 3 {
					v, done, err := pawlsql.DoResult(ctx, in2, d.DB, key, func(ctx context.Context, tx *sql.Tx) (string, error) {
						return "r\x00'\\?😀", effect(ctx, tx)
					})
					require.NoError(t, err)
					require.Equal(t, i == 0, done)
					require.Equal(t, "r\x00'\\?😀", v)
				}
				require.EqualValues(t, 1, d.effects(t))
				e, err := in2.Get(ctx, d.DB, key)
				require.NoError(t, err)
				require.WithinDuration(t, time.Now(), e.ProcessedAt, time.Minute)
				_, err = in.Prune(ctx, d.DB, 0)
				require.NoError(t, err)
			})
		}
	}
}
