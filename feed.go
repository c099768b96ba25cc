package pawl

import (
	"sync"
	"time"
)

// A feed serves one queue for a worker. One goroutine, loop, settles what has
// finished and leases what can start, both in one round trip; another, pulse,
// renews the leases. What finishes while a round trip is under way goes into
// the next, so that batches grow with the load and cost no latency without it.
// Under full load two are under way at a time, each with half of the slots.
type feed struct {
	worker *Worker
	index  int // among the worker's queues
	q      *queueState

	signal chan struct{} // something for loop to do
	beat   chan struct{} // something for pulse to do

	mu       sync.Mutex
	running  map[string]*run // by id, until the outcome is stored
	finished []*outcome      // not yet in a call
	hungry   bool            // there may be work to lease
	wakes    int             // how often wake was called
	answers  int             // how many leases were answered
	next     time.Time       // of the next possible work; zero if unknown
	draining bool            // lease no more
	quitting bool            // wait for nothing
	clock    serverClock
	released []ID

	tracks [2]*track
	landed chan *track // whose round trip has ended
	enough int         // finished jobs that are worth a second round trip
	resume time.Time   // send nothing before; zero once that was heeded; of loop alone

	extender extender
	// cautious until: after an outage no expired lease is taken for one
	// heartbeat, so that holders that lived through it can renew first.
	cautious time.Time
	pulsed   time.Time // when pulse last looked
	// unrenewed: renewals have no answer. Until they have, no expired lease is
	// taken either: it may be this worker's own.
	unrenewed bool

	claims  claimer // of idempotency keys
	courier courier // of progress
	ticks   ticking // of schedules
	mending mending // of upkeep alone
}

// serverClock tells the server's time from its last answer.
type serverClock struct {
	ms int64
	at time.Time
}

func (c serverClock) now() time.Time {
	if c.at.IsZero() {
		return time.Now()
	}
	return time.UnixMilli(c.ms).Add(time.Since(c.at))
}

func newFeed(w *Worker, index int, q *queueState) *feed {
	f := &feed{worker: w, index: index, q: q, hungry: true,
		signal: make(chan struct{}, 1), beat: make(chan struct{}, 1),
		running: map[string]*run{}, landed: make(chan *track, 2), enough: max(2, (w.cfg.Concurrency+1)/2)}
	for i := range f.tracks {
		f.tracks[i] = newTrack(f)
	}
	f.extender.lane = newLane(&q.keys)
	f.claims.feed, f.claims.stop = f, make(chan struct{})
	f.courier.feed, f.courier.lane = f, newLane(&q.keys)
	f.ticks.feed = f
	return f
}

func nudge(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// poke has loop look again.
func (f *feed) poke() { nudge(f.signal) }

// wake has loop lease: a token came, or the time of the next job. It tells how
// many leases have been answered so far.
func (f *feed) wake() (answers int) {
	f.mu.Lock()
	f.hungry = true
	f.wakes++
	answers = f.answers
	f.mu.Unlock()
	f.poke()
	return answers
}

// idle reports whether the queue was empty when last asked.
func (f *feed) idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.hungry && !f.draining && !f.worker.outages.has(f)
}

// asking reports whether a lease is to be answered yet, of those that had not
// been when answers was told by wake.
func (f *feed) asking(answers int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hungry && !f.draining && f.answers == answers
}

// drain stops leasing and firing schedules. With quit, loop ends at once, whatever is
// left.
func (f *feed) drain(quit bool) {
	f.ticks.stop()
	f.mu.Lock()
	f.draining, f.quitting = true, f.quitting || quit
	f.mu.Unlock()
	f.poke()
}

// over reports whether nothing is left to do for a feed that drains.
func (f *feed) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.quitting {
		return true
	}
	return f.draining && len(f.running) == 0 && len(f.finished) == 0 && f.tracks[0].clear() && f.tracks[1].clear()
}

// loop runs until the feed has drained.
func (f *feed) loop() {
	for n := 0; !f.over(); {
		if t, calls := f.gather(); t != nil {
			f.fly(t, calls)
			continue
		}
		t := f.wait()
		switch {
		case t == nil:
		case !f.land(t):
			// Redis is away, or refuses: what is pending is sent again unchanged,
			// outcomes first, then the leases are renewed, then a lease is asked for.
			f.resume = time.Now().Add(retryPause(n))
			n++
		case t.wasOut:
			n = 0
		}
	}
}

// wait returns when there may be something to do, with the track that has landed
// if one has.
func (f *feed) wait() *track {
	f.mu.Lock()
	next := f.next
	if f.hungry || f.draining {
		next = time.Time{} // then it is not time that is waited for
	}
	f.mu.Unlock()
	pausing := !f.resume.IsZero() // whatever the clock says: gather has found it too early
	if pausing {
		next = f.resume
	}
	var timer <-chan time.Time
	if !next.IsZero() {
		t := time.NewTimer(time.Until(next))
		defer t.Stop()
		timer = t.C
	}
	select {
	case t := <-f.landed:
		return t
	case <-f.signal:
	case <-timer:
		if !pausing {
			f.wake()
		}
	}
	return nil
}

// finish takes the outcome of a run whose handler has returned.
func (f *feed) finish(out *outcome) {
	out.seal()
	f.mu.Lock()
	out.run.finished = true
	f.finished = append(f.finished, out)
	// With a round trip under way, loop does nothing before there are enough.
	rouse := f.tracks[0].calls == nil && f.tracks[1].calls == nil || len(f.finished) == f.enough
	f.mu.Unlock()
	out.run.cancel(nil)
	if a := out.run.said.Load(); a != nil {
		a.progress.end()
	}
	if out.run.suspect {
		f.worker.suspect.Unlock()
		// Leases passed over the suspects that came after it.
		for _, other := range f.worker.feeds {
			other.wake()
		}
	}
	if !out.run.slotless {
		f.worker.slots.freed(f.index)
	}
	if rouse {
		f.poke()
	}
}

// forget drops a run whose outcome is stored, or was lost for good.
func (f *feed) forget(r *run) {
	if f.running[r.id] == r {
		delete(f.running, r.id)
	}
}
