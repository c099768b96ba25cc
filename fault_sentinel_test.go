package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// watched is a master, its replica, three Sentinels, and an env whose client
// asks these for the master.
type watched struct {
	*env
	Master, Replica *redistest.Server
	Sentinels       *redistest.Sentinels
}

func underSentinels(t *testing.T) *watched {
	t.Helper()
	s := &watched{Master: redistest.Start(t)}
	s.Replica = redistest.StartReplica(t, s.Master)
	s.Sentinels = redistest.StartSentinels(t, s.Master, s.Replica)
	s.env = newEnv(t, s.Sentinels.FailoverClient(t), nil)
	return s
}

// put enqueues the notes from and below to.
func (e *env) put(queue string, from, to int, opts ...pawl.Option) []pawl.Enqueued {
	e.t.Helper()
	var notes []note
	for n := from; n < to; n++ {
		notes = append(notes, note{n})
	}
	jobs, err := e.Queue(queue).EnqueueMany(context.Background(), pawl.Items(notes, opts...))
	require.NoError(e.t, err)
	return jobs
}

// state is a job's, or "" if Redis does not know it.
func (e *env) state(queue string, id pawl.ID) pawl.State {
	e.t.Helper()
	info, err := e.Queue(queue).Get(context.Background(), id)
	if err != nil {
		require.ErrorIs(e.t, err, pawl.ErrNotFound)
		return ""
	}
	return info.State
}

// S1, durability: failover. The replica has stopped to hear of its master when that dies.
func TestAFailoverForgetsWhatWasNotReplicatedAndNothingElse(t *testing.T) {
	t.Parallel()
	s := underSentinels(t)
	const visibility = 2 * time.Second
	w := s.Worker("q", pawl.WorkerConfig{Concurrency: 4, VisibilityTimeout: visibility})
	var handled runs
	gate, end := make(chan struct{}), make(chan struct{})
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		handled.add(job.Args.N)
		switch n := job.Args.N; {
		case 100 <= n && n < 200:
			<-gate
		case 300 <= n && n < 304:
			<-end
		}
		return nil
	})
	stop := s.Start(w)
	s.put("q", 0, 100) // done before the replica lags
	s.Log.Wait(t, "done", 100)
	s.put("q", 100, 200) // enqueued before, four of them leased, and done while it lags
	later := s.put("q", 400, 410, pawl.Delay(time.Hour))
	s.Log.Wait(t, "started", 104)
	s.Replica.AwaitSync(t, s.Master)
	s.Replica.Lag()
	close(gate)
	s.Log.Wait(t, "done", 200)
	tail := s.put("q", 200, 300) // enqueued and done while it lags
	s.Log.Wait(t, "done", 300)
	tail = append(tail, s.put("q", 410, 460, pawl.Delay(time.Hour))...)
	tail = append(tail, s.put("q", 300, 304)...) // being run when the master dies
	s.Log.Wait(t, "started", 304)

	s.Sentinels.Kill(s.Master)
	killed := time.Now()
	fresh, err := s.Queue("q").Enqueue(within(t, 15*time.Second), note{500})
	require.NoError(t, err)
	measured(t, "S1", "an enqueue after the kill", time.Since(killed))
	close(end)
	s.Log.Wait(t, "lost", 4)
	s.Log.Wait(t, "done", 301)
	resumed := time.Since(killed)
	s.Log.Wait(t, "done", 401)
	measured(t, "S1", "a job done after the kill", resumed)
	measured(t, "S1", "the jobs whose ends were lost done", time.Since(killed))
	require.Less(t, time.Since(killed), 10*time.Second+visibility)
	for _, job := range tail {
		require.Empty(t, s.state("q", job.ID))
		require.Less(t, job.ID.String(), fresh.ID.String(), "ids go on rising")
	}
	for _, job := range later {
		require.Equal(t, pawl.StateDelayed, s.state("q", job.ID))
	}
	require.NoError(t, stop())
	require.Len(t, s.Log.Of("lost"), 4)
	handled.mu.Lock()
	for n, times := range handled.of {
		want := 1
		if 100 <= n && n < 200 { // their ends were forgotten
			want = 2
		}
		require.Equal(t, want, times, "note %d", n)
	}
	handled.mu.Unlock()
	stats, err := s.Queue("q").Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, pawl.Counters{Enqueued: 211, Started: 205, Done: 201, Crashed: 4}, stats.Total)
	require.EqualValues(t, len(later), stats.Delayed)
	require.Zero(t, stats.Ready+stats.Running+stats.Dead)
}

// S2. The old master lives on and takes writes until Sentinel makes a replica
// of it.
func TestAFailoverWhileTheOldMasterLivesFencesItsLeases(t *testing.T) {
	t.Parallel()
	s := underSentinels(t)
	s.put("q", 0, 1)
	s.Replica.AwaitSync(t, s.Master)
	s.Replica.Lag()
	var cause error
	taken, returned := make(chan struct{}), make(chan struct{})
	old := s.Worker("q", pawl.WorkerConfig{Concurrency: 1, VisibilityTimeout: 2 * time.Second})
	pawl.Handle(old, func(ctx context.Context, job *pawl.Job[note]) error {
		<-ctx.Done()
		cause = context.Cause(ctx)
		<-taken
		return nil // it claims success all the same
	})
	stopOld := s.Start(old)
	s.Log.Wait(t, "started", 1)
	s.Sentinels.Failover()
	began := time.Now()
	s.Sentinels.AwaitMaster(s.Replica)
	next := s.Worker("q", pawl.WorkerConfig{})
	pawl.Handle(next, func(context.Context, *pawl.Job[note]) error {
		close(taken)
		<-returned
		return nil
	})
	stopNext := s.Start(next)
	<-taken

	// Whoever does not know of the failover is told nothing, until Sentinel makes
	// a replica of the old master.
	past := newEnv(t, s.Master.Client(t), nil).Client.Queue("q")
	var lost []pawl.ID
	var err error
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	// Sentinel cuts all connections of the master that it demotes, and that is
	// unconfirmed to a call that was under way.
	for err == nil || errors.Is(err, pawl.ErrUnconfirmed) {
		<-every.C
		var job pawl.Enqueued
		if job, err = past.Enqueue(within(t, time.Second), note{}); err == nil {
			lost = append(lost, job.ID)
		}
		require.Less(t, time.Since(began), 15*time.Second, "the old master is demoted")
	}
	require.ErrorContains(t, err, "READONLY")
	require.NotErrorIs(t, err, pawl.ErrUnconfirmed, "refused, and it says so")
	require.NotEmpty(t, lost)
	t.Logf("the old master took %d jobs", len(lost))
	measured(t, "S2", "the old master refuses", time.Since(began)-time.Second)
	for _, id := range lost {
		require.Empty(t, s.state("q", id))
	}

	require.NoError(t, stopOld(), "its outcome was answered")
	require.ErrorIs(t, cause, pawl.ErrLeaseLost)
	require.Len(t, s.Log.Of("lost"), 1)
	require.Empty(t, s.Log.Of("done"))
	close(returned)
	s.Log.Wait(t, "done", 1)
	require.NoError(t, stopNext())
	stats, err := s.Queue("q").Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, pawl.Counters{Enqueued: 1, Started: 1, Done: 1}, stats.Total)
}

// S2, case 11 (redis-py#460). A client that went on writing to the old master, a
// replica now.
func TestWritingGoesOnSoonAfterAFailover(t *testing.T) {
	t.Parallel()
	s := underSentinels(t)
	w := s.Worker("q", pawl.WorkerConfig{VisibilityTimeout: 2 * time.Second})
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
	stop := s.Start(w)
	s.put("q", 0, 50)
	s.Log.Wait(t, "done", 50)
	s.Sentinels.Failover()
	began := time.Now()
	promoted, err := pawl.New(s.Replica.Client(t), pawl.Config{})
	require.NoError(t, err)
	redistest.Eventually(t, "the new master takes an enqueue", func(ctx context.Context) bool {
		_, err := s.Queue("q").Enqueue(within(t, 5*time.Second), note{})
		require.NoError(t, err, "no caller sees an error")
		stats, err := promoted.Queue("q").Stats(ctx)
		return err == nil && s.Replica.Role(ctx) == "master" && stats.Total.Enqueued > 50
	})
	require.Less(t, time.Since(began), 10*time.Second)
	measured(t, "case 11", "an enqueue at the new master", time.Since(began))
	redistest.Eventually(t, "the old master is a replica", func(ctx context.Context) bool { return s.Master.Role(ctx) == "slave" })
	more := s.put("q", 50, 100)
	redistest.Eventually(t, "all is done", func(context.Context) bool {
		for _, job := range more {
			if s.state("q", job.ID) != "" {
				return false
			}
		}
		return true
	})
	require.NoError(t, stop())
}
