package pawl_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// secondly is a schedule of which a test on a real server sees some ticks.
func secondly(missed pawl.Missed) pawl.Schedule {
	return pawl.Schedule{ID: "s", When: pawl.Every(time.Second), Args: note{1}, Missed: missed}
}

// eachOnce fails the test unless each tick from the first to the last was one job.
func (k *ticks) eachOnce(t *testing.T) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	require.NotEmpty(t, k.in)
	for i, at := range k.in {
		require.Len(t, k.of[at], 1, "the tick of %v", at)
		require.Contains(t, k.of, k.in[0].Add(time.Duration(i)*time.Second), "of %v", k.in)
	}
}

// at returns when there are so many.
func (k *ticks) await(t *testing.T, n int) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprint(n, " ticks have run"), func(context.Context) bool { return len(k.all()) >= n })
}

// N1. An answer of each script of schedules is lost, late, or comes twice.
func TestATickWithALostAnswerIsOneJob(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, verb := range []string{"tick", "schedules", "schedule", "beat"} {
		eachCut(t, server, verb, func(t *testing.T, f *faulty, fault redistest.Fault) {
			q, ctx := f.Queue(freshQueue()), within(t, time.Minute)
			for _, k := range []int{1, 2, 4} {
				f.Proxy.On(verb, k, fault)
			}
			var seen ticks
			w := f.Worker(q.Name(), pawl.WorkerConfig{})
			pawl.Handle(w, seen.handle)
			stop := f.Start(w)
			require.NoError(t, q.Schedule(ctx, secondly(pawl.MissedAll)))
			seen.await(t, 5)
			require.NoError(t, q.PauseSchedule(ctx, "s"))
			require.NoError(t, stop())
			f.Proxy.Release()
			seen.eachOnce(t)
			infos, err := f.past.Queue(q.Name()).Schedules(ctx)
			require.NoError(t, err)
			s, err := f.past.Queue(q.Name()).Stats(ctx)
			require.NoError(t, err)
			require.EqualValues(t, infos[0].Fired, s.Total.Enqueued)
			require.EqualValues(t, len(seen.all()), s.Total.Enqueued-s.Ready, "%+v", infos)
			require.Zero(t, infos[0].Missed)
		})
	}
}

// N1. A trigger whose answer was lost has made one job.
func TestATriggerWithALostAnswerIsOneJob(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	eachCut(t, server, "tick", func(t *testing.T, f *faulty, fault redistest.Fault) {
		q, ctx := f.Queue(freshQueue()), within(t, time.Minute)
		require.NoError(t, q.Schedule(ctx, hourly("s", 1)))
		f.Proxy.On("tick", 1, fault)
		job, err := q.Trigger(ctx, "s")
		require.NoError(t, err)
		_, err = q.Trigger(ctx, "s")
		require.NoError(t, err)
		f.Proxy.Release()
		past := f.past.Queue(q.Name())
		s, err := past.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Ready)
		_, err = past.Get(ctx, job.ID)
		require.NoError(t, err)
	})
}

// P1. The server is killed over some ticks: none is there twice, and none is lost that
// the policy keeps.
func TestAServerThatIsKilledOverTicks(t *testing.T) {
	t.Parallel()
	for name, missed := range map[string]pawl.Missed{"once": pawl.MissedOnce, "all": pawl.MissedAll} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
			e := newEnv(t, s.Client(t), nil)
			q, ctx := e.Queue("q"), within(t, time.Minute)
			var seen ticks
			for range 2 {
				e.Start(e.process(t, "q", seen.handle))
			}
			require.NoError(t, q.Schedule(ctx, secondly(missed)))
			first := only(t, q).Next // which may be missed: workers of other clients hear of it within 10 s
			seen.await(t, 2)
			s.Kill()
			<-time.After(3500 * time.Millisecond)
			s.Restart()
			before := len(seen.all())
			up := time.Now()
			seen.await(t, before+1)
			measured(t, "P1", "a tick ran after the restart", time.Since(up))
			seen.await(t, before+4)
			require.NoError(t, q.PauseSchedule(ctx, "s"))
			e.Log.Wait(t, "done", int(only(t, q).Fired))
			info := only(t, q)
			all := seen.all()
			require.EqualValues(t, len(all), info.Fired)
			for _, at := range all {
				require.Len(t, seen.of[at], 1)
			}
			if missed == pawl.MissedAll {
				seen.eachOnce(t)
				require.Zero(t, info.Missed)
			} else {
				require.EqualValues(t, info.Last.Sub(first)/time.Second+1, info.Fired+info.Missed)
				require.GreaterOrEqual(t, info.Missed, int64(1))
			}
		})
	}
}

// E2. A tick that a full Redis refuses is not half there: it is fired, late, once there is
// room.
func TestATickInAFullRedisIsLate(t *testing.T) {
	t.Parallel()
	e := newEnv(t, redistest.Start(t).Client(t), nil)
	q, ctx := e.Queue("q"), within(t, time.Minute)
	var seen ticks
	w := e.Worker("q", pawl.WorkerConfig{})
	pawl.Handle(w, seen.handle)
	e.Start(w)
	require.NoError(t, q.Schedule(ctx, secondly(pawl.MissedAll)))
	seen.await(t, 1)
	require.NoError(t, e.Redis.ConfigSet(ctx, "maxmemory", "1").Err())
	full := only(t, q)
	require.ErrorIs(t, q.Schedule(ctx, hourly("other", 1)), pawl.ErrFull)
	_, err := q.Trigger(ctx, "s")
	require.ErrorIs(t, err, pawl.ErrFull)
	<-time.After(2500 * time.Millisecond)
	now := only(t, q)
	require.Equal(t, full.Next, now.Next)
	require.Equal(t, full.Fired, now.Fired)
	require.NoError(t, q.PauseSchedule(ctx, "s"), "an operator is heard")
	require.NoError(t, q.ResumeSchedule(ctx, "s"))
	require.NoError(t, e.Redis.ConfigSet(ctx, "maxmemory", "0").Err())
	seen.await(t, 6)
	require.NoError(t, q.Unschedule(ctx, "s"))
	seen.eachOnce(t)
}

// T2. The server's clock goes forward by an hour and back: what came due is fired once,
// and nothing a second time.
func TestTheServersClockUnderASchedule(t *testing.T) {
	t.Parallel()
	s := redistest.StartWithClock(t)
	e := newEnv(t, s.Client(t), nil)
	q, ctx := e.Queue("q"), within(t, time.Minute)
	var seen ticks
	for range 2 {
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, seen.handle)
		e.Start(w)
	}
	require.NoError(t, q.Schedule(ctx, secondly(pawl.MissedOnce)))
	seen.await(t, 2)
	s.SetClock(time.Hour)
	asked := time.Now()
	redistest.Eventually(t, "what passed within the hour is counted", func(context.Context) bool { return only(t, q).Missed > 3000 })
	measured(t, "T2", "after an hour forward a schedule had fired", time.Since(asked))
	s.SetClock(0)
	<-time.After(500 * time.Millisecond)
	n := len(seen.all())
	next := only(t, q).Next
	require.Greater(t, time.Until(next), 50*time.Minute, "its next time is an hour from now")
	require.NoError(t, q.Schedule(ctx, pawl.Schedule{ID: "s", When: pawl.Every(2 * time.Second), Args: note{2}}))
	<-time.After(3 * time.Second)
	require.Len(t, seen.all(), n, "no second tick")
	for at, jobs := range seen.of {
		require.Len(t, jobs, 1, "%v", at)
	}
	require.NoError(t, q.Unschedule(ctx, "s"), "which forgets the hour")
	require.NoError(t, q.Schedule(ctx, secondly(pawl.MissedOnce)))
	seen.await(t, n+2)
	require.NoError(t, q.Unschedule(ctx, "s"))
	e.Log.Wait(t, "done", len(seen.all()))
}

// W1. Three processes, of which one is killed and comes back: one job a tick, as told by
// the processes.
func TestThreeProcessesFireOneJobATick(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	e := newEnv(t, server.Client(t), nil)
	q, ctx := e.Queue("q"), within(t, time.Minute)
	var seen ticks
	serve := func() *process {
		p := startChild(t, "ticks", server.Addr(), time.Second)
		go func() {
			for p.lines.Scan() {
				words := strings.Fields(p.lines.Text())
				if len(words) != 3 || words[0] != "tick" {
					continue
				}
				ms, _ := strconv.ParseInt(words[1], 10, 64)
				id, _ := uuid.Parse(words[2])
				seen.add(&pawl.RawJob{ID: id, ScheduledAt: time.UnixMilli(ms).UTC()})
			}
		}()
		return p
	}
	require.NoError(t, q.Schedule(ctx, secondly(pawl.MissedAll)))
	first := serve()
	serve()
	serve()
	seen.await(t, 6)
	first.kill()
	seen.await(t, 10)
	serve()
	seen.await(t, 20)
	require.NoError(t, q.PauseSchedule(ctx, "s"))
	redistest.Eventually(t, "all have run", func(ctx context.Context) bool {
		s, err := q.Stats(ctx)
		return err == nil && s.Total.Done == s.Total.Enqueued
	})
	seen.eachOnce(t)
	info := only(t, q)
	require.Zero(t, info.Missed)
	s, err := q.Stats(ctx)
	require.NoError(t, err)
	require.Equal(t, info.Fired, s.Total.Enqueued)
	redistest.Eventually(t, "all were told", func(context.Context) bool { return int64(len(seen.all())) == info.Fired })
}
