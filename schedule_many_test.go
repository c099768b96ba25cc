package pawl_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// What does not fit one call comes in several, oldest first.
func TestLargeJobsThatWereMissed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		require.NoError(t, q.Schedule(ctx, pawl.Schedule{ID: "s", When: pawl.Every(time.Minute), Missed: pawl.MissedAll,
			Args: pawl.Raw{Name: "note", Payload: []byte(`{"n":1,"x":"` + strings.Repeat("x", 200<<10) + `"}`)}}))
		e.Pass(150*time.Minute + 30*time.Second)
		var seen ticks
		w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 1})
		pawl.Handle(w, seen.handle)
		e.Start(w)
		e.Log.Wait(t, "done", 100)
		all := seen.all()
		for i := range all {
			require.Equal(t, all[0].Add(time.Duration(i)*time.Minute), all[i])
		}
		info := only(t, q)
		require.EqualValues(t, 100, info.Fired)
		require.EqualValues(t, 50, info.Missed)
		require.Equal(t, all[99].Add(time.Minute), info.Next)
	})
}

// Hundreds of schedules that are due at once, three workers.
func TestManySchedulesAreDueAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		const many = 250
		list := make([]pawl.Schedule, many)
		for i := range list {
			list[i] = pawl.Schedule{ID: fmt.Sprint("s", i), When: pawl.Cron("* * * * *"), Args: note{i}}
		}
		require.NoError(t, q.Schedule(ctx, list...))
		var mu sync.Mutex
		ran := map[string]int{}
		for range 3 {
			e.Start(e.process(t, "mail", func(_ context.Context, job *pawl.Job[note]) error {
				mu.Lock()
				defer mu.Unlock()
				ran[fmt.Sprint(job.Schedule, " ", job.ScheduledAt)]++
				return nil
			}))
		}
		e.Pass(5*time.Minute + 30*time.Second)
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, ran, 5*many)
		for tick, n := range ran {
			require.Equal(t, 1, n, tick)
		}
		require.NoError(t, q.SyncSchedules(ctx, nil))
	})
}
