package pawltest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

// region books

// Books is the job of a night: it closes the books of a day.
type Books struct{}

func (Books) Kind() string { return "books" }

// Statement is the job of writing a file for a customer who waits for it.
type Statement struct {
	Pages int `json:"pages"`
}

func (Statement) Kind() string { return "statement" }

// zone is where the books are kept: a day is one of this zone.
const zone = "Europe/Berlin"

// bookkeeping is what is tested below. In production it writes somewhere.
func bookkeeping(client *pawl.Client, closed func(day string)) (*pawl.Worker, error) {
	berlin, err := time.LoadLocation(zone)
	if err != nil {
		return nil, err
	}
	w, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("books")})
	if err != nil {
		return nil, err
	}
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Books]) error {
		today := job.ScheduledAt.In(berlin) // it is in UTC, where the day is another; and never time.Now
		closed(today.AddDate(0, 0, -1).Format(time.DateOnly))
		job.Then(Statement{Pages: 1})
		return nil
	})
	pawl.HandleResult(w, func(ctx context.Context, job *pawl.Job[Statement]) (string, error) {
		for i := range job.Args.Pages {
			if err := job.Progress(ctx, 100*float64(i)/float64(job.Args.Pages), "writing"); err != nil {
				return "", err
			}
			select {
			case <-time.After(time.Minute): // a page
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		return fmt.Sprintf("%d pages", job.Args.Pages), nil
	})
	return w, nil
}

// nightly is what the program registers at its start.
func nightly(ctx context.Context, client *pawl.Client) error {
	return client.Queue("books").Schedule(ctx, pawl.Schedule{
		ID: "close", When: pawl.CronIn(zone, "30 0 * * *"), Args: Books{},
	})
}

// endregion

// region schedule

func TestTheBooksAreClosedEachNight(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		var days []string
		w, err := bookkeeping(env.Client, func(day string) { days = append(days, day) })
		require.NoError(t, err)
		require.NoError(t, nightly(t.Context(), env.Client))

		books := env.Client.Queue("books")
		registered, err := books.GetSchedule(t.Context(), "close")
		require.NoError(t, err)
		next := registered.Next
		require.Equal(t, "2000-01-01 23:30", next.Format("2006-01-02 15:04"), "in UTC, and in Berlin it is the 2nd")

		env.Advance(time.Until(next) + time.Second) // nobody works: the hours pass at once
		env.Start(w)                                // and fires the time that has passed
		report := env.DrainReady(w)                 // which waits until all that is due has run
		require.Empty(t, report.Dead)
		require.Equal(t, []string{"2000-01-01"}, days)
	})
}

func TestTheNightByHand(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		w, err := bookkeeping(env.Client, func(string) {})
		require.NoError(t, err)
		require.NoError(t, nightly(t.Context(), env.Client))

		_, err = env.Client.Queue("books").Trigger(t.Context(), "close")
		require.NoError(t, err)
		report := env.Drain(w)
		require.Len(t, report.Runs, 2)
		require.Equal(t, "close", report.Runs[0].Job.Schedule)
		require.Equal(t, "statement", report.Runs[1].Job.Kind, "it followed")
	})
}

// endregion

// region clockchange

func TestTheBooksWhenTheClockIsChanged(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		var days []string
		w, err := bookkeeping(env.Client, func(day string) { days = append(days, day) })
		require.NoError(t, err)
		require.NoError(t, nightly(t.Context(), env.Client))

		// The day after the change: half past midnight is an hour earlier in UTC.
		change := time.Date(2000, 3, 26, 22, 30, 0, 0, time.UTC)
		env.Advance(time.Until(change) - 5*time.Minute)
		env.Start(w) // one job for all the nights that were missed, the newest
		env.DrainReady(w)
		require.Equal(t, []string{"2000-03-25"}, days)

		env.Advance(time.Until(change) + time.Second) // it is started: each tick fires as it comes
		env.DrainReady(w)
		require.Equal(t, []string{"2000-03-25", "2000-03-26"}, days)
	})
}

// endregion

// region canary

func TestTheAlarmIsOnWhileNobodyWorks(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		books := env.Client.Queue("books")
		require.NoError(t, books.Canary(t.Context(), time.Minute))
		alarm := func() bool {
			s, err := books.Stats(t.Context())
			return err != nil || s.CanaryAge > 3*s.CanaryEvery
		}
		require.False(t, alarm(), "it has just been set")
		env.Advance(3*time.Minute + time.Second)
		require.True(t, alarm(), "no worker")

		w, err := bookkeeping(env.Client, func(string) {})
		require.NoError(t, err)
		env.Start(w)
		env.Advance(time.Minute + time.Second)
		require.False(t, alarm())

		require.NoError(t, books.Canary(t.Context(), 0))
		env.Crash(w)
		env.Advance(time.Hour)
		require.False(t, alarm(), "there is none any more")
	})
}

// endregion

// region wait

func TestAStatementIsWatchedAndAwaited(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		w, err := bookkeeping(env.Client, func(string) {})
		require.NoError(t, err)
		books := env.Client.Queue("books")
		job, err := books.Enqueue(t.Context(), Statement{Pages: 4}, pawl.Retain(time.Hour))
		require.NoError(t, err)

		env.Start(w)
		env.Advance(2*time.Minute + time.Second)
		info, err := books.Get(t.Context(), job.ID)
		require.NoError(t, err)
		require.InDelta(t, 50, info.Percent, 0)

		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = pawl.Await[string](impatient, books, job.ID)
		require.ErrorIs(t, err, context.DeadlineExceeded) // the job goes on

		made, err := pawl.Await[string](t.Context(), books, job.ID)
		require.NoError(t, err)
		require.Equal(t, "4 pages", made)

		env.Advance(time.Hour)
		_, err = pawl.Await[string](t.Context(), books, job.ID)
		require.ErrorIs(t, err, pawl.ErrNotFound) // too old
	})
}

// endregion
