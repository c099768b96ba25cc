package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// L1. A redrive is cut at each of its calls, at each point of the call: each job is
// moved once, and one whose unique key is taken again stays dead, and is named. The
// tests of a killed redrive, of two at once and of a purge beside them are in
// dead_fault_test.go.
func TestARedriveThatIsCutAtEachCallMovesEachJobOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, fault := range cuts {
		for k := 1; k <= 3; k++ {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := behindProxy(t, server, 200*time.Millisecond)
				c, err := pawl.New(f.Redis, pawl.Config{Namespace: freshQueue(), Hooks: []pawl.Hook{f.Log}})
				require.NoError(t, err)
				f.Client = c
				q, ctx := f.Queue("mail"), within(t, time.Minute)
				ids := die(t, f.env, 39)
				ids = append(ids, die(t, f.env, 1, pawl.Unique{Key: "k"})...)
				taken, err := q.Enqueue(ctx, note{99}, pawl.Unique{Key: "k"}, pawl.Delay(time.Hour))
				require.NoError(t, err)
				f.Proxy.On("redrive", k, fault) // of three: 16 jobs a call
				begun := time.Now()
				report, err := q.Dead().Redrive(ctx, ids...)
				require.NoError(t, err)
				measured(t, "L1", "a redrive that was cut was over", time.Since(begun))
				require.Equal(t, 39, report.Moved)
				require.Equal(t, []pawl.RefusedRedrive{{ID: ids[39], Holder: taken.ID}}, report.Refused)
				f.Proxy.Release()
				s, err := q.Stats(ctx)
				require.NoError(t, err)
				require.EqualValues(t, []int64{39, 39, 1, 1}, []int64{s.Total.Redriven, s.Ready, s.Dead, s.Delayed})
			})
		}
	}
}

// L2. Retention and a purge take away what a list walks over: no entry is seen twice,
// none of those that stay is missed, and the walk ends.
func TestAListOfTheDeadGoesOnWhileTheyAreTrimmed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		const old, young = 600, 550 // more than a page each
		die(t, e, old)
		e.Pass(2 * time.Hour)
		kept := die(t, e, young)
		q, ctx := e.Queue("mail"), t.Context()
		var seen []pawl.ID
		for job, err := range q.Dead().List(ctx, pawl.DeadFilter{}) {
			require.NoError(t, err)
			seen = append(seen, job.ID)
			switch len(seen) {
			case 10: // amid the first page
				keeping(t, e, time.Hour, &undertaker{})
				e.Pass(time.Minute)
				require.Equal(t, young, deadLen(t, e))
			case 600:
				n, err := q.Dead().Purge(ctx, pawl.DeadFilter{Limit: 100})
				require.NoError(t, err)
				require.Equal(t, 100, n)
			}
		}
		require.Subset(t, seen, kept[100:])
		once := map[pawl.ID]bool{}
		for _, id := range seen {
			require.False(t, once[id], "twice")
			once[id] = true
		}
	})
}

// Self-healing: the index of the dead has gone and no worker runs. What is found by
// the walk of the stream is moved, and removed, and counted all the same.
func TestTheDeadAreMovedAndRemovedWithoutTheirIndex(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ids := die(t, e, 9)
		q, ctx := e.Queue("mail"), t.Context()
		require.NoError(t, e.Redis.Del(ctx, "pawl:{mail}:dead:index").Err())
		report, err := q.Dead().RedriveAll(ctx, pawl.DeadFilter{Limit: 4}, pawl.Redrive{})
		require.NoError(t, err)
		require.Equal(t, 4, report.Moved)
		n, err := q.Dead().Purge(ctx, pawl.DeadFilter{})
		require.NoError(t, err)
		require.Equal(t, 5, n)
		s, err := q.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, []int64{4, 4, 5, 0}, []int64{s.Ready, s.Total.Redriven, s.Total.Purged, s.Dead})
		info, err := q.Get(ctx, ids[0])
		require.NoError(t, err)
		require.Equal(t, pawl.StateReady, info.State)
	})
}

// Case 1. The lease of a running job disappears by a hand edit: its holder is told,
// and it runs again elsewhere within two visibility timeouts.
func TestAJobWhoseLeaseDisappearsRunsAgainSoon(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		const visibility = 2 * time.Second
		q, ctx := e.Queue("q"), t.Context()
		started := make(chan string, 4)
		worker := func(name string) {
			w := e.Worker("q", pawl.WorkerConfig{Name: name, VisibilityTimeout: visibility, Concurrency: 1})
			pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
				started <- name
				if job.Args.N > 0 || job.RawJob.Run == 0 {
					return nil
				}
				if len(e.Log.Of("started")) > 1 {
					return nil
				}
				<-ctx.Done()
				return context.Cause(ctx)
			})
			e.Start(w)
		}
		worker("first")
		_, err := q.Enqueue(ctx, note{0})
		require.NoError(t, err)
		<-started
		worker("second")
		require.EqualValues(t, 1, e.Redis.ZRem(ctx, "pawl:{q}:leases", e.Redis.HKeys(ctx, "pawl:{q}:runs").Val()[0]).Val())
		edited := time.Now()
		<-started
		took := time.Since(edited)
		measured(t, "case 1", "the job whose lease had gone ran again", took)
		require.Less(t, took, 3*(2*visibility+2*time.Second))
		e.Log.Wait(t, "done", 1)
		s, err := q.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, []int64{1, 1, 0}, []int64{s.Total.Done, s.Total.Healed, s.Total.Crashed})
	})
}
