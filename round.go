package pawl

import (
	"strings"
	"time"
)

// verb is a script that ends a run; each has a lane of its own in a feed.
type verb int

const (
	verbSettle verb = iota
	verbRetry
	verbBury
	verbRelease
	verbFinish // verbSettle of what leaves something
	verbs
)

// pendingCall is a group of outcomes on its way. It is sent unchanged until it
// is answered; what finishes meanwhile waits for the next.
type pendingCall struct {
	call   *call
	outs   []*outcome
	tokens []string
	// forked: the lane's memory ran out before an answer came, so that "lost"
	// may only mean that the first attempt had run.
	forked bool
}

// gather is the next round trip, or nil: at most one call of each verb, and a
// lease if there may be work and slots for it. After a failed round trip the
// lease waits until the outcomes are stored.
func (f *feed) gather() (t *track, calls []*call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.worker.outages.has(f)
	t = f.free(out)
	if t == nil || f.quitting {
		return nil, nil
	}
	for v := range t.pending {
		if t.pending[v] == nil {
			t.pending[v] = f.group(t, verb(v))
		}
		if p := t.pending[v]; p != nil {
			if p.call.unsure && time.Since(p.call.first) > laneTrust {
				t.refork(verb(v), p)
			}
			calls = append(calls, p.call)
		}
	}
	if !out || len(calls) == 0 {
		if c := f.leaseCall(t, out); c != nil {
			calls = append(calls, c)
		}
	}
	if len(calls) == 0 {
		return nil, nil
	}
	return t, calls
}

// refork moves a call whose lane may have forgotten it to a new lane.
func (t *track) refork(v verb, p *pendingCall) {
	old := t.lanes[v].key
	t.lanes[v] = newLane(&t.feed.q.keys)
	for i, k := range p.call.keys {
		if k == old {
			p.call.keys[i] = t.lanes[v].key
		}
	}
	p.call.args[0] = t.lanes[v].next()
	p.call.first, p.call.unsure = time.Time{}, false
	p.forked = true
}

// group takes finished outcomes of one verb into a call, or is nil.
func (f *feed) group(t *track, v verb) *pendingCall {
	p := &pendingCall{}
	rest := f.finished[:0]
	items, bytes := 0, 0
	for _, out := range f.finished {
		if out.verb != v || len(p.outs) == maxCallRuns || !fits(items, bytes, out.items(), out.size()) {
			rest = append(rest, out)
			continue
		}
		p.outs = append(p.outs, out)
		out.run.sent = true
		items += out.items()
		bytes += out.size()
	}
	clear(f.finished[len(rest):])
	f.finished = rest
	if len(p.outs) == 0 {
		return nil
	}
	p.call = t.verbCall(v, p)
	return p
}

func (t *track) verbCall(v verb, p *pendingCall) *call {
	k, l := &t.feed.q.keys, t.lanes[v]
	c := &call{args: append(make([]any, 0, 1+5*len(p.outs)), l.next())}
	switch v {
	case verbSettle:
		c.script, c.keys = scriptSettle, []string{k.jobs, k.held, k.leases, k.runs, k.meta, k.minutes, l.key, k.due, k.wake}
	case verbFinish:
		c.script, c.keys = scriptFinish, []string{k.jobs, k.held, k.leases, k.runs, k.meta, k.minutes, l.key, k.due, k.wake, k.done, k.doneAt, k.prio}
		c.args = append(c.args, k.ended())
	case verbRetry:
		c.script, c.keys = scriptRetry, []string{k.jobs, k.held, k.due, k.leases, k.runs, k.meta, k.minutes, k.wake, l.key, k.done, k.doneAt}
		c.args = append(c.args, k.ended())
	case verbBury:
		c.script, c.keys = scriptBury, []string{k.jobs, k.held, k.leases, k.runs, k.dead, k.index, k.meta, k.minutes, l.key, k.due, k.wake}
		c.args = append(c.args, k.ended())
	case verbRelease:
		c.script, c.keys = scriptRelease, []string{k.leases, k.runs, k.meta, k.minutes, k.wake, l.key}
	}
	fixed := len(c.keys)
	p.tokens = make([]string, 0, len(p.outs))
	for _, out := range p.outs {
		p.tokens = append(p.tokens, out.run.token)
		c.args = append(c.args, out.run.id, out.run.token)
		switch v {
		case verbSettle:
			c.args = append(c.args, out.counter, out.holds(c, k, fixed))
		case verbFinish:
			c.args = append(c.args, out.counter, out.holds(c, k, fixed), out.record, keptFor(out.run.rec))
			out.addTo(c, k, fixed)
		case verbRetry:
			c.args = append(c.args, out.record, ceilMillis(out.delay), out.counter, out.holds(c, k, fixed), out.left)
		case verbBury:
			c.args = append(c.args, out.record, out.also, out.holds(c, k, fixed))
		case verbRelease:
			c.args = append(c.args, out.unrun)
		}
	}
	return c
}

// land applies the answers of a round trip that has ended. It reports whether
// all were answered.
func (f *feed) land(t *track) bool {
	var failure error
	for _, c := range t.calls {
		if c.err != nil {
			failure = c.err
		}
	}
	f.mu.Lock()
	t.calls = nil
	f.mu.Unlock()
	var news []func() // for the hooks, once the jobs of the lease have started
	for v, p := range t.pending {
		if p != nil && p.call.reply != nil && p.call.err == nil {
			t.pending[v] = nil
			news = append(news, f.apply(t, verb(v), p)...)
		}
	}
	if l := t.leasing; l != nil && l.call.reply != nil && l.call.err == nil {
		t.leasing = nil
		f.receive(t, l)
	}
	settled := f.afterRound(t, failure)
	tellAll(news)
	return settled
}

// tellAll calls each, also if one ends its goroutine.
func tellAll(news []func()) {
	for i, tell := range news {
		func() {
			told := false
			defer func() {
				if !told {
					tellAll(news[i+1:])
				}
			}()
			tell()
			told = true
		}()
	}
}

// afterRound begins or ends an outage and reports whether all is well.
func (f *feed) afterRound(t *track, failure error) bool {
	if failure != nil {
		f.worker.outages.begin(outage{feed: f}, failure)
		f.mu.Lock()
		if l := t.leasing; l != nil {
			f.yield(l)
			if !l.call.unsure {
				f.abandonLease(t, false)
			}
		}
		f.mu.Unlock()
		f.worker.slots.rest(f.index)
		f.cautious = time.Now().Add(f.worker.cfg.VisibilityTimeout / 3)
		return false
	}
	if t.wasOut {
		f.cautious = time.Now().Add(f.worker.cfg.VisibilityTimeout / 3)
		if f.renew() != nil {
			f.mu.Lock()
			f.hungry = true
			f.mu.Unlock()
			return false
		}
		f.worker.outages.end(outage{feed: f})
		f.worker.wakers[f.index].poke(f)
	}
	return true
}

// apply does what the answer of a verb says of each outcome, and returns what
// the hooks are to be told of it.
func (f *feed) apply(t *track, v verb, p *pendingCall) (news []func()) {
	marks, err := p.call.text()
	added := "" // what is said of the jobs that follow
	if v == verbFinish {
		marks, added, _ = strings.Cut(marks, " ")
	}
	if err != nil || len(marks) != len(p.outs) {
		// Another's call in this lane: it cannot be, and a new lane mends it.
		f.worker.client.log.Error("pawl: a script's answer makes no sense", "queue", f.q.name,
			"script", p.call.script.name, "answer", marks, "error", err)
		t.refork(v, p)
		t.pending[v] = p
		return nil
	}
	news = make([]func(), 0, len(p.outs))
	if v == verbFinish {
		news = append(news, f.tellAdded(p, marks, added)...)
	}
	for i, out := range p.outs {
		switch {
		case marks[i] == 'c' && v != verbRelease:
			f.answered(out, true)
			f.again(out.cancelled())
		case marks[i] != 'l':
			f.mu.Lock()
			f.forget(out.run)
			if v == verbRelease && f.draining && !out.unrun {
				f.released = append(f.released, out.run.job.ID)
			}
			f.mu.Unlock()
			f.answered(out, false)
			if marks[i] == 's' {
				out = out.superseded()
			}
			news = append(news, func() { out.stored(f.worker.client) })
		default:
			f.answered(out, true)
			f.mu.Lock()
			adopted := f.running[out.run.id] == out.run && out.run.token != p.tokens[i]
			if !adopted {
				f.forget(out.run)
			}
			f.mu.Unlock()
			if adopted {
				// Leased to this worker again while the outcome was on its way.
				f.again(out)
			} else if !p.forked {
				news = append(news, out.run.reportLost)
			}
		}
	}
	return news
}

func (f *feed) again(out *outcome) {
	out.seal()
	f.mu.Lock()
	f.finished = append(f.finished, out)
	f.mu.Unlock()
	f.poke()
}
