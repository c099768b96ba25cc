package pawltest

import (
	"context"
	"errors"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/testhook"
)

// Report lists the runs of a drain in order.
type Report struct {
	// Runs has an event for each time that a handler ran, in the order in which
	// they began; with a Concurrency of 1, that is the order of the jobs. Err is
	// what came of it: nil if the job is done, and also if it was snoozed, which
	// Jobs tells apart, since it waits; ErrCancelled if it was cancelled; else what
	// the handler returned, so that pawl.IsPermanent tells what it tells there,
	// with ErrTimeout around it if its time was over; or a *pawl.PanicError.
	// Job.Attempt tells one try of a job from the next. A run that Crash abandoned
	// is not among them.
	Runs []pawl.Event
	// Dead has the post-mortems of the jobs that died, in the order of their
	// deaths, those that died without a run included. What has been redriven or
	// deleted since is left out.
	Dead []pawl.DeadJob
}

// Drain runs w until nothing is left to run in its queues, retries, delays and
// follow-ups included, and says what happened. Schedules do not fire; Queue.Trigger
// enqueues the job of one. (A worker that was started fires them as time passes, in a
// drain of it too.) Where jobs wait for a time it jumps there; outside a bubble it
// has to wait. It also waits for jobs that other workers hold or, having crashed, have
// left behind. Jobs of a queue that is paused run at the end of the pause; if that has
// none, what is left fails the test.
//
// A job that is never done with (it snoozes for ever) fails the test after 1000
// runs, and jobs that enqueue each other for ever after 100,000. A handler that
// waits for something that never comes keeps the drain waiting too, until the
// test times out.
func (e *Env) Drain(w *pawl.Worker) Report {
	e.t.Helper()
	return e.drain("Drain", w, true)
}

// DrainReady is Drain with the clock standing still: what is due now, and what
// that makes due at once. A handler that waits for a time moves the clock all
// the same, and what comes due before it returns may run too.
func (e *Env) DrainReady(w *pawl.Worker) Report {
	e.t.Helper()
	return e.drain("DrainReady", w, false)
}

func (e *Env) drain(verb string, w *pawl.Worker, all bool) Report {
	e.t.Helper()
	r := e.use(verb, w)
	j := newJournal(e.limit)
	if r != nil {
		j = r.journal
	}
	j.begin()
	idle, blind := 0, 0
	for {
		before := j.begun()
		changed := e.changes()
		crashed, next := e.turn(verb, w, r, j)
		left := e.left(w)
		if j.begun() > before {
			idle = 0
		}
		if left.ready > 0 && !crashed && idle < maxIdle {
			idle++ // enqueued while the worker stopped?
			continue
		}
		if crashed || left.total == 0 || !all {
			if all && !crashed && left.paused != "" {
				e.t.Fatalf("pawltest: %s: jobs are left in queue %s, which is paused until Resume is called", verb, left.paused)
			}
			report := e.report(j)
			if r == nil && !crashed && len(report.Runs)+len(report.Dead) == 0 {
				e.hint(verb, w)
			}
			return report
		}
		if blind++; !next.IsZero() {
			blind = 0
		} else if r != nil && blind <= maxBlind {
			next = time.Now().Add(time.Second) // it has not asked since they came
		} else {
			e.t.Fatalf("pawltest: %s: %d jobs are left, of which this worker will run none", verb, left.total)
		}
		e.until(verb, next, changed)
		idle = 0
	}
}

const (
	// maxIdle is how often a worker may leave ready jobs alone: once can be chance.
	maxIdle = 3
	// maxBlind is for how many seconds a worker that was started may know of no
	// job: those that are delayed it learns of in some 10.
	maxBlind = 30
)

// turn has the worker run what is due, and says when there may be more. It
// leaves one that was started running.
func (e *Env) turn(verb string, w *pawl.Worker, started *runner, j *journal) (crashed bool, next time.Time) {
	e.t.Helper()
	r := started
	if r == nil {
		r = e.launch(w, testhook.Copy(w).(*pawl.Worker), j)
	}
	r.rest()
	next = testhook.Look(r.worker).Next
	job, runs := j.tooMany()
	if started == nil || job != nil {
		r.stop()
		<-r.done
	}
	if job != nil {
		e.t.Fatalf("pawltest: %s: it does not end: after %d runs in all, job %s of kind %q in queue %q has run %d times",
			verb, j.begun(), job.ID, job.Kind, job.Queue, runs)
	}
	if r.isCrashed() {
		return true, next
	}
	if r.over() && (started != nil || r.err != nil) {
		e.t.Fatalf("pawltest: %s: the worker's Run: %v", verb, r.err)
	}
	return false, next
}

// until waits for a moment, or until a hook is called.
func (e *Env) until(verb string, next time.Time, changed <-chan struct{}) {
	e.t.Helper()
	if t, ok := e.t.(interface{ Deadline() (time.Time, bool) }); ok && !e.bubble {
		if end, limited := t.Deadline(); limited && next.After(end) {
			e.t.Fatalf("pawltest: %s: the next job is due in %v, after the test has to end; in pawltest.Run it would be due at once",
				verb, time.Until(next).Round(time.Second))
		}
	}
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	}
}

// left counts what is not over in the queues of a worker, but for what waits in
// those that are paused without an end; paused is the name of one.
type left struct {
	ready, total int64
	paused       string
}

func (e *Env) left(w *pawl.Worker) (sum left) {
	e.t.Helper()
	for _, name := range testhook.Look(w).Queues {
		s, err := e.Client.Queue(name).Stats(context.Background())
		if err != nil {
			e.t.Fatalf("pawltest: %v", err)
		}
		sum.total += s.Running
		if s.Paused && s.PausedUntil.IsZero() {
			if s.Depth() > 0 {
				sum.paused = name
			}
			continue
		}
		sum.ready += s.Ready
		sum.total += s.Depth()
	}
	return sum
}

// hint tells of schedules that are due, which is why a drain may be thought to run
// something where it does not.
func (e *Env) hint(verb string, w *pawl.Worker) {
	e.t.Helper()
	for _, name := range testhook.Look(w).Queues {
		schedules, err := e.Client.Queue(name).Schedules(context.Background())
		if err != nil {
			return // it is no more than a hint
		}
		var due []string
		for _, s := range schedules {
			if !s.Paused && !s.Next.After(time.Now()) {
				due = append(due, s.ID)
			}
		}
		if len(due) > 0 {
			e.t.Logf("pawltest: %s: nothing ran in queue %q, of which schedules are due, %.200q; a drain fires none: Start the worker, or Trigger them",
				verb, name, due)
		}
	}
}

func (e *Env) report(j *journal) Report {
	e.t.Helper()
	runs, died := j.take()
	report := Report{Runs: runs}
	for _, job := range died {
		dead, err := e.Client.Queue(job.Queue).Dead().Get(context.Background(), job.ID)
		switch {
		case err == nil:
			report.Dead = append(report.Dead, dead)
		case !errors.Is(err, pawl.ErrNotFound):
			e.t.Fatalf("pawltest: %v", err)
		}
	}
	return report
}
