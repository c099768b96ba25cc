package pawl_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// killPoint is a moment in the life of a worker with five jobs. It returns once
// all five are there, and killing it then leaves them so.
type killPoint struct {
	do        string
	holdStart bool
	set       func(f *faulty) (reached func(t *testing.T, p *process))
	effects   int // of each job's handler in the killed worker
}

// lines is reached when the child has told five times what begins with word.
func lines(word string) func(*faulty) func(*testing.T, *process) {
	return func(*faulty) func(*testing.T, *process) {
		return func(t *testing.T, p *process) {
			for range 5 {
				require.True(t, p.await(word))
			}
		}
	}
}

// cut is reached when the first call of a script has met its fault.
func cut(name string, first, others redistest.Fault) func(*faulty) func(*testing.T, *process) {
	return func(f *faulty) func(*testing.T, *process) {
		f.Proxy.On(name, 0, others)
		fired := f.Proxy.On(name, 1, first)
		return func(t *testing.T, p *process) {
			if name == "settle" || name == "finish" { // not before every handler has done its work
				lines("started")(f)(t, p)
				redistest.Eventually(t, "all effects are there", func(ctx context.Context) bool {
					return f.Direct.HLen(ctx, effects("q")).Val() == 5
				})
			}
			came(t, "the call that is cut", fired)
		}
	}
}

var killPoints = map[string]killPoint{
	"before the lease was answered":  {"effect", false, cut("lease", redistest.RunDropReplyAndHold, redistest.RunDropReplyAndHold), 0},
	"after the lease was answered":   {"effect", true, lines("started"), 0},
	"while the handler ran":          {"heed", false, lines("started"), 0},
	"after the effect":               {"effect, then wait", false, lines("effect"), 1},
	"before the settle arrived":      {"effect", false, cut("settle", redistest.Late, redistest.Drop), 1},
	"before the settle was answered": {"effect", false, cut("settle", redistest.RunDropReplyAndHold, redistest.RunDropReplyAndHold), 1},
}

// W1, case 6. A worker with five running jobs is killed at each point: another
// one, which waits for work, runs those that were not settled, and no others.
func TestAWorkerKilledAtAnyPointLosesNoJob(t *testing.T) {
	t.Parallel()
	for name, point := range killPoints {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const jobs, visibility = 5, 2 * time.Second
			f := behindProxy(t, redistest.Start(t), 0)
			f.put(t, "q", jobs, pawl.MaxAttempts(1))
			reached := point.set(f)
			p := victim{Addr: f.Proxy.Addr(), Queue: "q", Visibility: visibility, Do: point.do, HoldStart: point.holdStart}.run(t)
			reached(t, p)

			w, err := pawl.NewWorker(f.pastWithLog(t), pawl.WorkerConfig{Queues: pawl.Queues("q"), VisibilityTimeout: visibility})
			require.NoError(t, err)
			pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
				return f.Direct.HIncrBy(ctx, effects("q"), fmt.Sprint(job.Args.N), 1).Err()
			})
			stop := f.Start(w)
			killed := time.Now()
			p.kill()
			settled := f.Total(t, "q").Done
			again := jobs - int(settled)
			if point.effects == 0 {
				require.Zero(t, settled)
			}
			f.Log.Wait(t, "done", again)
			took := time.Since(killed)
			measured(t, "W1", "killed "+name+": the last of 5 jobs was done", took)
			require.Less(t, took, 3*(visibility+2*time.Second))
			require.NoError(t, stop())

			before := layout(t, f.env, "q")
			f.Proxy.Release() // what the dead one had sent
			require.Equal(t, before, layout(t, f.env, "q"), "a late packet of the dead worker changes nothing")
			require.Equal(t, pawl.Counters{Enqueued: jobs, Started: jobs + int64(again), Crashed: int64(again), Done: jobs}, f.run(t, "q"))
			for _, e := range f.Log.Of("done") {
				require.Equal(t, 1, e.Job.Attempt, "a crash spends no attempt")
				require.Equal(t, 1, e.Job.Crashes)
			}
			happened := 0
			for _, n := range f.Direct.HVals(t.Context(), effects("q")).Val() {
				var times int
				_, err := fmt.Sscan(n, &times)
				require.NoError(t, err)
				happened += times
			}
			require.Equal(t, point.effects*jobs+again, happened, "twice exactly where a lease was lost")
		})
	}
}

// run is Total without the leases whose answer came so late, on a slow machine,
// that the jobs were given back unrun.
func (f *faulty) run(t *testing.T, queue string) pawl.Counters {
	t.Helper()
	total := f.Total(t, queue)
	total.Started -= total.Released
	total.Released = 0
	return total
}

// pastWithLog is a client past the proxy whose events are recorded.
func (f *faulty) pastWithLog(t *testing.T) *pawl.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: f.Server.Addr(), PoolSize: 64})
	t.Cleanup(func() { _ = rdb.Close() })
	c, err := pawl.New(rdb, pawl.Config{Hooks: []pawl.Hook{f.Log}})
	require.NoError(t, err)
	return c
}
