package pawl

import (
	"context"
	"time"
)

// verb is a script that ends a run; each has a lane of its own in a feed.
type verb int

const (
	verbSettle verb = iota
	verbRetry
	verbBury
	verbRelease
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

// gather is the calls of the next round trip: at most one of each verb, and a
// lease if there may be work and slots for it. After a failed round trip the
// lease waits until the outcomes are stored.
func (f *feed) gather() []*call {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.quitting {
		return nil
	}
	var calls []*call
	for v := range f.pending {
		if f.pending[v] == nil {
			f.pending[v] = f.group(verb(v))
		}
		if p := f.pending[v]; p != nil {
			if p.call.unsure && time.Since(p.call.first) > laneTrust {
				f.refork(verb(v), p)
			}
			calls = append(calls, p.call)
		}
	}
	out := f.worker.outages.has(f)
	if out && len(calls) > 0 {
		return calls
	}
	if c := f.leaseCall(out); c != nil {
		calls = append(calls, c)
	}
	return calls
}

// refork moves a call whose lane may have forgotten it to a new lane.
func (f *feed) refork(v verb, p *pendingCall) {
	old := f.lanes[v].key
	f.lanes[v] = newLane(&f.q.keys)
	for i, k := range p.call.keys {
		if k == old {
			p.call.keys[i] = f.lanes[v].key
		}
	}
	p.call.args[0] = f.lanes[v].next()
	p.call.first, p.call.unsure = time.Time{}, false
	p.forked = true
}

// group takes finished outcomes of one verb into a call, or is nil.
func (f *feed) group(v verb) *pendingCall {
	p := &pendingCall{}
	rest := f.finished[:0]
	bytes := 0
	for _, out := range f.finished {
		if out.verb != v || len(p.outs) == maxCallRuns || !fits(len(p.outs), bytes, 1, len(out.record)) {
			rest = append(rest, out)
			continue
		}
		p.outs = append(p.outs, out)
		bytes += len(out.record)
	}
	clear(f.finished[len(rest):])
	f.finished = rest
	if len(p.outs) == 0 {
		return nil
	}
	p.call = f.verbCall(v, p)
	return p
}

func (f *feed) verbCall(v verb, p *pendingCall) *call {
	k, l := &f.q.keys, f.lanes[v]
	c := &call{args: []any{l.next()}}
	switch v {
	case verbSettle:
		c.script, c.keys = scriptSettle, []string{k.jobs, k.held, k.leases, k.runs, k.meta, k.minutes, l.key}
	case verbRetry:
		c.script, c.keys = scriptRetry, []string{k.jobs, k.held, k.due, k.leases, k.runs, k.meta, k.minutes, k.wake, l.key}
	case verbBury:
		c.script, c.keys = scriptBury, []string{k.jobs, k.held, k.leases, k.runs, k.dead, k.index, k.meta, k.minutes, l.key}
	case verbRelease:
		c.script, c.keys = scriptRelease, []string{k.leases, k.runs, k.meta, k.minutes, k.wake, l.key}
	}
	fixed := len(c.keys)
	for _, out := range p.outs {
		p.tokens = append(p.tokens, out.run.token)
		c.args = append(c.args, out.run.id, out.run.token)
		unique := 0
		if key := out.run.uniqueKey(); key != "" && (v == verbSettle || v == verbBury) {
			c.keys = append(c.keys, k.unique(key))
			unique = len(c.keys) - fixed
		}
		switch v {
		case verbSettle:
			c.args = append(c.args, out.counter, unique)
		case verbRetry:
			c.args = append(c.args, out.record, ceilMillis(out.delay), out.counter)
		case verbBury:
			c.args = append(c.args, out.record, out.also, unique)
		case verbRelease:
			c.args = append(c.args, out.unrun)
		}
	}
	return c
}

// roundTrip sends the calls and applies their answers. It reports whether all
// were answered.
func (f *feed) roundTrip(calls []*call) bool {
	wasOut := f.worker.outages.has(f)
	f.mu.Lock()
	f.inCall = time.Now()
	f.mu.Unlock()
	attempt(context.Background(), f.q.client.rdb, calls...)
	f.mu.Lock()
	f.inCall = time.Time{}
	f.mu.Unlock()
	var failure error
	var news []func() // for the hooks, once the jobs of the lease have started
	for _, c := range calls {
		if c.err != nil {
			failure = c.err
		}
	}
	for v, p := range f.pending {
		if p != nil && p.call.reply != nil && p.call.err == nil {
			f.pending[v] = nil
			news = append(news, f.apply(verb(v), p)...)
		}
	}
	if l := f.leasing; l != nil && l.call.reply != nil && l.call.err == nil {
		f.leasing = nil
		f.receive(l)
	}
	settled := f.afterRound(failure, wasOut)
	for _, tell := range news {
		tell()
	}
	return settled
}

// afterRound begins or ends an outage and reports whether all is well.
func (f *feed) afterRound(failure error, wasOut bool) bool {
	if failure != nil {
		f.worker.outages.begin(outage{feed: f}, failure)
		f.mu.Lock()
		if l := f.leasing; l != nil {
			f.yield(l)
			if !l.call.unsure {
				f.abandonLease(false)
			}
		}
		f.mu.Unlock()
		f.worker.slots.rest(f.index)
		f.cautious = time.Now().Add(f.worker.cfg.VisibilityTimeout / 3)
		return false
	}
	if wasOut {
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
func (f *feed) apply(v verb, p *pendingCall) (news []func()) {
	marks, err := p.call.text()
	if err != nil || len(marks) != len(p.outs) {
		// Another's call in this lane: it cannot be, and a new lane mends it.
		f.worker.client.log.Error("pawl: a script's answer makes no sense", "queue", f.q.name,
			"script", p.call.script.name, "answer", marks, "error", err)
		f.mu.Lock()
		f.refork(v, p)
		f.pending[v] = p
		f.mu.Unlock()
		return nil
	}
	for i, out := range p.outs {
		switch {
		case marks[i] == 'c' && v != verbRelease:
			f.again(out.cancelled())
		case marks[i] != 'l':
			f.mu.Lock()
			f.forget(out.run)
			if v == verbRelease && f.draining && !out.unrun {
				f.released = append(f.released, out.run.job.ID)
			}
			f.mu.Unlock()
			news = append(news, func() { out.stored(f.worker.client) })
		default:
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
	f.mu.Lock()
	f.finished = append(f.finished, out)
	f.mu.Unlock()
	f.poke()
}
