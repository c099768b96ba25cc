package pawltest

import (
	"context"
	"errors"
	"testing/synctest"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/testhook"
)

// runner is a Run of a worker, or of a copy of it.
type runner struct {
	env     *Env
	worker  *pawl.Worker // that runs
	journal *journal
	stop    context.CancelFunc
	done    chan struct{}
	err     error // of Run, once done is closed
	started bool  // by Start
	crashed bool
}

// launch runs w under the name of the worker that the test knows.
func (e *Env) launch(known, w *pawl.Worker, j *journal) *runner {
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), journalKey{}, j))
	r := &runner{env: e, worker: w, journal: j, stop: cancel, done: make(chan struct{})}
	j.mu.Lock()
	j.stopRun = cancel
	j.mu.Unlock()
	e.mu.Lock()
	e.runners[known] = r
	e.mu.Unlock()
	go func() {
		defer close(r.done)
		r.err = w.Run(ctx)
	}()
	return r
}

// of is the runner of the worker that the test knows, or nil.
func (e *Env) of(w *pawl.Worker) *runner {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runners[w]
}

// use fails the test unless w is a worker of e that can be run by the verb, or
// runs by Start; that runner is returned.
func (e *Env) use(verb string, w *pawl.Worker) *runner {
	e.t.Helper()
	if w == nil {
		e.t.Fatalf("pawltest: %s: the worker is nil", verb)
	}
	view := testhook.Look(w)
	if view.Client != any(e.Client) {
		e.t.Fatalf("pawltest: %s: the worker belongs to another client; make it with pawl.NewWorker(env.Client, …)", verb)
	}
	r := e.of(w)
	switch {
	case r != nil && r.isCrashed():
		e.t.Fatalf("pawltest: %s: the worker has crashed; make a new one", verb)
	case r != nil && r.over() && r.started:
		e.t.Fatalf("pawltest: %s: the worker has stopped: %v", verb, r.err)
	case r == nil && view.Used || r != nil && !r.started && view.Used:
		e.t.Fatalf("pawltest: %s: the worker was run by its own Run; leave that to env.Start", verb)
	case r != nil && !r.over() && !r.started:
		e.t.Fatalf("pawltest: %s: a drain of the worker is under way", verb)
	}
	if r != nil && r.started {
		return r
	}
	return nil
}

// Start runs w until the test ends, and fails the test if Run does. While it is
// idle it asks for work every few seconds, so days take long to pass beside it;
// a Drain of a worker that was not started jumps over them. Jobs that the end of
// the test interrupts are no failure, if their handlers heed their contexts.
func (e *Env) Start(w *pawl.Worker) {
	e.t.Helper()
	if e.use("Start", w) != nil {
		e.t.Fatalf("pawltest: Start: the worker was started before")
	}
	r := e.launch(w, w, newJournal(e.limit))
	r.started = true
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		<-r.done
		late, interrupted := errors.AsType[*pawl.DrainError](r.err)
		if r.err != nil && !r.isCrashed() && !(interrupted && len(late.Stuck) == 0) {
			e.t.Errorf("pawltest: Start: the worker's Run: %v", r.err)
		}
	}()
	e.t.Cleanup(func() {
		r.stop()
		<-failed
	})
}

// Crash abandons what w runs at this moment, as kill -9 would: no settle, no
// release, no more heartbeats; w's Run has returned when Crash does. The jobs
// come back when their visibility timeout is over, with one crash more and the
// attempt not spent, to another worker. A handler's goroutine cannot be killed:
// its context ends with a cause that is ErrShutdown, and whatever it returns is
// dropped. It must return before the test ends.
//
// w has to be running: by Start, or by a drain whose handler calls Crash. That
// drain then returns with what was over by then.
func (e *Env) Crash(w *pawl.Worker) {
	e.t.Helper()
	r := e.of(w)
	if r == nil || r.over() {
		e.t.Fatalf("pawltest: Crash: the worker does not run; env.Start it first")
	}
	e.mu.Lock()
	r.crashed = true
	e.mu.Unlock()
	testhook.Abandon(r.worker)
	<-r.done
}

func (r *runner) isCrashed() bool {
	r.env.mu.Lock()
	defer r.env.mu.Unlock()
	return r.crashed
}

func (r *runner) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// The intervals at which a worker that is not at rest is looked at again, if no
// hook is called: of virtual and of real time.
const (
	virtualPoll = time.Second
	realPoll    = 2 * time.Millisecond
)

// rest returns when the worker has nothing to do that is due, or has ended.
// Handlers that wait for a time get it.
func (r *runner) rest() {
	poll := realPoll
	if r.env.bubble {
		poll = virtualPoll
	}
	for {
		changed := r.env.changes()
		if r.env.bubble {
			synctest.Wait()
		}
		if r.over() || !testhook.Look(r.worker).Busy && r.journal.quiet() &&
			(r.env.bubble || r.env.left(r.worker).ready == 0) {
			return
		}
		select {
		case <-changed:
		case <-r.done:
		case <-time.After(poll):
		}
	}
}
