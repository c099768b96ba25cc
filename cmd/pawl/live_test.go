package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

type charge struct {
	Order int `json:"order"`
}

func (charge) Kind() string { return "charge" }

type welcome struct {
	User int `json:"user_id"`
}

func (welcome) Kind() string { return "welcome" }

type export struct {
	Report string `json:"report"`
}

func (export) Kind() string { return "export" }

type tally struct {
	Rows int `json:"rows"`
}

func (tally) Kind() string { return "count" }

// live makes a queue that has a job in each state, and a worker at work. It names the jobs.
func live(g *golden) {
	r := g.r
	q := r.client.Queue("emails")
	w, err := pawl.NewWorker(r.client, pawl.WorkerConfig{Queues: pawl.Queues("emails"), Name: "worker-1", Concurrency: 4, DrainTimeout: time.Millisecond})
	require.NoError(r.t, err)
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[charge]) error {
		return pawl.Permanent(fmt.Errorf("card of order %d was declined", job.Args.Order))
	})
	pawl.Handle(w, func(context.Context, *pawl.Job[welcome]) error { return errors.New("dial tcp: connection refused") }, pawl.MaxAttempts(1))
	pawl.HandleResult(w, func(_ context.Context, job *pawl.Job[tally]) (int, error) { return job.Args.Rows, nil })
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[export]) error {
		if err := job.Progress(ctx, 40, "2 of 5 sheets"); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	put := func(name string, args pawl.Args, opts ...pawl.Option) pawl.ID {
		got, err := q.Enqueue(r.t.Context(), args, opts...)
		require.NoError(r.t, err)
		g.call(name, got.ID)
		return got.ID
	}
	unique := pawl.Unique{Key: "export:q3", OnDuplicate: pawl.RunLatestAfter}
	r.work(w)
	for i, name := range []string{"dead-1", "dead-2"} {
		put(name, charge{7 + i})
		r.await("emails", func(st pawl.Stats) bool { return st.Dead == int64(i+1) })
	}
	put("dead-3", welcome{9}, pawl.Header{Key: "tenant", Value: "acme"})
	r.await("emails", func(st pawl.Stats) bool { return st.Dead == 3 })
	put("done", tally{3}, pawl.Retain(time.Hour))
	running := put("running", export{"q3"}, unique)
	redistest.Eventually(r.t, "the progress", func(ctx context.Context) bool {
		j, err := q.Get(ctx, running)
		return err == nil && j.Percent == 40
	})
	put("parked", export{"q3 again"}, unique)
	r.await("emails", func(st pawl.Stats) bool { return st.Parked == 1 && st.Done == 1 })
	require.NoError(r.t, q.Pause(r.t.Context(), pawl.Forever))
	put("ready-1", welcome{42}, pawl.Header{Key: "tenant", Value: "acme"}, pawl.Header{Key: "trace", Value: "0af7"})
	put("ready-2", welcome{43}, pawl.Priority(5), pawl.Idempotency{Key: "welcome:43"}, pawl.MaxAttempts(3))
	put("delayed", welcome{44}, pawl.Delay(3*time.Hour+30*time.Minute))
}

func TestWhatLooksAtALiveQueue(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		g := newGolden(r, "look")
		live(g)
		r.enqueue("reports", "digest", `{"day":"monday"}`)
		require.NoError(t, r.client.Queue("reports").Schedule(t.Context(), pawl.Schedule{ID: "sometimes", When: pawl.Every(1000*time.Hour + 30*time.Minute), Args: welcome{1}}))
		require.NoError(t, r.client.Queue("reports").Canary(t.Context(), time.Minute))

		g.both("queues")
		g.both("stats")
		g.both("stats", "emails")
		g.both("stats", "reports")
		g.both("workers")
		g.both("workers", "emails")
		g.both("jobs", "emails")
		g.both("jobs", "emails", "--state", "done,dead")
		g.both("jobs", "emails", "--state", "ready", "--header", "tenant=acme", "--since", "1h")
		g.both("jobs", "emails", "--kind", "welcome", "--limit", "1")
		g.both("jobs", "emails", "--kind", "nobody")
		for _, name := range []string{"running", "ready-1", "ready-2", "delayed", "parked", "done", "dead-3"} {
			g.both("job", "emails", "@"+name)
		}
		g.both("dead", "list", "emails")
		g.both("dead", "list", "emails", "--error", "refused", "--reason", "exhausted")
		g.both("dead", "groups", "emails")
		g.both("dead", "show", "emails", "@dead-1")
		g.both("schedules", "list", "emails")
		g.both("schedules", "list", "reports")
		g.both("check", "emails")
		g.both("check", "--all")
		g.finish()
	})
}
