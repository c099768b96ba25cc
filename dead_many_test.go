package pawl

import (
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/record"
	"github.com/pawlq/pawl/internal/redistest"
)

// buryMany leaves n dead jobs, of two kinds of error, by the calls of a worker.
func (r *rig) buryMany(n int) {
	r.t.Helper()
	for done := 0; done < n; done += 500 {
		r.fresh(500)
		got := r.lease(ask{n: 500})
		s := r.buryShot("")
		for i, j := range got.jobs {
			text := fmt.Sprintf("order %d: not found", done+i)
			if i%5 == 0 {
				text = fmt.Sprintf("dial tcp 10.0.0.%d:5432: connection refused", i%256)
			}
			body := rec(long, func(r *record.Record) { r.Dead = &record.PostMortem{Reason: "permanent", Error: text} })
			s.args = append(s.args, j.id, got.token, body, "failed", 0)
		}
		r.fire(s)
	}
}

// D3. A great many dead are walked, grouped, redriven and purged, and no call stops
// the server for long. That is logged, since other machines are busier. With
// PAWL_FAULTS_WHOLE they are the row's hundred thousand.
func TestAGreatManyDead(t *testing.T) {
	t.Parallel()
	n := 10_000
	if os.Getenv("PAWL_FAULTS_WHOLE") != "" {
		n = 100_000
	}
	rdb := redistest.Start(t, "--slowlog-log-slower-than", "5000", "--slowlog-max-len", "1000").Client(t)
	r := openRig(t, rdb, nil)
	d, ctx := r.q.Dead(), t.Context()
	lap := time.Now()
	step := func(what string) {
		slow := rdb.SlowLogGet(ctx, 1000).Val()
		var worst redis.SlowLog
		for _, s := range slow {
			if s.Duration > worst.Duration {
				worst = s
			}
		}
		calls := regexp.MustCompile(`cmdstat_evalsha:calls=(\d+),usec=\d+,usec_per_call=([\d.]+)`).FindStringSubmatch(rdb.Info(ctx, "commandstats").Val())
		t.Logf("%-28s %6d ms; %s scripts of %s µs; above 5 ms: %d, the longest %v",
			what, time.Since(lap).Milliseconds(), calls[1], calls[2], len(slow), worst.Duration)
		require.NoError(t, rdb.Do(ctx, "SLOWLOG", "RESET").Err())
		require.NoError(t, rdb.ConfigResetStat(ctx).Err())
		lap = time.Now()
	}
	r.buryMany(n)
	step("they die")
	seen := 0
	for _, err := range d.List(ctx, DeadFilter{}) {
		require.NoError(t, err)
		seen++
	}
	require.Equal(t, n, seen)
	step("List")
	groups, err := d.Groups(ctx)
	require.NoError(t, err)
	require.Len(t, groups, 2)
	require.Equal(t, n*4/5, groups[0].Count)
	step("Groups")
	of := DeadFilter{Fingerprint: groups[1].Fingerprint}
	report, err := d.RedriveAll(ctx, of, Redrive{DryRun: true})
	require.NoError(t, err)
	require.Equal(t, RedriveReport{Matched: n / 5}, report)
	step("RedriveAll of a fifth, dry")
	report, err = d.RedriveAll(ctx, of, Redrive{})
	require.NoError(t, err)
	require.Equal(t, n/5, report.Moved)
	step("RedriveAll of a fifth")
	report, err = d.RedriveAll(ctx, DeadFilter{Limit: n / 5}, Redrive{Over: time.Second})
	require.NoError(t, err)
	require.Equal(t, n/5, report.Moved)
	step("RedriveAll of as many in 1 s")
	purged, err := d.Purge(ctx, DeadFilter{})
	require.NoError(t, err)
	require.Equal(t, n*3/5, purged)
	step("Purge of the rest")
	left, err := d.Len(ctx)
	require.NoError(t, err)
	require.Zero(t, left)
}
