package pawl_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// hourly is a schedule that no test waits for.
func hourly(id string, n int) pawl.Schedule {
	return pawl.Schedule{ID: id, When: pawl.Every(time.Hour), Args: note{n}}
}

// only is the one schedule of a queue.
func only(t *testing.T, q *pawl.Queue) pawl.ScheduleInfo {
	t.Helper()
	infos, err := q.Schedules(t.Context())
	require.NoError(t, err)
	require.Len(t, infos, 1)
	return infos[0]
}

func TestASchedulesLife(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		infos, err := q.Schedules(ctx)
		require.NoError(t, err)
		require.Empty(t, infos, "of a queue that was never used")

		before := time.Now().Add(-time.Second)
		require.NoError(t, q.Schedule(ctx, hourly("s", 1)))
		names, err := e.Client.Queues(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"mail"}, names, "a queue exists from its first schedule, too")
		first := only(t, q)
		require.Equal(t, "every 1h0m0s", first.Spec)
		require.Equal(t, "note", first.Kind)
		require.WithinRange(t, first.Next, before.Add(time.Hour), time.Now().Add(time.Hour+time.Second))
		require.Zero(t, first.Last)
		require.Zero(t, first.LastJob)
		require.Zero(t, first.Fired+first.Missed+first.Skipped)

		require.NoError(t, q.Schedule(ctx, hourly("s", 1)))
		require.Equal(t, first, only(t, q), "the same again changes nothing")
		require.NoError(t, q.Schedule(ctx, hourly("s", 2)))
		first.Payload = []byte(`{"n":2}`)
		require.Equal(t, first, only(t, q), "nor do other arguments move its time")

		job, err := q.Trigger(ctx, "s")
		require.NoError(t, err)
		require.False(t, job.Duplicate)
		info, err := q.Get(ctx, job.ID)
		require.NoError(t, err)
		require.JSONEq(t, `{"n":2}`, string(info.Payload))
		require.Equal(t, "s", info.Schedule)
		require.WithinRange(t, info.ScheduledAt, before, time.Now().Add(time.Second))
		triggered := only(t, q)
		require.Equal(t, job.ID, triggered.LastJob)
		require.Equal(t, info.ScheduledAt, triggered.Last)
		require.EqualValues(t, 1, triggered.Fired)
		require.Equal(t, first.Next, triggered.Next, "a trigger moves nothing")

		require.NoError(t, q.PauseSchedule(ctx, "s"))
		require.NoError(t, q.PauseSchedule(ctx, "s"))
		require.True(t, only(t, q).Paused)
		require.NoError(t, q.Schedule(ctx, hourly("s", 3)))
		require.True(t, only(t, q).Paused, "a deploy does not resume it")
		_, err = q.Trigger(ctx, "s")
		require.NoError(t, err, "it may be triggered all the same")
		require.NoError(t, q.ResumeSchedule(ctx, "s"))
		require.NoError(t, q.ResumeSchedule(ctx, "s"))
		require.False(t, only(t, q).Paused)
		require.Equal(t, first.Next, only(t, q).Next)

		require.NoError(t, q.Unschedule(ctx, "s"))
		infos, err = q.Schedules(ctx)
		require.NoError(t, err)
		require.Empty(t, infos)
		s, err := q.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Ready, "its jobs stay")
		require.EqualValues(t, 2, s.Total.Enqueued)
		require.NoError(t, q.Schedule(ctx, hourly("s", 3)))
		require.Zero(t, only(t, q).Fired, "and nothing of it is known any more")
	})
}

func TestAScheduleThatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		for range 2 {
			_, err := q.Trigger(ctx, "x")
			require.ErrorIs(t, err, pawl.ErrNotFound)
			require.ErrorIs(t, q.Unschedule(ctx, "x"), pawl.ErrNotFound)
			require.ErrorIs(t, q.PauseSchedule(ctx, "x"), pawl.ErrNotFound)
			require.ErrorIs(t, q.ResumeSchedule(ctx, "x"), pawl.ErrNotFound)
			require.NoError(t, q.Schedule(ctx, hourly("y", 1)))
		}
		require.NoError(t, q.Schedule(ctx), "none is no call")
	})
}

func TestSyncMakesTheWholeList(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		require.NoError(t, q.Canary(ctx, time.Hour))
		require.NoError(t, q.Schedule(ctx, hourly("a", 1), hourly("b", 1), hourly("c", 1)))
		b := func() pawl.ScheduleInfo {
			infos, err := q.Schedules(ctx)
			require.NoError(t, err)
			for _, s := range infos {
				if s.ID == "b" {
					return s
				}
			}
			return pawl.ScheduleInfo{}
		}
		was := b()
		require.NoError(t, q.SyncSchedules(ctx, []pawl.Schedule{hourly("b", 1), hourly("d", 1)}))
		infos, err := q.Schedules(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"b", "d"}, []string{infos[0].ID, infos[1].ID})
		require.Equal(t, was, b())
		require.NoError(t, q.SyncSchedules(ctx, nil))
		infos, err = q.Schedules(ctx)
		require.NoError(t, err)
		require.Empty(t, infos)
		require.EqualValues(t, 1, e.Redis.HLen(ctx, "pawl:{mail}:schedules").Val(), "the canary is nobody's to list")
	})
}

// A change of When: the anchor stays, and what is due stays due.
func TestAChangedWhenBeginsFromNowOn(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		anchor := time.Now()
		every := func(d time.Duration) pawl.Schedule {
			return pawl.Schedule{ID: "s", When: pawl.Every(d), Args: note{1}}
		}
		require.NoError(t, q.Schedule(ctx, every(time.Hour)))
		e.Pass(10*time.Minute + time.Second)
		require.NoError(t, q.Schedule(ctx, every(3*time.Minute)))
		require.WithinDuration(t, anchor.Add(12*time.Minute), only(t, q).Next, 2*time.Millisecond, "on the grid of the first registration")
		e.Pass(5 * time.Minute)
		due := only(t, q).Next
		require.NoError(t, q.Schedule(ctx, every(24*time.Hour)))
		require.Equal(t, due, only(t, q).Next, "it is due, whatever comes after it")
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error { return nil })
		require.Equal(t, due, e.Run(w, "done", 1)[0].Job.ScheduledAt)
		require.WithinDuration(t, anchor.Add(24*time.Hour), only(t, q).Next, 2*time.Millisecond)
		require.NoError(t, q.Unschedule(ctx, "s"))
		require.NoError(t, q.Schedule(ctx, every(24*time.Hour)))
		require.WithinDuration(t, time.Now().Add(24*time.Hour), only(t, q).Next, 2*time.Millisecond, "a new anchor")
	})
}

func TestASchedulesOptionsAreThoseOfItsJobs(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		s := hourly("s", 1)
		s.Options = []pawl.Option{pawl.Delay(time.Minute), pawl.Priority(4), pawl.Header{Key: "k", Value: "v"}, pawl.MaxAttempts(2),
			pawl.Unique{Key: "u", OnDuplicate: pawl.RejectDuplicate}, pawl.Idempotency{Key: "i"}, pawl.ExpireIn(time.Hour)}
		require.NoError(t, q.Schedule(ctx, s))
		job, err := q.Trigger(ctx, "s")
		require.NoError(t, err)
		info, err := q.Get(ctx, job.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.StateDelayed, info.State)
		require.InDelta(t, time.Minute, info.DueAt.Sub(info.EnqueuedAt), float64(2*time.Millisecond))
		require.Equal(t, 4, info.Priority)
		require.Equal(t, pawl.Headers{"k": "v"}, info.Headers)
		require.Equal(t, 2, info.MaxAttempts)
		require.Equal(t, "u", info.Unique)
		require.Equal(t, "i", info.Idempotency)
		again, err := q.Trigger(ctx, "s")
		require.ErrorIs(t, err, pawl.ErrDuplicate)
		require.Equal(t, job.ID, again.ID)
		require.EqualValues(t, 1, only(t, q).Skipped)
		require.Equal(t, job.ID, only(t, q).LastJob)

		s = hourly("s", 1)
		s.Overlap = pawl.OverlapSkip
		require.NoError(t, q.Schedule(ctx, s))
		job, err = q.Trigger(ctx, "s")
		require.NoError(t, err)
		again, err = q.Trigger(ctx, "s")
		require.NoError(t, err)
		require.True(t, again.Duplicate)
		require.Equal(t, job.ID, again.ID)
	})
}

// Two builds of a program that say the same make no change, whatever their callers'
// headers.
func TestEqualSchedulesAreEqual(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		headers := make([]pawl.Option, 20)
		for i := range headers {
			headers[i] = pawl.Header{Key: fmt.Sprint("k", i), Value: "v"}
		}
		s := hourly("s", 1)
		stored := func() string { return e.Redis.HGet(ctx, "pawl:{mail}:schedules", "s").Val() }
		for i := range 20 {
			c := e.NewClient(pawl.Config{Inject: func(_ context.Context, h pawl.Headers) { h["request"] = fmt.Sprint(i) }})
			s.Options = append(headers[i:len(headers):len(headers)], headers[:i]...)
			before := stored()
			require.NoError(t, c.Queue("mail").Schedule(ctx, s))
			require.True(t, i == 0 || before == stored())
		}
		require.NotContains(t, stored(), "request")
	})
}

type mistyped struct{}

func (mistyped) Kind() string { return "pawl:canary" }

func TestSchedulesThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		change := func(fn func(*pawl.Schedule)) pawl.Schedule {
			s := hourly("s", 1)
			fn(&s)
			return s
		}
		many := make([]pawl.Schedule, 1001)
		for i := range many {
			many[i] = hourly(fmt.Sprint("s", i), i)
		}
		for name, list := range map[string][]pawl.Schedule{
			"no ID":               {change(func(s *pawl.Schedule) { s.ID = "" })},
			"a long ID":           {change(func(s *pawl.Schedule) { s.ID = strings.Repeat("x", 129) })},
			"an ID of pawl's":     {change(func(s *pawl.Schedule) { s.ID = "pawl:canary" })},
			"an ID that is bytes": {change(func(s *pawl.Schedule) { s.ID = "\xff" })},
			"an ID of two lines":  {change(func(s *pawl.Schedule) { s.ID = "a\nb" })},
			"no When":             {change(func(s *pawl.Schedule) { s.When = pawl.Spec{} })},
			"a wrong line":        {change(func(s *pawl.Schedule) { s.When = pawl.Cron("61 * * * *") })},
			"an unknown zone":     {change(func(s *pawl.Schedule) { s.When = pawl.CronIn("Atlantis", "* * * * *") })},
			"a short period":      {change(func(s *pawl.Schedule) { s.When = pawl.Every(time.Millisecond) })},
			"no Args":             {change(func(s *pawl.Schedule) { s.Args = nil })},
			"a kind of pawl's":    {change(func(s *pawl.Schedule) { s.Args = mistyped{} })},
			"another Missed":      {change(func(s *pawl.Schedule) { s.Missed = 3 })},
			"another Overlap":     {change(func(s *pawl.Schedule) { s.Overlap = -1 })},
			"At":                  {change(func(s *pawl.Schedule) { s.Options = []pawl.Option{pawl.At(time.Now())} })},
			"an option twice":     {change(func(s *pawl.Schedule) { s.Options = []pawl.Option{pawl.Priority(1), pawl.Priority(2)} })},
			"two keys": {change(func(s *pawl.Schedule) {
				s.Overlap, s.Options = pawl.OverlapSkip, []pawl.Option{pawl.Unique{}}
			})},
			"all, and skip": {change(func(s *pawl.Schedule) { s.Overlap, s.Missed = pawl.OverlapSkip, pawl.MissedAll })},
			"one ID twice":  {hourly("s", 1), hourly("s", 2)},
			"too many":      many,
		} {
			good := append([]pawl.Schedule{hourly("good", 1)}, list...)
			require.ErrorIs(t, q.Schedule(ctx, good...), pawl.ErrInvalid, name)
			require.ErrorIs(t, q.SyncSchedules(ctx, good), pawl.ErrInvalid, name)
			require.Zero(t, e.Redis.Exists(ctx, "pawl:{mail}:schedules").Val(), "%s: nothing was sent", name)
		}
		require.ErrorIs(t, q.Canary(ctx, -time.Second), pawl.ErrInvalid)
		require.ErrorIs(t, q.Canary(ctx, time.Millisecond), pawl.ErrInvalid)
		_, err := q.Trigger(ctx, "pawl:canary")
		for _, err := range []error{err, q.Unschedule(ctx, "pawl:canary"), q.PauseSchedule(ctx, "pawl:canary"), q.ResumeSchedule(ctx, "pawl:canary")} {
			require.ErrorIs(t, err, pawl.ErrInvalid)
			require.ErrorContains(t, err, "Queue.Canary sets it, and removes it with a period of 0")
		}
		require.ErrorContains(t, q.Unschedule(ctx, "pawl:other"), "choose another")
		_, err = q.Enqueue(ctx, mistyped{})
		require.ErrorIs(t, err, pawl.ErrInvalid)
		bad := e.Client.Queue("no such name")
		require.ErrorIs(t, bad.Schedule(ctx, hourly("s", 1)), pawl.ErrName)
		require.ErrorIs(t, bad.Canary(ctx, time.Minute), pawl.ErrName)
		_, err = bad.Schedules(ctx)
		require.ErrorIs(t, err, pawl.ErrName)
		_, err = bad.Trigger(ctx, "s")
		require.ErrorIs(t, err, pawl.ErrName)
		require.ErrorIs(t, bad.Unschedule(ctx, "s"), pawl.ErrName)
	})
}

func TestAQueueHasAThousandSchedulesAtMost(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		many := make([]pawl.Schedule, 999)
		for i := range many {
			many[i] = hourly(fmt.Sprintf("s%04d", i), i)
		}
		require.NoError(t, q.Schedule(ctx, many...))
		require.NoError(t, q.Schedule(ctx, many...), "the same again")
		require.NoError(t, q.Schedule(ctx, hourly("last", 1)))
		require.ErrorIs(t, q.Schedule(ctx, hourly("more", 1)), pawl.ErrFull)
		require.NoError(t, q.Schedule(ctx, hourly("s0500", 7)), "a change is none more")
		infos, err := q.Schedules(ctx)
		require.NoError(t, err)
		require.Len(t, infos, 1000)
		require.Equal(t, "last", infos[0].ID)
		require.Equal(t, "s0998", infos[999].ID)
	})
}

// Payloads of a thousand schedules do not come in one call, nor in one answer.
func TestLargeSchedules(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		many := make([]pawl.Schedule, 12)
		for i := range many {
			many[i] = hourly(fmt.Sprintf("s%02d", i), i)
			many[i].Args = pawl.Raw{Name: "note", Payload: []byte(`"` + strings.Repeat("x", 200<<10) + `"`)}
		}
		require.NoError(t, q.Schedule(ctx, many...))
		infos, err := q.Schedules(ctx)
		require.NoError(t, err)
		require.Len(t, infos, 12)
		many[0].Args = pawl.Raw{Name: "note", Payload: make([]byte, 257<<10)}
		require.ErrorIs(t, q.Schedule(ctx, many...), pawl.ErrTooLarge)
	})
}
