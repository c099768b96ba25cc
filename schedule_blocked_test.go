package pawl_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// E6. A unique key that something else has made a list holds up its own schedule, and no
// other of the queue.
func TestAnotherTypesUniqueKeyStopsOneSchedule(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		var seen ticks
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, seen.handle)
		e.Start(w)
		list := []pawl.Schedule{{ID: "bad", When: pawl.Every(time.Minute), Args: note{1}, Overlap: pawl.OverlapSkip}}
		for i := range 3 {
			list = append(list, pawl.Schedule{ID: fmt.Sprint("good", i), When: pawl.Every(time.Minute), Args: note{1}})
		}
		require.NoError(t, e.Redis.RPush(ctx, "pawl:{mail}:unique:pawl:schedule:bad", "x").Err())
		require.NoError(t, q.Schedule(ctx, list...))
		e.Pass(10*time.Minute + 30*time.Second)
		infos, err := q.Schedules(ctx)
		require.NoError(t, err)
		for _, s := range infos[1:] {
			require.EqualValues(t, 10, s.Fired, s.ID)
		}
		require.Zero(t, infos[0].Fired)
		require.NoError(t, e.Redis.Del(ctx, "pawl:{mail}:unique:pawl:schedule:bad").Err())
		e.Pass(time.Minute)
		infos, err = q.Schedules(ctx)
		require.NoError(t, err)
		require.GreaterOrEqual(t, infos[0].Fired, int64(1), "it goes on")
	})
}

// E5. A user who loses a right of the script midway does not fill the queue.
func TestATickThatIsDeniedMidwayIsOneJob(t *testing.T) {
	t.Parallel()
	for _, without := range []string{"-hset", "-zadd", "-xadd"} {
		t.Run(without, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, redistest.Start(t).Client(t), nil)
			q, ctx := e.Queue("q"), within(t, time.Minute)
			var seen ticks
			w := e.Worker("q", pawl.WorkerConfig{})
			pawl.Handle(w, seen.handle)
			e.Start(w)
			require.NoError(t, q.Schedule(ctx, secondly(pawl.MissedAll)))
			seen.await(t, 2)
			length := func() int64 {
				n, err := e.Redis.XInfoStream(ctx, "pawl:{q}:jobs").Result()
				require.NoError(t, err)
				return n.EntriesAdded
			}
			before := length()
			require.NoError(t, e.Redis.Do(ctx, "ACL", "SETUSER", "default", without).Err())
			<-time.After(5 * time.Second)
			require.NoError(t, e.Redis.Do(ctx, "ACL", "SETUSER", "default", "+@all").Err())
			require.LessOrEqual(t, length()-before, int64(6))
			seen.await(t, 9)
			info := only(t, q)
			require.NoError(t, q.Unschedule(ctx, "s"))
			require.Zero(t, info.Missed)
			require.GreaterOrEqual(t, info.Fired, int64(9))
		})
	}
}

// Two that are triggered in one millisecond are told apart by their ScheduledAt.
func TestNoTwoTriggersAreOfOneTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		require.NoError(t, q.Schedule(ctx, hourly("s", 1)))
		var seen ticks
		for range 3 {
			_, err := q.Trigger(ctx, "s")
			require.NoError(t, err)
		}
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, seen.handle)
		e.Start(w)
		e.Log.Wait(t, "done", 3)
		require.Len(t, seen.all(), 3)
	})
}

// One that is triggered at the very time of a tick that was held back is told apart from it.
func TestATriggerIsOfNoTimeThatIsFiredLater(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		require.NoError(t, q.Schedule(ctx, secondly(pawl.MissedAll)))
		require.NoError(t, q.PauseSchedule(ctx, "s"))
		<-time.After(time.Until(only(t, q).Next.Add(4 * time.Second)))
		_, err := q.Trigger(ctx, "s")
		require.NoError(t, err)
		require.NoError(t, q.ResumeSchedule(ctx, "s"))
		var seen ticks
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, seen.handle)
		e.Start(w)
		e.Log.Wait(t, "done", 6)
		for at, jobs := range seen.of {
			require.Len(t, jobs, 1, at)
		}
	})
}

// A list of new names takes the place of a full one.
func TestSyncTakesThePlaceOfAFullList(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		list := func(word string) (all []pawl.Schedule) {
			for i := range 600 {
				all = append(all, hourly(fmt.Sprint(word, i), 1))
			}
			return all
		}
		require.NoError(t, q.SyncSchedules(ctx, list("old")))
		require.NoError(t, q.SyncSchedules(ctx, list("new")))
		infos, err := q.Schedules(ctx)
		require.NoError(t, err)
		require.Len(t, infos, 600)
		require.Equal(t, "new0", infos[0].ID)
	})
}

// E3. However large the schedules are of which a part was evicted, they are mended soon.
func TestLargeSchedulesInPartsAreMended(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		w := e.Worker("mail", pawl.WorkerConfig{})
		w.HandleRaw("note", func(context.Context, *pawl.RawJob) error { return nil })
		e.Start(w)
		var list []pawl.Schedule
		for i := range 30 {
			list = append(list, pawl.Schedule{ID: fmt.Sprint("s", i), When: pawl.Every(time.Hour),
				Args: pawl.Raw{Name: "note", Payload: []byte(strings.Repeat("x", 200<<10))}})
		}
		require.NoError(t, q.Schedule(ctx, list...))
		require.NoError(t, e.Redis.Del(ctx, "pawl:{mail}:schedules:at").Err())
		e.Pass(time.Minute + 15*time.Second)
		require.EqualValues(t, 30, e.Redis.ZCard(ctx, "pawl:{mail}:schedules:at").Val())
	})
}

// What one of Go and the scripts cannot read the other does not take for whole.
func TestAStateOfImmenseNumbersIsMended(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		var seen ticks
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, seen.handle)
		e.Start(w)
		const huge = "99999999999999999999"
		for field := range 5 {
			s := pawl.Schedule{ID: fmt.Sprint("s", field), When: pawl.Every(time.Minute), Args: note{1}}
			require.NoError(t, q.Schedule(ctx, s))
			words := strings.Fields(e.Redis.HGet(ctx, "pawl:{mail}:schedules:state", s.ID).Val())
			words[[]int{1, 3, 5, 6, 7}[field]] = huge
			require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:schedules:state", s.ID, strings.Join(words, " ")).Err())
		}
		e.Pass(10 * time.Minute)
		infos, err := q.Schedules(ctx)
		require.NoError(t, err)
		for _, s := range infos {
			require.Greater(t, s.Fired, int64(5), "%+v", s)
		}
	})
}
