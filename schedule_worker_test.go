package pawl_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/testhook"
)

// ticks are the jobs of a schedule that ran, by the time that they were for.
type ticks struct {
	mu sync.Mutex
	of map[time.Time]map[pawl.ID]bool
	in []time.Time // their first runs, in order
}

func (k *ticks) add(job *pawl.RawJob) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[time.Time]map[pawl.ID]bool{}
	}
	if k.of[job.ScheduledAt] == nil {
		k.of[job.ScheduledAt] = map[pawl.ID]bool{}
		k.in = append(k.in, job.ScheduledAt)
	}
	k.of[job.ScheduledAt][job.ID] = true
}

func (k *ticks) all() []time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]time.Time(nil), k.in...)
}

// handle notes the tick of each job.
func (k *ticks) handle(_ context.Context, job *pawl.Job[note]) error {
	k.add(&job.RawJob)
	return nil
}

// process is a worker with a client of its own, as in a program of its own.
func (e *env) process(t *testing.T, queue string, fn func(context.Context, *pawl.Job[note]) error) *pawl.Worker {
	t.Helper()
	e.Queue(queue)
	w, err := pawl.NewWorker(e.NewClient(pawl.Config{}), pawl.WorkerConfig{Queues: pawl.Queues(queue), VisibilityTimeout: 6 * time.Second})
	require.NoError(t, err)
	pawl.Handle(w, fn)
	return w
}

// One job a tick, over 200 of them: three workers, of which one crashes and another
// comes, while ten processes change the schedule.
func TestEachTickIsOneJob(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		const every, number = time.Second, 200
		begin := time.Now()
		schedule := func(n int) pawl.Schedule {
			return pawl.Schedule{ID: "s", When: pawl.Every(every), Args: note{n}}
		}
		require.NoError(t, q.Schedule(ctx, schedule(0)))
		var seen ticks
		victim := e.process(t, "mail", seen.handle)
		crashed := make(chan error, 1)
		go func() { crashed <- victim.Run(context.Background()) }()
		for range 2 {
			e.Start(e.process(t, "mail", seen.handle))
		}
		var editors sync.WaitGroup
		for i := range 10 {
			c := e.NewClient(pawl.Config{})
			editors.Go(func() {
				for n := range 30 {
					<-time.After(time.Duration(3000+137*i) * time.Millisecond)
					if err := c.Queue("mail").Schedule(ctx, schedule(n*10+i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		e.Pass(60*every + every/2)
		testhook.Abandon(victim)
		require.Error(t, <-crashed)
		e.Pass(20 * every)
		e.Start(e.process(t, "mail", seen.handle))
		e.Pass(time.Until(begin.Add(number*every + every/2)))
		editors.Wait()
		require.NoError(t, q.PauseSchedule(ctx, "s"))
		info := only(t, q)
		e.Pass(time.Minute)

		in := seen.all()
		require.GreaterOrEqual(t, len(in), number)
		require.EqualValues(t, len(in), info.Fired)
		require.Zero(t, info.Missed, "nor was one late by more than its period")
		for i := range in {
			require.Len(t, seen.of[in[i]], 1, "the tick of %v is one job", in[i])
			if i > 0 {
				require.True(t, seen.of[in[0].Add(time.Duration(i)*every)] != nil, "none is left out")
			}
		}
		for _, done := range e.Log.Of("done") {
			require.Less(t, done.Job.EnqueuedAt.Sub(done.Job.ScheduledAt), 100*time.Millisecond)
			require.GreaterOrEqual(t, done.Job.EnqueuedAt.Sub(done.Job.ScheduledAt), -time.Millisecond, "never early")
		}
	})
}

// A worker of the same client hears of a schedule at once, others with their next beat.
func TestWorkersHearOfASchedule(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]time.Duration{"same client": 20 * time.Millisecond, "another": 10*time.Second + 20*time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				q, ctx := e.Queue("mail"), t.Context()
				var seen ticks
				if name == "another" {
					e.Start(e.process(t, "mail", seen.handle))
				} else {
					w := e.Worker("mail", pawl.WorkerConfig{})
					pawl.Handle(w, seen.handle)
					e.Start(w)
				}
				e.Pass(time.Minute + 3*time.Second) // idle
				require.NoError(t, q.Schedule(ctx, pawl.Schedule{ID: "s", When: pawl.Every(time.Second), Args: note{1}}))
				start := time.Now()
				e.Log.Wait(t, "done", 1)
				require.LessOrEqual(t, time.Since(start), time.Second+late)
				first := len(seen.all())
				e.Pass(30 * time.Second)
				require.InDelta(t, 30, len(seen.all())-first, 1, "and then they keep time")
				require.NoError(t, q.Unschedule(ctx, "s"))
				n := len(seen.all())
				e.Pass(30 * time.Second)
				require.Len(t, seen.all(), n)
			})
		})
	}
}

// gap is a time in which a schedule cannot fire.
type gap struct {
	missed pawl.Missed
	every  time.Duration
	lasts  time.Duration // to the middle of a period
	jobs   int           // that there are then
	passed int64         // ticks without one
}

var gaps = map[string]gap{
	"once, one":       {pawl.MissedOnce, 10 * time.Minute, 15 * time.Minute, 1, 0},
	"once, ten":       {pawl.MissedOnce, time.Minute, 10*time.Minute + 30*time.Second, 1, 9},
	"skip, late":      {pawl.MissedSkip, 5 * time.Minute, 12*time.Minute + 30*time.Second, 0, 2},
	"skip, in time":   {pawl.MissedSkip, time.Minute, 10*time.Minute + 30*time.Second, 1, 9},
	"all":             {pawl.MissedAll, time.Minute, 10*time.Minute + 30*time.Second, 10, 0},
	"all, and more":   {pawl.MissedAll, 10 * time.Second, 20*time.Minute + 5*time.Second, 100, 20},
	"once, two years": {pawl.MissedOnce, time.Minute, 2*365*24*time.Hour + 30*time.Second, 1, 2*365*24*60 - 1},
}

// eachGap has the schedule fire three times, then for a while not, and tells what came of that.
func eachGap(t *testing.T, longest time.Duration, begin func(e *env, w *pawl.Worker) (end func())) {
	t.Helper()
	for name, g := range gaps {
		if g.lasts > longest {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				q, ctx := e.Queue("mail"), t.Context()
				require.NoError(t, q.Schedule(ctx, pawl.Schedule{ID: "s", When: pawl.Every(g.every), Args: note{1}, Missed: g.missed}))
				var before, after ticks
				w := e.Worker("mail", pawl.WorkerConfig{})
				pawl.Handle(w, before.handle)
				stop := e.Start(w)
				e.Pass(g.every + g.every/100)
				require.Len(t, before.all(), 1)
				require.NoError(t, stop())
				first := before.all()[0]

				w = e.Worker("mail", pawl.WorkerConfig{Concurrency: 1})
				pawl.Handle(w, after.handle)
				end := begin(e, w)
				e.Pass(time.Until(first.Add(g.lasts)))
				require.Empty(t, after.all())
				end()
				e.Pass(3 * time.Second)
				var want []time.Time
				for i := range g.jobs {
					want = append(want, first.Add(g.lasts-g.every/2-time.Duration(g.jobs-1-i)*g.every))
				}
				require.Equal(t, want, after.all(), "oldest first")
				info := only(t, q)
				require.Equal(t, g.passed, info.Missed)
				require.EqualValues(t, 1+g.jobs, info.Fired)
				require.Equal(t, first.Add(g.lasts+g.every/2), info.Next, "it goes on as ever")
			})
		})
	}
}

func TestTimesThatPassWithoutAWorker(t *testing.T) {
	t.Parallel()
	eachGap(t, 10_000*time.Hour*24, func(e *env, w *pawl.Worker) func() {
		return func() { e.Start(w) }
	})
}

func TestTimesThatPassWhileAScheduleIsPaused(t *testing.T) {
	t.Parallel()
	eachGap(t, 24*time.Hour, func(e *env, w *pawl.Worker) func() {
		require.NoError(e.t, e.Queue("mail").PauseSchedule(context.Background(), "s"))
		e.Start(w)
		return func() { require.NoError(e.t, e.Queue("mail").ResumeSchedule(context.Background(), "s")) }
	})
}

func TestTimesThatPassWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	eachGap(t, 24*time.Hour, func(e *env, w *pawl.Worker) func() {
		e.Start(w)
		e.Pass(time.Millisecond)
		e.Mini.SetError("LOADING Redis is loading the dataset in memory")
		return func() { e.Mini.SetError("") }
	})
}

// A worker that drains leaves what comes due to others.
func TestAWorkerThatDrainsDoesNotFire(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		require.NoError(t, q.Schedule(ctx, pawl.Schedule{ID: "s", When: pawl.Every(time.Second), Args: note{1}}))
		w := e.process(t, "mail", func(context.Context, *pawl.Job[note]) error { <-time.After(10 * time.Second); return nil })
		stop := e.Start(w)
		e.Log.Wait(t, "started", 1)
		require.NoError(t, stop())
		require.EqualValues(t, 1, only(t, q).Fired)
	})
}

func TestASkippedOverlap(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		require.NoError(t, q.Schedule(ctx, pawl.Schedule{ID: "s", When: pawl.Every(10 * time.Second), Args: note{1}, Overlap: pawl.OverlapSkip}))
		running, most := 0, 0
		var mu sync.Mutex
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
			most = max(most, running)
		}
		for range 3 {
			e.Start(e.process(t, "mail", func(ctx context.Context, job *pawl.Job[note]) error {
				count(1)
				defer count(-1)
				if job.Attempt == 1 {
					<-time.After(12 * time.Second)
					return fmt.Errorf("again")
				}
				<-time.After(3 * time.Second)
				return nil
			}))
		}
		e.Pass(5*time.Minute + 5*time.Second)
		info := only(t, q)
		require.Equal(t, 1, most)
		require.EqualValues(t, 30, info.Fired+info.Skipped, "%+v", info)
		require.Greater(t, info.Skipped, int64(9))
		require.Greater(t, info.Fired, int64(5))
		require.Zero(t, info.Missed)
		require.NoError(t, q.PauseSchedule(ctx, "s"))
		e.Pass(time.Minute)
	})
}

// Both days on which the clock of Berlin changes, of the year in which a bubble begins.
func TestAScheduleOverClockChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from time.Time
		want []string
	}{
		"spring": {time.Date(2000, 3, 24, 12, 0, 0, 0, time.UTC), []string{"03-25 01:30", "03-26 01:00", "03-27 00:30"}},
		"autumn": {time.Date(2000, 10, 27, 12, 0, 0, 0, time.UTC), []string{"10-28 00:30", "10-29 00:30", "10-30 01:30"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				q, ctx := e.Queue("mail"), t.Context()
				e.Pass(time.Until(c.from))
				require.NoError(t, q.Schedule(ctx, pawl.Schedule{ID: "s", When: pawl.CronIn("Europe/Berlin", "30 2 * * *"), Args: note{1}}))
				var seen ticks
				var got []string
				for n := range c.want {
					e.Pass(time.Until(only(t, q).Next) - 5*time.Second)
					stop := e.Start(e.process(t, "mail", seen.handle))
					e.Log.Wait(t, "done", n+1)
					require.NoError(t, stop())
					at := seen.all()[n]
					got = append(got, at.Format("01-02 15:04"))
					require.WithinDuration(t, at, time.Now(), 100*time.Millisecond)
				}
				require.Equal(t, c.want, got)
			})
		})
	}
}

// Hooks hear of the jobs, and one that hangs holds nothing up.
func TestHooksHearOfTicks(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		told := make(hang, 100)
		w, err := pawl.NewWorker(e.NewClient(pawl.Config{Hooks: []pawl.Hook{told}}), pawl.WorkerConfig{Queues: pawl.Queues("mail")})
		require.NoError(t, err)
		var seen ticks
		pawl.Handle(w, seen.handle)
		stop := e.Start(w)
		require.NoError(t, q.Schedule(ctx, pawl.Schedule{ID: "s", When: pawl.Every(time.Second), Args: note{1}}))
		e.Pass(40 * time.Second)
		require.Greater(t, len(seen.all()), 25)
		first := <-told
		require.Equal(t, "note", first.Kind)
		require.Equal(t, "mail", first.Queue)
		require.NoError(t, first.Err)
		require.Empty(t, told, "it hangs for an hour")
		require.NoError(t, stop())
		require.NoError(t, q.Unschedule(ctx, "s"))
		e.Pass(48 * time.Hour)
	})
}

type hang chan pawl.EnqueuedEvent

func (h hang) Enqueued(_ context.Context, e pawl.EnqueuedEvent) {
	h <- e
	<-time.After(time.Hour)
}

// Beats carry the times: an idle worker without schedules sends next to nothing for them.
func TestIdleWorkersAskForNoSchedules(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		e.Start(e.process(t, "mail", func(context.Context, *pawl.Job[note]) error { return nil }))
		e.Pass(time.Minute)
		before := e.Mini.CommandCount()
		e.Pass(5 * time.Minute)
		none := e.Mini.CommandCount() - before
		require.NoError(t, e.Queue("mail").Schedule(t.Context(), hourly("s", 1)))
		before = e.Mini.CommandCount()
		e.Pass(5 * time.Minute)
		require.InDelta(t, none, e.Mini.CommandCount()-before, 30, "one that waits costs no more")
	})
}
