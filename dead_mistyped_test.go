package pawl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// One unique key that something else has made a list concerns one job.
func TestARedrivePassesOverAUniqueKeyOfAWrongType(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		ctx, d, key := t.Context(), e.Queue("mail").Dead(), "pawl:{mail}:unique:bad"
		var ids []pawl.ID
		for _, name := range []string{"a", "bad", "b"} {
			ids = append(ids, die(t, e, 1, pawl.Unique{Key: name})...)
		}
		bad := ids[1]
		require.NoError(t, e.Redis.LPush(ctx, key, "x").Err())
		refused := func(report pawl.RedriveReport, err error, matched, moved int) {
			t.Helper()
			require.ErrorContains(t, err, bad.String())
			require.ErrorContains(t, err, key)
			require.Equal(t, matched, report.Matched)
			require.Equal(t, moved, report.Moved)
			require.Len(t, report.Refused, 1)
			require.Equal(t, bad, report.Refused[0].ID)
			require.Zero(t, report.Refused[0].Holder)
			require.ErrorContains(t, report.Refused[0].Err, bad.String())
		}
		report, err := d.RedriveAll(ctx, pawl.DeadFilter{}, pawl.Redrive{DryRun: true})
		refused(report, err, 3, 0)
		report, err = d.Redrive(ctx, ids[:2]...)
		refused(report, err, 2, 1)
		report, err = d.RedriveAll(ctx, pawl.DeadFilter{}, pawl.Redrive{})
		refused(report, err, 2, 1)
		err = d.RedriveWith(ctx, bad, note{})
		require.ErrorContains(t, err, key)
		require.NotErrorIs(t, err, pawl.ErrDuplicate)
		require.Equal(t, []pawl.ID{bad}, idsOfDead(listedDead(t, e, pawl.DeadFilter{})))

		found, err := e.Queue("mail").Check(ctx)
		require.NoError(t, err)
		require.Equal(t, []pawl.Violation{{Key: key, Text: "is of a wrong type"}}, found)

		require.NoError(t, e.Redis.Del(ctx, key).Err())
		report, err = d.RedriveAll(ctx, pawl.DeadFilter{}, pawl.Redrive{})
		require.NoError(t, err)
		require.Equal(t, pawl.RedriveReport{Matched: 1, Moved: 1}, report)
	})
}
