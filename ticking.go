package pawl

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
)

// ticking has the schedules of one queue fire, for a worker. It costs nothing while there
// are none: the beats say when the first tick is, and a timer waits for it. Every worker
// does so; the script lets one of them fire each tick. What it does it does in a
// goroutine of its own, one at a time, which waits for Redis and for no handler or hook.
type ticking struct {
	feed *feed

	mu     sync.Mutex
	open   bool          // between start and stop
	busy   bool          // a look is under way
	again  bool          // another is to follow it
	timer  *time.Timer   // of the next look; nil: none is due
	at     time.Time     // of that
	tries  int           // that have failed one after another
	halted chan struct{} // closed by stop
	looks  sync.WaitGroup

	heeds bool // a beat was answered; of upkeep alone

	// Of the look under way.
	failing bool            // the last ones have failed, which was told
	strange map[string]bool // schedules that this worker cannot fire, and has told of
}

// start lets it fire, once the worker runs.
func (t *ticking) start() {
	q := t.feed.q
	t.mu.Lock()
	t.open, t.halted, t.strange = true, make(chan struct{}), map[string]bool{}
	t.mu.Unlock()
	q.tickMu.Lock()
	defer q.tickMu.Unlock()
	if q.tickings == nil {
		q.tickings = map[*ticking]bool{}
	}
	q.tickings[t] = true
}

// stop has it fire no more, but for a call that is under way: close waits for that.
func (t *ticking) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.open {
		return
	}
	t.open = false
	close(t.halted)
	if t.timer != nil {
		t.timer.Stop()
	}
	q := t.feed.q
	q.tickMu.Lock()
	defer q.tickMu.Unlock()
	delete(q.tickings, t)
}

func (t *ticking) close() {
	t.stop()
	done := make(chan struct{})
	go func() { t.looks.Wait(); close(done) }()
	within(done, drainGrace)
}

// nudgeTicks has the workers of this client look at once.
func (q *queueState) nudgeTicks() {
	q.tickMu.Lock()
	var all []*ticking
	for t := range q.tickings {
		all = append(all, t)
	}
	q.tickMu.Unlock()
	for _, t := range all {
		t.expect(0)
	}
}

// heard takes what a beat was answered: "ok", and the ms until the first tick. While none
// was, it asks by itself: the next beat may be one tick too late.
func (t *ticking) heard(c *call) {
	answer, _ := c.reply.(string)
	if word, ok := strings.CutPrefix(answer, "ok "); ok && c.err == nil {
		t.heeds = true
		t.expect(readWait(word))
	} else if !t.heeds {
		t.expect(0)
	}
}

// expect has it look in so many ms, if it would not sooner: what a beat was told may be
// older than what the last look has seen. Below 0 there is nothing to expect.
func (t *ticking) expect(ms int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.open || ms < 0:
	case t.busy:
		t.again = t.again || ms == 0
	case t.timer == nil || time.Until(t.at) > time.Duration(min(ms, maxWait.Milliseconds()))*time.Millisecond:
		t.set(ms)
	}
}

// set is called with the lock held.
func (t *ticking) set(ms int64) {
	if t.timer != nil {
		t.timer.Stop()
	}
	t.timer = nil
	if ms >= 0 {
		wait := time.Duration(min(ms, maxWait.Milliseconds())) * time.Millisecond
		t.at = time.Now().Add(wait)
		t.timer = time.AfterFunc(wait, t.look)
	}
}

// look is what the timer calls.
func (t *ticking) look() {
	t.mu.Lock()
	if !t.open || t.busy {
		t.again = t.busy
		t.mu.Unlock()
		return
	}
	t.busy, t.timer = true, nil
	t.looks.Add(1)
	t.mu.Unlock()
	defer t.looks.Done()

	wait, err := t.fire()
	t.tell(err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = false
	switch {
	case err != nil:
		wait = max(1, retryPause(t.tries).Milliseconds())
		t.tries++
	case t.again:
		wait = 0
		fallthrough
	default:
		t.tries = 0
	}
	t.again = false
	if t.open {
		t.set(wait)
	}
}

// tell tells once of what is not told as an outage of the worker, and of its end.
func (t *ticking) tell(err error) {
	log := t.feed.q.client.log
	cl := classify(err)
	switch {
	case err == nil && t.failing:
		t.failing = false
		log.Info("pawl: the schedules of a queue are fired again", "queue", t.feed.q.name)
	case err != nil && !t.failing && cl != classRefused && cl != classUnknown:
		t.failing = true
		log.Error("pawl: the schedules of a queue cannot be fired, and it is tried again", "queue", t.feed.q.name, "error", err)
	}
}

// errHalted ends a look whose worker drains.
var errHalted = errors.New("the worker drains")

// fire fires what is due, and returns the ms until the next tick.
func (t *ticking) fire() (wait int64, err error) {
	for skip, vain := 0, 0; ; {
		look, err := t.due(skip)
		if err != nil {
			return 0, err
		}
		if len(look.seen) == 0 {
			if skip > 0 && (look.wait < 0 || look.wait > beatEvery.Milliseconds()) {
				look.wait = beatEvery.Milliseconds() // they may be mended by then
			}
			return look.wait, nil
		}
		firings := t.firings(look)
		skip += len(look.seen) - len(firings)
		wait, fired := int64(0), 0
		for at := 0; at < len(firings); {
			some := fitting(firings[at:])
			w, n, left, err := t.tickEach(some)
			if err != nil {
				return 0, err
			}
			at += len(some)
			fired += n
			skip += left
			wait = w
		}
		if len(firings) > 0 && (wait > 0 || wait < 0 && skip == 0) {
			return wait, nil
		}
		if fired > 0 {
			vain = 0
		} else if vain++; vain > vainLooks {
			return beatEvery.Milliseconds(), nil
		}
	}
}

// vainLooks is how often one look may see ticks that then are others'. More is no race
// with other workers.
const vainLooks = 20

// firings are what the schedules come to that this worker can fire. Of the others it
// tells once.
func (t *ticking) firings(look scheduleLook) (firings []firing) {
	for _, seen := range look.seen {
		f, err := t.feed.q.fire(seen, look.now)
		if err == nil {
			firings = append(firings, f)
		} else if !errors.Is(err, errTorn) {
			t.leave(seen.id, err)
		}
	}
	return firings
}

// leave tells once of a schedule that cannot be fired.
func (t *ticking) leave(id string, err error) {
	if t.strange[id] {
		return
	}
	t.strange[id] = true
	t.feed.q.client.log.Warn("pawl: this worker cannot fire a schedule, and leaves it to others",
		"queue", t.feed.q.name, "schedule", id, "error", err)
}

// tickEach fires some schedules in one call or, if that can never work, each in its own:
// a unique key of a wrong type is the fault of one schedule, and must not stop the others.
// It returns how many it left as they are.
func (t *ticking) tickEach(some []firing) (wait int64, fired, left int, err error) {
	if wait, fired, err = t.tick(some); err == nil || classify(err) != classBroken {
		return wait, fired, 0, err
	}
	whole := !strings.Contains(err.Error(), ofUniqueKey)
	if len(some) == 1 && whole {
		return 0, 0, 0, err // the queue's, maybe
	}
	for _, f := range some {
		w, n, one := t.tick([]firing{f})
		switch {
		case one == nil:
			wait, fired = w, fired+n
		case classify(one) != classBroken:
			return 0, 0, 0, one
		default:
			t.leave(f.id, one)
			left++
			err = one
		}
	}
	if whole && left == len(some) {
		return 0, 0, 0, err
	}
	return wait, fired, left, nil
}

// ofUniqueKey is in what the scripts answer of a unique key that something else has made
// a list, say.
const ofUniqueKey = "WRONGTYPE of the unique key"

// fitting are the first ones that fit a call.
func fitting(firings []firing) []firing {
	jobs, bytes := 0, 0
	for i := range firings {
		f := &firings[i]
		if i > 0 && !fits(jobs+1, bytes, max(1, len(f.jobs)), f.size()) {
			return firings[:i]
		}
		jobs += max(1, len(f.jobs))
		bytes += f.size()
	}
	return firings
}

// due asks for a page of what is due.
func (t *ticking) due(skip int) (scheduleLook, error) {
	c := t.feed.q.scheduleCall("due", skip)
	if err := t.send(c); err != nil {
		return scheduleLook{}, err
	}
	return readSchedules(c.reply)
}

// tick fires some schedules and tells the hooks, which it does not wait for. It returns
// the ms until the first tick of the queue, and how many were fired by this call.
func (t *ticking) tick(firings []firing) (wait int64, fired int, err error) {
	q := t.feed.q
	l := q.lanes.get()
	defer q.lanes.put(l)
	keys, args := q.tickWords(firings)
	c := &call{script: scriptTick, keys: withLane(keys, l), args: append([]any{l.next()}, args...)}
	start := time.Now()
	if err := t.send(c); err != nil {
		return 0, 0, err
	}
	text, err := c.text()
	if err != nil {
		return 0, 0, err
	}
	wait, marks, err := readTick(text, firings)
	if err != nil {
		return 0, 0, err
	}
	took := time.Since(start)
	w := t.feed.worker
	for i, f := range firings {
		delete(t.strange, f.id)
		for _, it := range f.jobs {
			if marks[i] == 'k' {
				event := EnqueuedEvent{Enqueued: it.result, Kind: it.kind, Took: took}
				w.teller.tell(func() { w.client.hooks.enqueued(w.base, event) })
			}
		}
	}
	return wait, strings.Count(marks, "k"), nil
}

// send sends a call until it is answered, as the same one while it may have run. What
// was refused is to be made anew: it would come late.
func (t *ticking) send(c *call) error {
	for n := 0; ; n++ {
		select {
		case <-t.halted:
			return errHalted
		default:
		}
		attempt(context.Background(), t.feed.q.client.rdb, c)
		if c.class() == classAnswered {
			return nil
		}
		if !c.unsure || time.Since(c.first) > laneTrust || c.class() == classFull || c.class() == classBroken || c.class() == classDenied {
			return c.err
		}
		pause := time.NewTimer(retryPause(n))
		select {
		case <-pause.C:
		case <-t.halted:
			pause.Stop()
			return errHalted
		}
	}
}
