package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// E1. Every 50 ms the server forgets all scripts, and before each call of this
// test once more.
func TestEveryCallSurvivesAServerThatForgetsItsScripts(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := newEnv(t, s.Client(t), nil)
	var flushes sync.WaitGroup
	flushing, end := context.WithCancel(context.Background())
	defer func() { end(); flushes.Wait() }()
	flush := func() { require.NoError(t, e.Redis.ScriptFlush(context.Background()).Err()) }
	flushes.Go(func() {
		every := time.NewTicker(50 * time.Millisecond)
		defer every.Stop()
		for flushing.Err() == nil {
			if err := e.Redis.ScriptFlush(context.Background()).Err(); err != nil {
				t.Error(err)
			}
			<-every.C
		}
	})

	l := e.load("q", 10*time.Second, e.same) // its round trips are pipelines
	// Long handlers, so that leases are renewed, and all ends there are.
	w := e.Worker("ends", pawl.WorkerConfig{Concurrency: 3, VisibilityTimeout: 4 * time.Second, DrainTimeout: time.Millisecond})
	var handled runs
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
		first := handled.add(job.Args.N) == 1
		switch {
		case job.Args.N == 0:
			<-time.After(3 * time.Second)
		case job.Args.N == 1 && first:
			return pawl.Snooze(time.Millisecond)
		case job.Args.N == 2 && first:
			return pawl.Permanent(errors.New("no"))
		case job.Args.N == 3 && first:
			<-ctx.Done()
			return context.Cause(ctx)
		case job.Args.N == 4 && first:
			return pawl.RetryAfter(0, errors.New("again"))
		}
		return nil
	})
	q := e.Queue("ends")
	flush()
	jobs := e.put("ends", 0, 10)
	later := e.put("ends", 10, 13, pawl.Delay(time.Hour))
	stop := e.Start(w)
	dead := e.Log.Wait(t, "dead", 1)[0].Job.ID
	var report pawl.RedriveReport
	for what, call := range map[string]func(ctx context.Context) error{
		"get":        func(ctx context.Context) error { _, err := q.Get(ctx, jobs[0].ID); return found(err) },
		"cancel":     func(ctx context.Context) error { return q.Cancel(ctx, later[0].ID) },
		"reschedule": func(ctx context.Context) error { return q.Reschedule(ctx, later[1].ID, time.Now().Add(2*time.Hour)) },
		"run now":    func(ctx context.Context) error { return q.RunNow(ctx, later[2].ID) },
		"stats":      func(ctx context.Context) error { _, err := q.Stats(ctx); return err },
		"workers":    func(ctx context.Context) error { _, err := e.Client.Workers(ctx); return err },
		"list": func(ctx context.Context) error {
			for _, err := range q.List(ctx, pawl.StateDelayed, pawl.Filter{}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"pause":   func(ctx context.Context) error { return errors.Join(q.Pause(ctx, time.Hour), q.Resume(ctx)) },
		"check":   func(ctx context.Context) error { _, err := q.Check(ctx); return err },
		"redrive": func(ctx context.Context) (err error) { report, err = q.Dead().Redrive(ctx, dead); return err },
	} {
		flush()
		require.NoError(t, call(within(t, patience)), what)
	}
	require.Equal(t, 1, report.Moved)
	redistest.Eventually(t, "all but one are done", func(ctx context.Context) bool {
		stats, err := q.Stats(ctx)
		return err == nil && stats.Total.Done == 10 && stats.Running == 1
	})
	l.more(50)
	l.once(t, l.end("q"))
	flush()
	var drained *pawl.DrainError
	require.ErrorAs(t, stop(), &drained)
	require.Len(t, drained.Released, 1, fmt.Sprint(drained))
	require.Empty(t, e.Log.Of("outage"), "it is nothing to a worker")
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, pawl.Counters{Enqueued: 13, Started: 14, Done: 10, Failed: 2, Retried: 1, Snoozed: 1, Dead: 1, Redriven: 1,
		Cancelled: 1, Released: 1}, stats.Total)
	require.EqualValues(t, 1, stats.Delayed)
	require.EqualValues(t, 1, stats.Ready)
}

// found is err, but nil for a job that is over.
func found(err error) error {
	if errors.Is(err, pawl.ErrNotFound) {
		return nil
	}
	return err
}
