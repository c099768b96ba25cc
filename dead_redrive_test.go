package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

func TestWhatARedriveKeepsAndWhatItResets(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		before, err := q.Enqueue(t.Context(), note{7}, pawl.MaxAttempts(2), pawl.Header{Key: "tenant", Value: "a"}, pawl.Priority(3),
			pawl.Unique{Key: "k", For: 24 * time.Hour}, pawl.ExpireIn(time.Hour), pawl.Backoff{Steps: []time.Duration{time.Minute}, Jitter: pawl.JitterNone})
		require.NoError(t, err)
		var jobs []pawl.RawJob
		fail := errors.New("failed")
		for redrives := range 3 {
			w := e.Worker("mail", pawl.WorkerConfig{})
			pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
				jobs = append(jobs, job.RawJob)
				return fail
			})
			e.Run(w, "dead", redrives+1)
			d, err := q.Dead().Get(t.Context(), before.ID)
			require.NoError(t, err)
			require.Equal(t, redrives, d.Redrives)
			require.Equal(t, "k", d.Unique)
			require.Len(t, d.Errors, min(5, 2*(redrives+1)))
			require.WithinDuration(t, d.EnqueuedAt, d.FirstFailedAt, time.Second)
			e.Pass(2 * time.Hour) // ExpireIn would be over
			report, err := q.Dead().Redrive(t.Context(), before.ID)
			require.NoError(t, err)
			require.Equal(t, pawl.RedriveReport{Matched: 1, Moved: 1}, report)
			info, err := q.Get(t.Context(), before.ID)
			require.NoError(t, err)
			require.Equal(t, pawl.StateReady, info.State)
			require.Equal(t, 3, info.Priority)
			require.Zero(t, info.Attempt)
			e.Pass(30 * time.Minute) // counted anew it is not
		}
		require.Len(t, jobs, 6)
		for i, job := range jobs {
			require.Equal(t, i%2+1, job.Attempt)
			require.Equal(t, i/2, job.Redrives)
			require.Equal(t, pawl.Headers{"tenant": "a"}, job.Headers)
			require.Equal(t, before.ID.String(), job.IdempotencyKey())
		}
		// It was redriven a third time, and nobody came in time.
		e.Pass(time.Hour)
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Run(w, "dead", 4)
		d, err := q.Dead().Get(t.Context(), before.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.ReasonExpired, d.Reason)
	})
}

func TestARedriveForgetsTheCrashes(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		job, err := q.Enqueue(t.Context(), note{1}, pawl.MaxCrashes(1))
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{})
		hang := make(chan struct{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { <-hang; return nil })
		stop := e.Start(w)
		e.Log.Wait(t, "started", 1)
		// As if the worker had been silent for too long.
		members := e.Redis.ZRange(t.Context(), "pawl:{mail}:leases", 0, -1).Val()
		require.Len(t, members, 1)
		require.NoError(t, e.Redis.Do(t.Context(), "ZADD", "pawl:{mail}:leases", 1, members[0]).Err())
		other := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(other, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Run(other, "dead", 1)
		d, err := q.Dead().Get(t.Context(), job.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.ReasonCrashed, d.Reason)
		require.Equal(t, 1, d.Crashes)
		close(hang)
		_ = stop()
		report, err := q.Dead().RedriveAll(t.Context(), pawl.DeadFilter{}, pawl.Redrive{})
		require.NoError(t, err)
		require.Equal(t, 1, report.Moved)
		again := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(again, func(_ context.Context, job *pawl.Job[note]) error {
			if job.Crashes != 0 {
				return fmt.Errorf("%d crashes", job.Crashes)
			}
			return nil
		})
		e.Run(again, "done", 1)
	})
}

func TestTheIdsOfARedrive(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ids := die(t, e, 40)
		d, ctx := e.Queue("mail").Dead(), t.Context()
		waiting, err := e.Queue("mail").Enqueue(ctx, note{1})
		require.NoError(t, err)

		report, err := d.Redrive(ctx)
		require.NoError(t, err)
		require.Zero(t, report)
		report, err = d.Redrive(ctx, append(ids[:20:20], ids[:20]...)...)
		require.NoError(t, err, "twice the same id is once")
		require.Equal(t, pawl.RedriveReport{Matched: 20, Moved: 20}, report)
		report, err = d.Redrive(ctx, waiting.ID, pawl.ID{}, ids[0], ids[20], ids[20])
		require.ErrorIs(t, err, pawl.ErrNotFound)
		require.ErrorContains(t, err, waiting.ID.String())
		require.ErrorContains(t, err, ids[0].String())
		require.NotContains(t, err.Error(), ids[20].String())
		require.Equal(t, pawl.RedriveReport{Matched: 1, Moved: 1}, report)
		n, err := d.Delete(ctx)
		require.NoError(t, err)
		require.Zero(t, n)
		n, err = d.Delete(ctx, ids[0], waiting.ID, ids[21], ids[21], pawl.ID{1})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		left, err := d.Len(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 18, left)
	})
}

func TestAnIndexThatNamesTheEntryOfAnother(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		die(t, e, 2)
		ctx, index := t.Context(), "pawl:{mail}:dead:index"
		all := listedDead(t, e, pawl.DeadFilter{})
		text, place := e.Redis.XRange(ctx, "pawl:{mail}:dead", all[0].Position, all[0].Position).Val()[0].Values["i"], all[0].Position
		require.NoError(t, e.Redis.HSet(ctx, index, text, all[1].Position).Err())
		_, err := e.Queue("mail").Dead().Redrive(ctx, all[0].ID)
		require.ErrorIs(t, err, pawl.ErrNotFound)
		require.ErrorIs(t, e.Queue("mail").Dead().RedriveWith(ctx, all[0].ID, note{1}), pawl.ErrNotFound)
		require.Len(t, listedDead(t, e, pawl.DeadFilter{}), 2, "nor was the other moved")
		require.NoError(t, e.Redis.HSet(ctx, index, text, place).Err())
	})
}

func TestTheWindowOfAKeyIsNoObstacleToItsOwnJob(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		ids := die(t, e, 1, pawl.Unique{Key: "k", For: time.Hour})
		twin, err := q.Enqueue(t.Context(), note{1}, pawl.Unique{Key: "k", For: time.Hour})
		require.NoError(t, err)
		require.True(t, twin.Duplicate, "the window goes on")
		report, err := q.Dead().Redrive(t.Context(), ids[0])
		require.NoError(t, err)
		require.Equal(t, 1, report.Moved)
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Run(w, "done", 1)
		twin, err = q.Enqueue(t.Context(), note{1}, pawl.Unique{Key: "k", For: time.Hour})
		require.NoError(t, err)
		require.True(t, twin.Duplicate, "as long as it was asked for")
	})
}

func TestADryRunChangesNothingAndTellsTheTruth(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		var twins []pawl.ID // of one key, on more than one page
		for range 25 {
			twins = append(twins, die(t, e, 1, pawl.Unique{Key: "twins"})...)
			die(t, e, 25)
		}
		refused := die(t, e, 1, pawl.Unique{Key: "held"})
		holder, err := q.Enqueue(ctx, note{1}, pawl.Unique{Key: "held"})
		require.NoError(t, err)

		before := redistest.Dump(ctx, e.Redis, "")
		report, err := q.Dead().RedriveAll(ctx, pawl.DeadFilter{}, pawl.Redrive{DryRun: true, Over: time.Hour, StopAfter: 1})
		require.NoError(t, err)
		require.Equal(t, before, redistest.Dump(ctx, e.Redis, ""))
		want := pawl.RedriveReport{Matched: 25*26 + 1}
		for _, id := range twins[1:] {
			want.Refused = append(want.Refused, pawl.RefusedRedrive{ID: id, Holder: twins[0]})
		}
		want.Refused = append(want.Refused, pawl.RefusedRedrive{ID: refused[0], Holder: holder.ID})
		require.Equal(t, want, report)

		report, err = q.Dead().RedriveAll(ctx, pawl.DeadFilter{}, pawl.Redrive{})
		require.NoError(t, err)
		want.Moved = want.Matched - len(want.Refused)
		require.Equal(t, want, report)
	})
}
