package pawl_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// What the options of jobs promise holds for the jobs of a schedule.
func TestASchedulesJobsWithEachOption(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts    []pawl.Option
		overlap pawl.Overlap
		took    time.Duration
		ran     [2]int
	}{
		"retain":                  {[]pawl.Option{pawl.Retain(time.Hour)}, 0, 0, [2]int{20, 20}},
		"retain, no overlap":      {[]pawl.Option{pawl.Retain(time.Hour)}, pawl.OverlapSkip, 0, [2]int{20, 20}},
		"retain, skipped":         {[]pawl.Option{pawl.Retain(time.Hour)}, pawl.OverlapSkip, 15 * time.Second, [2]int{10, 10}},
		"then":                    {[]pawl.Option{pawl.Then{Args: note{2}}}, 0, 0, [2]int{40, 40}},
		"then of one key":         {[]pawl.Option{pawl.Then{Args: note{2}, Options: []pawl.Option{pawl.Unique{Key: "k"}}}}, 0, 0, [2]int{40, 40}},
		"replace":                 {[]pawl.Option{pawl.Unique{Key: "k", OnDuplicate: pawl.ReplaceWaiting}}, 0, 15 * time.Second, [2]int{10, 11}},
		"latest":                  {[]pawl.Option{pawl.Unique{Key: "k", OnDuplicate: pawl.RunLatestAfter}}, 0, 15 * time.Second, [2]int{13, 14}},
		"reject":                  {[]pawl.Option{pawl.Unique{Key: "k", OnDuplicate: pawl.RejectDuplicate}}, 0, 15 * time.Second, [2]int{10, 11}},
		"a window":                {[]pawl.Option{pawl.Unique{Key: "k", For: 35 * time.Second}}, 0, 0, [2]int{5, 6}},
		"delay":                   {[]pawl.Option{pawl.Delay(3 * time.Second)}, 0, 0, [2]int{20, 20}},
		"delay, no overlap":       {[]pawl.Option{pawl.Delay(15 * time.Second)}, pawl.OverlapSkip, 0, [2]int{9, 10}},
		"priority":                {[]pawl.Option{pawl.Priority(5)}, 0, 0, [2]int{20, 20}},
		"priority, latest, delay": {[]pawl.Option{pawl.Priority(5), pawl.Delay(time.Second), pawl.Unique{Key: "k", OnDuplicate: pawl.RunLatestAfter}}, 0, 0, [2]int{20, 20}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				q, ctx := e.Queue("mail"), t.Context()
				var mu sync.Mutex
				ran := 0
				for range 2 {
					e.Start(e.process(t, "mail", func(ctx context.Context, job *pawl.Job[note]) error {
						if c.took > 0 {
							<-time.After(c.took)
						}
						mu.Lock()
						defer mu.Unlock()
						ran++
						return nil
					}))
				}
				require.NoError(t, q.Schedule(ctx, pawl.Schedule{ID: "s", When: pawl.Every(10 * time.Second), Args: note{1}, Options: c.opts, Overlap: c.overlap}))
				e.Pass(205 * time.Second)
				require.NoError(t, q.PauseSchedule(ctx, "s"))
				e.Pass(time.Minute)
				info := only(t, q)
				require.EqualValues(t, 20, info.Fired+info.Skipped, "%+v", info)
				mu.Lock()
				defer mu.Unlock()
				require.True(t, c.ran[0] <= ran && ran <= c.ran[1], "%d ran: %+v", ran, info)
			})
		})
	}
}

// A job that died is redriven while the schedule, which does not overlap, goes on.
func TestADeadTickIsRedriven(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		var mu sync.Mutex
		bad, running, most := true, 0, 0
		for range 2 {
			e.Start(e.process(t, "mail", func(ctx context.Context, job *pawl.Job[note]) error {
				mu.Lock()
				running++
				most = max(most, running)
				fail := bad
				mu.Unlock()
				<-time.After(8 * time.Second)
				mu.Lock()
				running--
				mu.Unlock()
				if fail {
					return fmt.Errorf("bad")
				}
				return nil
			}))
		}
		require.NoError(t, q.Schedule(ctx, pawl.Schedule{ID: "s", When: pawl.Every(10 * time.Second), Args: note{1},
			Overlap: pawl.OverlapSkip, Options: []pawl.Option{pawl.MaxAttempts(1)}}))
		e.Pass(55 * time.Second)
		mu.Lock()
		bad = false
		mu.Unlock()
		s, err := q.Stats(ctx)
		require.NoError(t, err)
		require.GreaterOrEqual(t, s.Dead, int64(4))
		e.Pass(6 * time.Second)
		res, err := q.Dead().RedriveAll(ctx, pawl.DeadFilter{}, pawl.Redrive{})
		require.NoError(t, err)
		require.Equal(t, int(res.Matched), int(res.Moved)+len(res.Refused))
		require.NotEmpty(t, res.Refused, "the key is another job's")
		e.Pass(5 * time.Minute)
		require.NoError(t, q.PauseSchedule(ctx, "s"))
		e.Pass(time.Minute)
		info := only(t, q)
		s, err = q.Stats(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, most)
		require.EqualValues(t, len(res.Refused), s.Dead, "they are there still")
		require.EqualValues(t, 36, info.Fired+info.Skipped, "%+v", info)
	})
}
