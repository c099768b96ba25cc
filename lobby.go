package pawl

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	overIDs       = 100 // of one look
	pollFirst     = 20 * time.Millisecond
	sweepEvery    = 2 * time.Second
	sweepPerWait  = 500 * time.Microsecond // so that many cost 20 calls a second
	sweepMost     = 10 * time.Second       // but are seen in time
	lobbyPatience = 100 * time.Millisecond
)

// A lobby is where all who wait for jobs of a queue do so. While anybody does, and a
// moment longer, one goroutine looks for them, at up to overIDs jobs a call, and at
// each: as soon as it comes; once the ear hears, since an end that came before was
// not told; when the ear has heard of its end; and now and then, since not every end
// is told, and what is told may be lost. As long as the ear does not hear, that is
// after 20 ms, then after twice as long each time.
type lobby struct {
	q *queueState

	mu     sync.Mutex
	jobs   map[string]*awaited // by their ids in Redis
	due    []*awaited          // to look at, in this order; those that have gone too
	tuned  bool                // the ear hears
	open   bool                // the goroutine is there
	empty  time.Time           // since when nobody waits; zero if somebody does
	scan   time.Time           // when the next look is due
	err    error               // of the last look, nil if it was answered
	signal chan struct{}       // something for the goroutine to do
}

// awaited is a job that is waited for.
type awaited struct {
	id   string
	who  map[chan ending]bool
	due  bool          // it is in due
	gap  time.Duration // from the last look to the next
	next time.Time
}

// ending ends a wait: found has no state if there is no such job.
type ending struct {
	found
	err error
}

// wait returns the end of a job, or why ctx ended.
func (l *lobby) wait(ctx context.Context, id string) (found, error) {
	if ctx.Err() != nil {
		return found{}, context.Cause(ctx)
	}
	answer := make(chan ending, 1)
	l.enter(id, answer)
	select {
	case v := <-answer:
		return v.found, v.err
	case <-ctx.Done():
		if err := l.leave(id, answer); err != nil {
			return found{}, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return found{}, context.Cause(ctx)
	}
}

func (l *lobby) enter(id string, answer chan ending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		l.open, l.tuned, l.err, l.jobs = true, false, nil, map[string]*awaited{}
		l.signal = make(chan struct{}, 1)
		go l.serve(l.signal)
	}
	l.empty = time.Time{}
	a := l.jobs[id]
	if a == nil {
		a = &awaited{id: id, who: map[chan ending]bool{}}
		l.jobs[id] = a
	}
	a.who[answer] = true
	l.ask(a)
}

// leave takes one who waits out, and returns why no look was answered.
func (l *lobby) leave(id string, answer chan ending) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.jobs[id]; a != nil && a.who[answer] {
		if delete(a.who, answer); len(a.who) == 0 {
			l.forget(a)
		}
	}
	return l.err
}

func (l *lobby) forget(a *awaited) {
	if delete(l.jobs, a.id); len(l.jobs) == 0 {
		l.empty = time.Now()
		nudge(l.signal)
	}
}

// ask has a job looked at.
func (l *lobby) ask(a *awaited) {
	if !a.due {
		a.due = true
		l.due = append(l.due, a)
	}
	nudge(l.signal)
}

// tune is told whether the ear hears, from now on.
func (l *lobby) tune(hears bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !hears && !l.tuned || !l.open {
		return
	}
	l.tuned = hears
	for _, a := range l.jobs {
		a.gap = 0
		l.ask(a)
	}
}

// hear is told of jobs that have ended.
func (l *lobby) hear(ids string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range strings.FieldsSeq(ids) {
		if a := l.jobs[id]; a != nil {
			l.ask(a)
		}
	}
}

// serve looks until nobody has waited for a moment: who waits for one job after
// another shall not have the ear subscribe each time.
func (l *lobby) serve(signal <-chan struct{}) {
	s := l.q.client.ear.join(l)
	defer l.q.client.ear.leave(s)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for failed := 0; ; {
		batch, pause, over := l.take(time.Now())
		if over {
			return
		}
		failing := false
		if len(batch) > 0 {
			if l.look(batch) == nil {
				failed = 0
				continue
			}
			failing, pause = true, retryPause(failed)
			failed++
		}
		timer.Reset(pause)
		for ended := false; !ended; {
			select {
			case <-timer.C:
				ended = true
			case <-signal:
				ended = !failing || l.deserted()
			}
		}
	}
}

func (l *lobby) deserted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.jobs) == 0
}

// take is what to look at now, or for how long to wait.
func (l *lobby) take(now time.Time) (batch []*awaited, pause time.Duration, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.jobs) == 0 {
		l.due = nil
		pause = lobbyPatience - now.Sub(l.empty)
		l.open = pause > 0
		return nil, pause, !l.open
	}
	if !now.Before(l.scan) {
		l.scan = now.Add(sweepMost)
		for _, a := range l.jobs {
			switch {
			case a.due:
			case !now.Before(a.next):
				l.ask(a)
			case a.next.Before(l.scan):
				l.scan = a.next
			}
		}
		if soonest := now.Add(pollFirst); l.scan.Before(soonest) {
			l.scan = soonest
		}
	}
	for len(l.due) > 0 && len(batch) < overIDs {
		a := l.due[0]
		if l.due = l.due[1:]; l.jobs[a.id] == a {
			a.due = false
			batch = append(batch, a)
		}
	}
	return batch, l.scan.Sub(now), false
}

// look asks once, for all of a batch. What was not answered is asked again.
func (l *lobby) look(batch []*awaited) error {
	k := &l.q.keys
	c := &call{script: scriptOver, keys: []string{k.jobs, k.held, k.leases, k.dead, k.index, k.done, k.doneAt}}
	for _, a := range batch {
		c.args = append(c.args, a.id)
	}
	attempt(context.Background(), l.q.client.rdb, c)
	words, err := c.words(3, len(batch))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	if err != nil {
		for _, a := range batch {
			if good := forGood(err); good != nil {
				l.end(a, ending{err: good})
			} else if l.jobs[a.id] == a {
				l.ask(a)
			}
		}
		return err
	}
	now := time.Now()
	for i, a := range batch {
		switch {
		case l.jobs[a.id] != a: // nobody waits for it any more
		case 3*i >= len(words): // the answer was full
			l.ask(a)
		case words[3*i] == "live":
			a.gap = l.after(a.gap)
			if a.next = now.Add(a.gap); a.next.Before(l.scan) {
				l.scan = a.next
			}
		default:
			f := found{id: a.id, record: words[3*i+1], place: words[3*i+2], now: now}
			if state := State(words[3*i]); state == StateDone || state == StateDead {
				f.state = state
			}
			l.end(a, ending{found: f})
		}
	}
	return nil
}

// after is the gap that follows another.
func (l *lobby) after(gap time.Duration) time.Duration {
	most := min(max(sweepEvery, time.Duration(len(l.jobs))*sweepPerWait), sweepMost)
	if l.tuned {
		return most
	}
	return min(max(2*gap, pollFirst), most)
}

// end answers all who wait for a job.
func (l *lobby) end(a *awaited, v ending) {
	if l.jobs[a.id] != a {
		return
	}
	for answer := range a.who {
		answer <- v
	}
	l.forget(a)
}

// words is the reply of a script that answers with so many words for each of n things,
// or for the first of them.
func (c *call) words(each, n int) ([]string, error) {
	if c.err != nil {
		return nil, c.err
	}
	parts, ok := c.reply.([]any)
	if !ok || len(parts)%each != 0 || len(parts) == 0 || len(parts) > each*n {
		return nil, fmt.Errorf("script %s answered %T for %d", c.script.name, c.reply, n)
	}
	words := make([]string, len(parts))
	for i, p := range parts {
		words[i], _ = p.(string)
	}
	return words, nil
}
