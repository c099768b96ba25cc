package pawl_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// L1. Two redrives at once, one of them killed in the middle, while others purge:
// every job is moved once.
func TestARedriveThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	e := newEnv(t, server.Client(t), nil)
	q, ctx := e.Queue("mail"), t.Context()
	const n = 1000
	ids := die(t, e, n)
	killed := startChild(t, "redrive", server.Addr(), time.Second)
	require.True(t, killed.await("redrive"))
	redistest.Eventually(t, "the child redrives", func(context.Context) bool {
		s, err := q.Stats(ctx)
		return err == nil && s.Total.Redriven > 0
	})
	var others sync.WaitGroup
	purged, moved := make(chan int, 20), make(chan int, 2)
	for _, text := range []string{"7", "13", "99"} {
		others.Go(func() {
			for range 3 {
				got, err := q.Dead().Purge(ctx, pawl.DeadFilter{Error: text, Limit: 30})
				require.NoError(t, err)
				purged <- got
			}
		})
	}
	others.Go(func() {
		report, err := q.Dead().RedriveAll(ctx, pawl.DeadFilter{Limit: 700}, pawl.Redrive{Over: 2 * time.Second})
		require.NoError(t, err)
		require.Empty(t, report.Refused)
		moved <- report.Moved
	})
	redistest.Eventually(t, "both redrive", func(context.Context) bool {
		s, err := q.Stats(ctx)
		return err == nil && s.Total.Redriven > 200
	})
	killed.kill()
	others.Wait()
	close(purged)
	s, err := q.Stats(ctx)
	require.NoError(t, err)
	gone := 0
	for got := range purged {
		gone += got
	}
	require.EqualValues(t, gone, s.Total.Purged)
	require.EqualValues(t, n, s.Ready+s.Total.Purged+s.Dead)
	require.Equal(t, s.Total.Redriven, s.Ready, "each was moved once")
	require.Positive(t, s.Dead)
	require.Less(t, int64(<-moved), s.Total.Redriven, "the one that was killed moved some")

	states := map[pawl.State]int64{}
	for _, id := range ids {
		info, err := q.Get(ctx, id)
		if !errors.Is(err, pawl.ErrNotFound) {
			require.NoError(t, err)
		}
		states[info.State]++
	}
	require.Equal(t, map[pawl.State]int64{pawl.StateReady: s.Ready, pawl.StateDead: s.Dead, "": s.Total.Purged}, states)

	// The call that was cut short can be made again.
	report, err := q.Dead().RedriveAll(ctx, pawl.DeadFilter{}, pawl.Redrive{})
	require.NoError(t, err)
	require.EqualValues(t, s.Dead, report.Moved)
}

// Calls whose requests or answers are lost happen once all the same.
func TestACallAboutTheDeadWithALostAnswerHappensOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range cuts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := behindProxy(t, redistest.Start(t), 100*time.Millisecond)
			d, ctx := f.Queue("mail").Dead(), within(t, time.Minute)
			ids := die(t, f.env, 30)
			for _, verb := range []string{"redrive", "delete", "deaths"} {
				f.Proxy.On(verb, 1, fault)
			}
			report, err := d.RedriveAll(ctx, pawl.DeadFilter{Limit: 10}, pawl.Redrive{})
			require.NoError(t, err)
			require.Equal(t, 10, report.Moved)
			n, err := d.Purge(ctx, pawl.DeadFilter{Limit: 5})
			require.NoError(t, err)
			require.Equal(t, 5, n)
			require.Equal(t, ids[15:], idsOfDead(listedDead(t, f.env, pawl.DeadFilter{})))
			f.Proxy.Release()
			total := f.Total(t, "mail")
			require.EqualValues(t, 10, total.Redriven)
			require.EqualValues(t, 5, total.Purged)
		})
	}
}
