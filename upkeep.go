package pawl

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	beatEvery   = 10 * time.Second
	retireEvery = time.Minute
)

// upkeep is what a worker does beside its work, until ctx ends: it shows that it
// lives, and hears when schedules are to fire, mends what was broken, and lets go the
// dead jobs whose time is over. Nothing depends on it, so
// that a call which fails waits for the next time; outages are told elsewhere.
func (w *Worker) upkeep(ctx context.Context) {
	started, draining := time.Now(), w.draining
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	retired := make(chan struct{})
	close(retired)
	defer func() { <-retired }()
	for beats := 0; ; beats++ {
		w.beat(ctx, started)
		if beats%int(retireEvery/beatEvery) == 0 {
			select {
			case <-retired:
				retired = make(chan struct{})
				go w.retire(ctx, retired, beats > 0) // the beats do not wait for its hooks
			default:
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-draining: // told at once
			draining = nil
		case <-ticker.C:
		}
	}
}

// beat shows in each queue that the worker lives.
func (w *Worker) beat(ctx context.Context, started time.Time) {
	host, _ := os.Hostname()
	s := selfPortrait{Name: w.cfg.Name, Host: host, PID: os.Getpid(), Build: build(), Concurrency: w.cfg.Concurrency}
	select {
	case <-w.draining:
		s.Draining = true
	default:
	}
	for _, f := range w.feeds {
		f.mu.Lock()
		s.Running += len(f.running)
		f.mu.Unlock()
	}
	if ctx.Err() != nil {
		return
	}
	calls := w.tell(func(f *feed) string {
		// By the server's clock, as far as it is known.
		s.Started = f.now().Add(-time.Since(started)).UnixMilli()
		said, _ := json.Marshal(s)
		return string(said)
	})
	for i, f := range w.feeds {
		f.ticks.heard(calls[i])
		if calls[i].err == nil && ctx.Err() == nil {
			f.q.enlist()
		}
	}
}

// tell calls the script beat of each queue, in one round trip.
func (w *Worker) tell(said func(*feed) string) []*call {
	calls := make([]*call, len(w.feeds))
	for i, f := range w.feeds {
		k := &f.q.keys
		calls[i] = &call{script: scriptBeat, keys: []string{k.workers, k.info, k.scheduleTimes}, args: []any{w.tag, said(f)}}
	}
	attempt(context.Background(), w.client.rdb, calls...)
	return calls
}

// farewell waits for the end of upkeep and takes the worker off the lists, if
// Redis answers in time. A worker that a test has crash says nothing.
func (w *Worker) farewell(upkeepEnded <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-upkeepEnded
		if w.alive.Err() == nil {
			w.tell(func(*feed) string { return "" })
		}
	}()
	limit := drainGrace
	if w.outages.err() != nil {
		limit = 100 * time.Millisecond // it had its time
	}
	within(done, limit)
}

// retire mends the queues of the worker, and lets go what they no longer keep: dead
// jobs, and those that are over. Their schedules can wait for a minute: a fleet that
// starts has enough to ask for.
func (w *Worker) retire(ctx context.Context, done chan<- struct{}, schedules bool) {
	defer close(done)
	for _, f := range w.feeds {
		f.mend(ctx)
		if schedules {
			f.mendSchedules(ctx)
		}
		if ctx.Err() == nil {
			f.q.retire(ctx, f.now())
		}
		f.q.trim(ctx)
	}
}

// retire lets go the dead jobs that DeadRetention no longer keeps, and tells the
// hooks of each. now is the server's time as the worker knows it, late by as long as
// an answer took, and only says where to look; the script judges by the server's
// clock.
func (q *queueState) retire(ctx context.Context, now time.Time) {
	keep := q.client.retention
	if keep == Forever {
		return
	}
	d := &DeadLetters{q}
	last := strconv.FormatInt(max(0, now.Add(time.Second-keep).UnixMilli()), 10)
	_ = d.walk(ctx, "-", last, func(page []redis.XMessage) (more bool, err error) {
		// What it has removed is not to be lost on the hooks with its answer.
		patient, cancel := context.WithTimeout(ctx, 2*laneTrust)
		defer cancel()
		marks, err := d.remove(patient, "dropped", keep, page)
		if errors.Is(err, ErrUnconfirmed) {
			q.client.log.Error("pawl: dead jobs may have been dropped, and the hooks will not hear of them: there was no answer",
				"queue", q.name, "first", page[0].ID, "last", page[len(page)-1].ID, "error", err)
		}
		if err != nil {
			return false, err
		}
		for i, e := range page {
			switch marks[i] {
			case 'k':
				q.tellDropped(ctx, d.entry(e))
			case 's':
				q.client.log.Warn("pawl: an old post-mortem that the index of the dead did not name was removed", "queue", q.name, "entry", e.ID)
			}
		}
		return ctx.Err() == nil, nil
	})
}

// tellDropped returns when the hooks have, in a goroutine that they may end
// (runtime.Goexit).
func (q *queueState) tellDropped(ctx context.Context, job DeadJob) {
	job.Logger().Warn("pawl: a dead job was dropped: DeadRetention is over", "kind", job.Kind, "died", job.DiedAt)
	told := make(chan struct{})
	go func() {
		defer close(told)
		q.client.hooks.dropped(context.WithoutCancel(ctx), job)
	}()
	<-told
}
