package pawl_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// Case 2. A crash is not an attempt: a job of one attempt runs again after each
// kill of its worker, until MaxCrashes buries it unrun.
func TestAJobOfOneAttemptIsBuriedByItsCrashesAlone(t *testing.T) {
	t.Parallel()
	const visibility, maxCrashes = time.Second, 3
	server := redistest.Start(t)
	e := newEnv(t, server.Client(t), nil)
	q := e.Queue("q")
	job, err := q.Enqueue(t.Context(), note{}, pawl.MaxAttempts(1), pawl.MaxCrashes(maxCrashes))
	require.NoError(t, err)
	v := victim{Addr: server.Addr(), Queue: "q", Visibility: visibility, Do: "heed"}
	p := v.run(t)
	var killed time.Time
	for n := range maxCrashes {
		require.True(t, p.await("started "+job.ID.String()))
		if n > 0 {
			measured(t, "case 2", "it ran again", time.Since(killed))
		}
		info, err := q.Get(t.Context(), job.ID)
		require.NoError(t, err)
		require.Equal(t, n, info.Crashes)
		require.Equal(t, 1, info.Attempt, "it is the first still")
		killed = time.Now()
		p.kill()
		p = v.run(t)
	}
	require.True(t, p.await("dead "+job.ID.String()), "the next worker buries it")
	dead, err := q.Dead().Get(t.Context(), job.ID)
	require.NoError(t, err)
	require.Equal(t, pawl.ReasonCrashed, dead.Reason)
	require.Equal(t, maxCrashes, dead.Crashes)
	s, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, pawl.Counters{Enqueued: 1, Started: maxCrashes + 1 + s.Total.Released, Released: s.Total.Released, Crashed: maxCrashes, Dead: 1}, s.Total)
}

// Case 14. Workers are killed again and again just when due jobs were given to
// them: none is lost, and none runs twice but those that a killed worker held.
// PAWL_FAULT_DUE says how many jobs.
func TestWorkersKilledWhileManyJobsComeDueLoseNone(t *testing.T) {
	t.Parallel()
	jobs := amount(t, "PAWL_FAULT_DUE", 1500)
	const kills, visibility, slots = 4, time.Second, 100
	f := behindProxy(t, redistest.Start(t), 0)
	f.Queue("q")
	notes := make([]note, jobs)
	for i := range notes {
		notes[i].N = i
	}
	at := time.Now().Add(time.Second)
	half := jobs / 2 // with a priority they wait elsewhere once they are due
	for _, part := range []struct {
		notes []note
		opts  []pawl.Option
	}{{notes[:half], nil}, {notes[half:], []pawl.Option{pawl.Priority(5)}}} {
		opts := append(part.opts, pawl.At(at), pawl.MaxCrashes(kills+1))
		_, err := f.past.Queue("q").EnqueueMany(t.Context(), pawl.Items(part.notes, opts...))
		require.NoError(t, err)
	}
	for range kills {
		before := f.Total(t, "q").Started
		p := victim{Addr: f.Proxy.Addr(), Queue: "q", Visibility: visibility, Concurrency: slots, Do: "effect", Silent: true}.run(t)
		redistest.Eventually(t, "it runs due jobs", func(context.Context) bool { return f.Total(t, "q").Started > before })
		given := f.Proxy.On("lease", f.Proxy.Calls("lease")+2, redistest.RunDropReplyAndHold)
		came(t, "a lease", given)
		p.kill()
	}
	before := f.Total(t, "q")
	require.Less(t, before.Done, int64(jobs), "there was something left to do")
	w, err := pawl.NewWorker(f.pastWithLog(t), pawl.WorkerConfig{Queues: pawl.Queues("q"), VisibilityTimeout: visibility, Concurrency: 50})
	require.NoError(t, err)
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
		return f.Direct.HIncrBy(ctx, effects("q"), fmt.Sprint(job.Args.N), 1).Err()
	})
	start := time.Now()
	stop := f.Start(w)
	f.Log.Wait(t, "done", jobs-int(before.Done))
	measured(t, "case 14", fmt.Sprintf("the rest of %d due jobs was done", jobs), time.Since(start))
	require.NoError(t, stop())
	total := f.run(t, "q")
	require.Positive(t, total.Crashed)
	require.LessOrEqual(t, total.Crashed, int64(kills*slots))
	require.Equal(t, pawl.Counters{Enqueued: int64(jobs), Started: int64(jobs) + total.Crashed, Crashed: total.Crashed, Done: int64(jobs)}, total)
	times := f.Direct.HGetAll(t.Context(), effects("q")).Val()
	require.Len(t, times, jobs)
	more := int64(0)
	for _, text := range times {
		var n int64
		_, err := fmt.Sscan(text, &n)
		require.NoError(t, err)
		more += n - 1
	}
	require.LessOrEqual(t, more, total.Crashed, "no job ran twice but those of killed workers")
}
