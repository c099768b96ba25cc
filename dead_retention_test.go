package pawl_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// undertaker is a hook that keeps what was dropped.
type undertaker struct {
	mu      sync.Mutex
	dropped []pawl.DeadJob
	then    func(n int) // after the n-th, from 1
}

func (u *undertaker) Dropped(_ context.Context, d pawl.DeadJob) {
	u.mu.Lock()
	u.dropped = append(u.dropped, d)
	n := len(u.dropped)
	u.mu.Unlock()
	if u.then != nil {
		u.then(n)
	}
}

func (u *undertaker) ids() (ids []pawl.ID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return idsOfDead(u.dropped)
}

// keeping starts a worker of queue mail whose client keeps the dead so long.
func keeping(t *testing.T, e *env, retention time.Duration, u *undertaker) (stop func() error) {
	t.Helper()
	c := e.NewClient(pawl.Config{DeadRetention: retention, Hooks: []pawl.Hook{u}})
	w, err := pawl.NewWorker(c, pawl.WorkerConfig{Queues: pawl.Queues("mail"), Concurrency: 1, Name: "keeper"})
	require.NoError(t, err)
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error { return fmt.Errorf("failure %d", job.Args.N) })
	return e.Start(w)
}

func dropped(t *testing.T, e *env) int {
	t.Helper()
	s, err := e.Queue("mail").Stats(t.Context())
	require.NoError(t, err)
	return int(s.Total.Dropped)
}

// Case 20: 150 deaths, 50 of them older than the retention.
func TestRetentionDropsWhatIsTooOldAndNothingElse(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		old := die(t, e, 50, pawl.Header{Key: "tenant", Value: "a"})
		before := listedDead(t, e, pawl.DeadFilter{})
		e.Pass(2 * time.Hour)
		young := die(t, e, 100)
		e.Pass(10 * time.Minute) // lanes are forgotten
		keys := e.Mini.Keys()
		u := &undertaker{}
		stop := keeping(t, e, time.Hour, u)
		e.Pass(time.Second)
		require.NoError(t, stop())
		require.Equal(t, young, idsOfDead(listedDead(t, e, pawl.DeadFilter{})))
		require.Equal(t, 100, deadLen(t, e))
		require.EqualValues(t, 100, e.Redis.HLen(t.Context(), "pawl:{mail}:dead:index").Val())
		require.Equal(t, 50, dropped(t, e))
		require.Equal(t, old, u.ids())
		for i, d := range u.dropped {
			require.Equal(t, before[i].RawJob.Headers, d.RawJob.Headers)
			require.Equal(t, before[i].Error, d.Error)
			require.Equal(t, before[i].Payload, d.Payload)
			require.Equal(t, before[i].Position, d.Position)
			require.Equal(t, before[i].Errors, d.Errors)
		}
		e.Pass(10 * time.Minute)
		require.Subset(t, keys, e.Mini.Keys(), "no other key")
	})
}

func TestRetentionGoesOnWhileTheWorkerRuns(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		u := &undertaker{}
		keeping(t, e, time.Hour, u)
		for i := range 3 {
			_, err := e.Queue("mail").Enqueue(t.Context(), note{i}, pawl.MaxAttempts(1))
			require.NoError(t, err)
			e.Pass(20 * time.Minute)
		}
		require.LessOrEqual(t, deadLen(t, e), 3)
		e.Pass(2 * time.Minute)
		require.Equal(t, 2, deadLen(t, e))
		e.Pass(40 * time.Minute)
		require.Zero(t, deadLen(t, e))
		require.Len(t, u.ids(), 3)
		for _, d := range u.dropped {
			require.NotZero(t, d.DiedAt)
		}
	})
}

func TestTwoWorkersDropEachOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		const n = 1200 // more than a page
		ids := die(t, e, n)
		e.Pass(2 * time.Hour)
		a, b := &undertaker{}, &undertaker{}
		keeping(t, e, time.Hour, a)
		keeping(t, e, time.Hour, b)
		e.Pass(2 * time.Minute)
		require.ElementsMatch(t, ids, append(a.ids(), b.ids()...))
		require.Equal(t, n, dropped(t, e))
		require.Zero(t, deadLen(t, e))
	})
}

func TestAJobThatDiedAgainIsNotDroppedByItsOlderDeath(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		ids := die(t, e, 2)
		e.Pass(50 * time.Minute)
		_, err := e.Queue("mail").Dead().Redrive(t.Context(), ids[0])
		require.NoError(t, err)
		u := &undertaker{}
		keeping(t, e, time.Hour, u)
		e.Pass(20 * time.Minute)
		require.Equal(t, ids[1:], u.ids())
		require.Equal(t, ids[:1], idsOfDead(listedDead(t, e, pawl.DeadFilter{})))
	})
}

func TestForeverKeepsTheDead(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		die(t, e, 3)
		e.Pass(10 * 365 * 24 * time.Hour)
		keeping(t, e, pawl.Forever, &undertaker{})
		e.Pass(2 * time.Minute)
		require.Equal(t, 3, deadLen(t, e))
		u := &undertaker{}
		keeping(t, e, 0, u)
		e.Pass(2 * time.Minute)
		require.Len(t, u.ids(), 3, "the default is 30 days")
	})
}

func TestADroppedJobFreesNothingItDoesNotHold(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		die(t, e, 1, pawl.Unique{Key: "k"})
		held := pawl.Unique{Key: "k"}
		holder, err := e.Queue("mail").Enqueue(t.Context(), note{1}, held, pawl.Delay(24*time.Hour))
		require.NoError(t, err)
		e.Pass(2 * time.Hour)
		keeping(t, e, time.Hour, &undertaker{})
		e.Pass(time.Minute)
		require.Zero(t, deadLen(t, e))
		twin, err := e.Queue("mail").Enqueue(t.Context(), note{1}, held)
		require.NoError(t, err)
		require.True(t, twin.Duplicate)
		require.Equal(t, holder.ID, twin.ID)
	})
}

func TestAStrayEntryDoesNotStopRetention(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		for range 3 {
			require.NoError(t, e.Redis.Do(t.Context(), "XADD", "pawl:{mail}:dead", "*", "some", "thing").Err())
		}
		ids := die(t, e, 1)
		text := e.Redis.HKeys(t.Context(), "pawl:{mail}:dead:index").Val()[0]
		require.NoError(t, e.Redis.Do(t.Context(), "XADD", "pawl:{mail}:dead", "*", "i", text, "p", "nonsense").Err())
		e.Pass(2 * time.Hour)
		u := &undertaker{}
		keeping(t, e, time.Hour, u)
		e.Pass(time.Minute)
		require.Equal(t, ids, u.ids())
		require.Equal(t, 1, dropped(t, e))
		require.Zero(t, deadLen(t, e))
	})
}

// Whatever the hooks do: the worker shows that it lives, and each job is told.
func TestAHookOfTheDroppedDoesNotStopTheBeats(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(n int){
		"panics":             func(int) { panic("no") },
		"ends its goroutine": func(int) { runtime.Goexit() },
		"is slow":            func(int) { <-time.After(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				ids := die(t, e, 10)
				e.Pass(2 * time.Hour)
				u := &undertaker{then: then}
				stop := keeping(t, e, time.Hour, u)
				for range 15 {
					e.Pass(time.Minute)
					workers, err := e.Client.Workers(t.Context())
					require.NoError(t, err)
					require.Len(t, workers, 1)
					require.WithinDuration(t, time.Now(), workers[0].SeenAt, 11*time.Second)
				}
				require.Equal(t, ids, u.ids())
				one, err := e.Queue("mail").Enqueue(t.Context(), note{1}, pawl.MaxAttempts(1))
				require.NoError(t, err)
				e.Pass(65 * time.Minute)
				require.Equal(t, append(ids, one.ID), u.ids(), "it goes on")
				require.NoError(t, stop())
			})
		})
	}
}

func TestTheDefaultsOfRetention(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		for _, d := range []time.Duration{-2, -time.Hour, 101 * 366 * 24 * time.Hour} {
			_, err := pawl.New(e.Redis, pawl.Config{DeadRetention: d})
			require.ErrorIs(t, err, pawl.ErrInvalid)
		}
		for _, d := range []time.Duration{0, pawl.Forever, 1, 100 * 365 * 24 * time.Hour} {
			_, err := pawl.New(e.Redis, pawl.Config{DeadRetention: d})
			require.NoError(t, err)
		}
	})
}
