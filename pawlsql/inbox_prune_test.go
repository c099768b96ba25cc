package pawlsql_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlsql"
)

// grow makes the rows of the inbox so many days older.
func (d *database) grow(t testing.TB, days float64, where string) {
	t.Helper()
	older := map[pawlsql.Dialect]string{
		pawlsql.Postgres: "%[1]s = %[1]s - %[2]f * interval '1 second'",
		pawlsql.MySQL:    "%[1]s = %[1]s - INTERVAL %[2]f SECOND",
		pawlsql.SQLite:   "%[1]s = CAST(%[1]s - %[2]f * 1000 AS INTEGER)",
	}[d.Dialect]
	seconds := days * 24 * 3600
	d.exec(t, "UPDATE pawl_inbox SET "+fmt.Sprintf(older, "processed_at", seconds)+", "+fmt.Sprintf(older, "seen_at", seconds)+" WHERE "+where)
}

func TestInboxPrunesWhatNoJobCanNeed(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	onEach(t, func(t *testing.T, d *database) {
		ctx, in := t.Context(), newInbox(t, d, pawlsql.InboxConfig{Consumer: "c"})
		tx := d.begin(t)
		for n := range 1200 {
			fresh, err := in.Claim(ctx, pawlsql.Std(tx), pawlsql.Key(pawl.Key(n)))
			require.NoError(t, err)
			require.True(t, fresh)
		}
		require.NoError(t, tx.Commit())
		d.grow(t, 45, "job_key <> '7'")
		n, err := in.Prune(ctx, d.DB, 0)
		require.NoError(t, err)
		require.Zero(t, n, "45 days by default")
		n, err = in.Prune(ctx, d.DB, 44*day+time.Hour)
		require.NoError(t, err)
		require.Zero(t, n, "and a day")
		n, err = in.Prune(ctx, d.DB, 43*day)
		require.NoError(t, err)
		require.EqualValues(t, 1199, n)
		require.EqualValues(t, 1, d.count(t, "SELECT count(*) FROM pawl_inbox"))
	})
}

func TestInboxPruneRefusesAnAgeBelowTheRetentionOfDeadJobs(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	db := unusable(t)
	for _, tc := range []struct {
		dead, age time.Duration
		ok        bool
	}{
		{0, 30 * day, false}, {0, 30*day + 1, true}, {0, 0, true}, {0, -1, false}, {0, 1 << 62, true},
		{60 * day, 45 * day, false}, {60 * day, 61 * day, true}, {time.Hour, day, true}, {pawl.Forever, 100 * 365 * day, false}, {pawl.Forever, 0, false},
	} {
		in, err := pawlsql.NewInbox(pawlsql.InboxConfig{Dialect: pawlsql.SQLite, DeadRetention: tc.dead})
		require.NoError(t, err)
		_, err = in.Prune(t.Context(), db, tc.age)
		if tc.ok {
			require.ErrorIs(t, err, errUnusable)
		} else {
			require.ErrorIs(t, err, pawl.ErrInvalid)
		}
	}
}

// The effect was on day 0, and the job is dead, redriven and dead again for as long
// as ever: each time it comes, its key is good for another 45 days.
func TestInboxKeepsTheKeyOfAJobThatComesAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		ctx, in, job := t.Context(), newInbox(t, withEffects(t, d), pawlsql.InboxConfig{}), jobOf("charge", "a")
		prune := func() int64 {
			n, err := in.Prune(ctx, d.DB, 0)
			require.NoError(t, err)
			return n
		}
		for redriven := range 4 {
			done, err := in.Do(ctx, d.DB, job, effect)
			require.NoError(t, err)
			require.Equal(t, redriven == 0, done)
			e, err := in.Get(ctx, d.DB, job)
			require.NoError(t, err)
			day := time.Duration(redriven) * 25 * 24 * time.Hour
			require.WithinDuration(t, time.Now().Add(-day), e.ProcessedAt, time.Minute, "the moment of the effect stays")
			d.grow(t, 25, "1 = 1")
			require.Zero(t, prune(), "on day %d", 25*(redriven+1))
		}
		require.EqualValues(t, 1, d.effects(t))
		d.grow(t, 20.9, "1 = 1")
		require.Zero(t, prune())
		d.grow(t, 0.2, "1 = 1")
		require.EqualValues(t, 1, prune())
	})
}

// What a commit keeps after Claim has returned false, and a rollback does not.
func TestInboxClaimRenewsAKeyIfItIsCommitted(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		ctx, in, job := t.Context(), newInbox(t, d, pawlsql.InboxConfig{}), jobOf("charge", "a")
		claim := func(want bool) *sql.Tx {
			tx := d.begin(t)
			fresh, err := in.Claim(ctx, pawlsql.Std(tx), job)
			require.NoError(t, err)
			require.Equal(t, want, fresh)
			return tx
		}
		require.NoError(t, claim(true).Commit())
		d.grow(t, 47, "1 = 1")
		require.NoError(t, claim(false).Commit())
		n, err := in.Prune(ctx, d.DB, 0)
		require.NoError(t, err)
		require.Zero(t, n)
		d.grow(t, 47, "1 = 1")
		require.NoError(t, claim(false).Rollback())
		n, err = in.Prune(ctx, d.DB, 0)
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
	})
}

// A row is renewed once a day at the most, or each duplicate would write it.
func TestInboxDoesNotRenewAKeyThatIsFresh(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		in, job := newInbox(t, d, pawlsql.InboxConfig{}), jobOf("charge", "a")
		same := func() bool { return d.count(t, "SELECT count(*) FROM pawl_inbox WHERE seen_at = processed_at") == 1 }
		come := func() {
			_, err := in.Claim(t.Context(), pawlsql.Std(d.DB), job)
			require.NoError(t, err)
		}
		come()
		d.exec(t, "UPDATE pawl_inbox SET seen_at = processed_at")
		for _, days := range []float64{0, 0.9} {
			d.grow(t, days, "1 = 1")
			come()
			require.True(t, same(), "after %v days", days)
		}
		if d.Dialect == pawlsql.Postgres {
			version := d.count(t, "SELECT CAST(CAST(xmin AS text) AS bigint) FROM pawl_inbox")
			come()
			require.Equal(t, version, d.count(t, "SELECT CAST(CAST(xmin AS text) AS bigint) FROM pawl_inbox"))
			require.Zero(t, d.count(t, "SELECT CAST(CAST(xmax AS text) AS bigint) FROM pawl_inbox"), "nor is it locked")
		}
		d.grow(t, 0.2, "1 = 1")
		come()
		require.False(t, same())
	})
}

func TestInboxRenewsUnderConcurrentDuplicates(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		in := newInbox(t, withEffects(t, d), pawlsql.InboxConfig{})
		jobs := []pawlsql.Keyed{jobOf("charge", "a"), jobOf("charge", "b"), jobOf("charge", "c")}
		for _, job := range jobs {
			_, err := in.Do(t.Context(), d.DB, job, effect)
			require.NoError(t, err)
		}
		d.grow(t, 40, "1 = 1")
		failed := make(chan error, 100)
		var all sync.WaitGroup
		for n := range 24 {
			all.Go(func() {
				done, err := in.Do(context.Background(), d.DB, jobs[n%3], effect)
				if err != nil || done {
					failed <- fmt.Errorf("done %v: %w", done, err)
				}
			})
		}
		all.Wait()
		require.Empty(t, failed)
		d.grow(t, 40, "1 = 1")
		n, err := in.Prune(t.Context(), d.DB, 0)
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// A row that is just being renewed is passed over: Prune does not wait for it, nor
// delete it when the other has committed.
func TestInboxPruneLeavesARowThatIsBeingRenewed(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, pawlsql.Postgres)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	in := newInbox(t, d, pawlsql.InboxConfig{})
	claim := func(tx pawlsql.Execer, id string, want bool) {
		fresh, err := in.Claim(ctx, tx, jobOf("charge", id))
		require.NoError(t, err)
		require.Equal(t, want, fresh)
	}
	claim(pawlsql.Std(d.DB), "a", true)
	claim(pawlsql.Std(d.DB), "b", true)
	d.grow(t, 47, "1 = 1")
	tx := d.begin(t)
	claim(pawlsql.Std(tx), "a", false)
	n, err := in.Prune(ctx, d.DB, 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	require.NoError(t, tx.Commit())
	claim(pawlsql.Std(d.DB), "a", false)
	claim(pawlsql.Std(d.DB), "b", true)
}

func TestASchemaIsRunOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		in, o := newInbox(t, d, pawlsql.InboxConfig{}), newOutbox(t, d, pawlsql.OutboxConfig{})
		for _, schema := range []string{in.Schema(), o.Schema()} {
			_, err := d.DB.ExecContext(t.Context(), schema)
			require.ErrorContains(t, err, "already exists")
		}
	})
}
