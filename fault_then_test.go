package pawl_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// follows is the handler of notes below 100: each is followed by one in its own queue,
// and by one in another.
func follows(job *pawl.RawJob, n int, other string) {
	if n < 100 {
		job.Then(note{100 + n})
		job.ThenOn(other, note{n})
	}
}

// N3, N1. Whatever is cut on the way of an acknowledgement, or of what goes to another queue
// before it: each job that was done is followed once, in each way.
func TestEachJobIsFollowedOnceThoughAnswersAreLost(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, verb := range []string{"finish", "enqueue"} {
		eachCut(t, server, verb, func(t *testing.T, f *faulty, fault redistest.Fault) {
			queue, other := freshQueue(), freshQueue()
			const jobs = 6
			f.put(t, queue, jobs, pawl.Then{Args: note{200}}, pawl.Retain(time.Hour))
			fired := f.Proxy.On(verb, 1, fault)
			f.Proxy.On(verb, 2, fault)
			f.Proxy.On(verb, 4, fault)
			w := f.Worker(queue, pawl.WorkerConfig{Concurrency: 2, Backoff: pawl.Backoff{Base: time.Millisecond}})
			pawl.HandleResult(w, func(_ context.Context, job *pawl.Job[note]) (int, error) {
				follows(&job.RawJob, job.Args.N, other)
				return job.Args.N, nil
			})
			stop := f.Start(w)
			f.Log.Wait(t, "done", 3*jobs)
			require.NoError(t, stop())
			f.Proxy.Release()
			<-fired
			total := f.Total(t, queue)
			require.EqualValues(t, 3*jobs, total.Enqueued)
			require.EqualValues(t, 3*jobs, total.Done)
			require.EqualValues(t, jobs, f.Total(t, other).Enqueued)
			s, err := f.past.Queue(queue).Stats(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, jobs, s.Done, "each of them is kept, once")
			require.Empty(t, f.Log.Of("lost"))
		})
	}
}

var followedKills = map[string]killPoint{
	"after the lease was answered":   {"follow", true, lines("started"), 0},
	"before its run was over":        {"follow, then wait", false, lines("effect"), 0},
	"before the finish arrived":      {"follow", false, cut("finish", redistest.Late, redistest.Drop), 0},
	"before the finish was answered": {"follow", false, cut("finish", redistest.RunDropReplyAndHold, redistest.RunDropReplyAndHold), 5},
}

// W1. A worker is killed at each point: what it did not acknowledge was not followed in its own
// queue, and once another worker has ended all, each job was followed once, in each way.
func TestEachJobOfAKilledWorkerIsFollowedOnce(t *testing.T) {
	t.Parallel()
	for name, point := range followedKills {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const jobs, visibility = 5, 2 * time.Second
			f := behindProxy(t, redistest.Start(t), 0)
			f.put(t, "q", jobs, pawl.MaxAttempts(1))
			reached := point.set(f)
			p := victim{Addr: f.Proxy.Addr(), Queue: "q", Visibility: visibility, Do: point.do, HoldStart: point.holdStart}.run(t)
			reached(t, p)
			p.kill()
			total := f.Total(t, "q")
			require.LessOrEqual(t, total.Done, int64(point.effects))
			require.Equal(t, jobs+total.Done, total.Enqueued, "followed if, and only if, it was acknowledged")

			w, err := pawl.NewWorker(f.pastWithLog(t), pawl.WorkerConfig{Queues: pawl.Queues("q"), VisibilityTimeout: visibility})
			require.NoError(t, err)
			pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
				follows(&job.RawJob, job.Args.N, "other")
				return nil
			})
			stop := f.Start(w)
			redistest.Eventually(t, "all are done", func(context.Context) bool { return f.Total(t, "q").Done == 2*jobs })
			require.NoError(t, stop())
			before := layout(t, f.env, "q")
			f.Proxy.Release() // what the dead one had sent
			require.Equal(t, before, layout(t, f.env, "q"), "a late packet of the dead worker changes nothing")
			total = f.Total(t, "q")
			require.EqualValues(t, 2*jobs, total.Enqueued)
			require.EqualValues(t, 2*jobs, total.Done)
			other := f.Total(t, "other")
			require.EqualValues(t, jobs, other.Enqueued, fmt.Sprint(other))
			f.Queue("other")
		})
	}
}

// E5. A right that is taken away while a job runs: what it leaves is not lost with the call
// that is cut short, nor is it there twice when that is sent again.
func TestNothingThatAJobLeavesIsLostWithARight(t *testing.T) {
	t.Parallel()
	for _, right := range []string{"xadd", "hset", "zadd", "set", "xdel", "hdel", "zrem"} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			e := newEnvAs(t, s.Client(t), logIn(t, s, s.Addr(), 0), nil)
			q, ctx := e.Queue("q"), within(t, time.Minute)
			const followers = 4
			var y runs
			w := e.Worker("q", pawl.WorkerConfig{})
			pawl.HandleResult(w, func(_ context.Context, job *pawl.Job[note]) (int, error) {
				if job.Args.N < followers {
					y.add(job.Args.N)
					return 0, nil
				}
				job.Then(note{0})
				job.Then(note{1}, pawl.Delay(time.Millisecond))
				job.Then(note{2}, pawl.Priority(3))
				job.Then(note{3}, pawl.Unique{Key: "u"})
				s.SetUser(t, "pawl", rules(t, "pawl", right)...)
				return 7, nil
			})
			job, err := q.Enqueue(ctx, note{followers}, pawl.Retain(time.Hour))
			require.NoError(t, err)
			e.Start(w)
			redistest.Eventually(t, right+" is missed", func(ctx context.Context) bool {
				entries, err := e.Redis.ACLLog(ctx, 100).Result()
				return err == nil && slices.ContainsFunc(entries, func(e *redis.ACLLogEntry) bool { return e.Object == right })
			})
			s.SetUser(t, "pawl", rules(t, "pawl")...)
			var info pawl.JobInfo
			redistest.Eventually(t, "all have run", func(ctx context.Context) bool {
				info, err = q.Get(ctx, job.ID)
				stats, again := q.Stats(ctx)
				return err == nil && again == nil && info.State == pawl.StateDone && stats.Total.Started > followers &&
					stats.Ready+stats.Delayed+stats.Running == 0
			})
			require.Equal(t, "7", string(info.Result))
			y.each(t, followers, 1)
		})
	}
}
