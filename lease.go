package pawl

import (
	"crypto/rand"
	"strconv"
	"strings"
	"time"

	"github.com/pawlq/pawl/internal/jobid"
)

// leaseCall is a lease on its way, with the slots it may fill.
type leaseCall struct {
	call    *call
	n       int
	wakes   int
	answers int  // of leases, when it was made
	suspect bool // the worker's suspect mutex is held for it
	yielded bool // its slots and the mutex were given back: no answer came
}

// leased is one job of a lease call's answer.
type leased struct {
	id, token, record, flags string
	crashes                  int
	said                     remark // of a run before
	suspect                  bool
	sent                     time.Time // when the lease was asked for
	until                    time.Time // to which it was renewed; zero if it was not
	now                      time.Time // by the server's clock
}

// fence is the number in a token that rises with every lease.
func fence(token string) int64 {
	us, _, _ := strings.Cut(token, "-")
	n, _ := strconv.ParseInt(us, 10, 64)
	return n
}

// leaseCall is the lease to send, or nil. After an outage a lease that did not
// run is made anew, to leave expired leases to their holders.
func (f *feed) leaseCall(t *track, outage bool) *call {
	if l := t.leasing; l != nil {
		forgotten := l.call.unsure && time.Since(l.call.first) > laneTrust
		if !forgotten && (l.call.unsure || !outage) {
			return l.call
		}
		f.abandonLease(t, forgotten)
	}
	if f.draining || !f.hungry {
		return nil
	}
	other := f.beside(t)
	if other.leasing != nil && other.leasing.yielded {
		return nil // its jobs need the slots, if it ran
	}
	// The outcomes that go with this lease are stored before it.
	want := f.worker.cfg.Concurrency - len(f.finished) - t.unanswered() - other.unanswered()
	n := f.worker.slots.take(f.index, max(0, min(want, maxCallRuns)))
	if n <= 0 {
		return nil
	}
	if len(f.running) > 0 && time.Since(f.pulsed) > f.worker.cfg.VisibilityTimeout/2 {
		// This process was frozen. What it still runs is extended before anybody,
		// itself included, takes it for lost.
		f.cautious = time.Now().Add(f.worker.cfg.VisibilityTimeout / 3)
		nudge(f.beat)
	}
	l := &leaseCall{n: n, wakes: f.wakes, answers: f.answers, suspect: f.worker.suspect.TryLock()}
	k := &f.q.keys
	l.call = &call{script: scriptLease,
		keys: []string{k.jobs, k.held, k.due, k.prio, k.leases, k.runs, k.meta, k.minutes, k.wake, t.leaser.key},
		args: []any{t.leaser.next(), n, f.worker.cfg.VisibilityTimeout.Milliseconds(), f.worker.tag + rand.Text()[:6],
			f.worker.leastCrashes, l.suspect, f.mayTakeExpired(), strconv.FormatUint(jobid.NewLow(), 10)}}
	t.leasing = l
	if outage {
		// It may take long, and other queues need the slots: this one does not even
		// wait for any.
		f.yield(l)
		f.worker.slots.rest(f.index)
	}
	return l.call
}

// takesExpired is the word of a lease that may take leases that ran out, if it is
// written in time. One that waited for a connection for long may come before the
// outcomes and renewals of this worker that waited beside it: what ran out meanwhile
// may be its own.
type takesExpired struct {
	until time.Time // zero: not at all
}

// MarshalBinary is called by go-redis when it writes.
func (e takesExpired) MarshalBinary() ([]byte, error) {
	if time.Now().Before(e.until) {
		return []byte("1"), nil
	}
	return []byte("0"), nil
}

// mayTakeExpired is asked with the feed locked.
func (f *feed) mayTakeExpired() (e takesExpired) {
	if now := time.Now(); now.After(f.cautious) && !f.unrenewed {
		e.until = now.Add(f.worker.cfg.VisibilityTimeout / 3)
	}
	return e
}

// abandonLease gives up an unanswered lease. If it ran after all, its jobs come
// back when their leases run out.
func (f *feed) abandonLease(t *track, forgotten bool) {
	l := t.leasing
	t.leasing = nil
	if forgotten {
		t.leaser = newLane(&f.q.keys)
	}
	f.yield(l)
}

// yield gives back what an unanswered lease holds: other queues need it. If it
// ran after all, its jobs start as far as there are slots for them then.
func (f *feed) yield(l *leaseCall) {
	if l.yielded {
		return
	}
	l.yielded = true
	if l.suspect {
		f.worker.suspect.Unlock()
	}
	f.worker.slots.unused(f.index, l.n)
}

// receive starts the jobs of a lease call's answer.
func (f *feed) receive(t *track, l *leaseCall) {
	jobs, next, ok := f.parse(l)
	if !ok {
		f.worker.client.log.Error("pawl: a script's answer makes no sense", "queue", f.q.name, "script", "lease")
		t.leaser = newLane(&f.q.keys)
	}
	held := l.n
	if l.yielded {
		held = f.worker.slots.take(f.index, len(jobs))
		l.suspect = f.worker.suspect.TryLock()
	}
	started, bytes, suspect := 0, 0, false
	for _, job := range jobs {
		bytes += len(job.record)
		if f.start(job, started < held && (l.suspect || !job.suspect)) {
			started++
			suspect = suspect || job.suspect
		}
	}
	if l.suspect && !suspect {
		f.worker.suspect.Unlock()
	}
	full := len(jobs) >= l.n || bytes >= maxCallBytes*9/10
	f.mu.Lock()
	// Of two leases under way at a time neither knows what the other left.
	alone := f.answers == l.answers && f.beside(t).leasing == nil
	f.hungry = full || f.wakes != l.wakes || !ok || f.hungry && !alone
	f.next = next
	f.answers++
	resting := !f.hungry
	f.mu.Unlock()
	f.worker.slots.unused(f.index, held-started)
	if resting {
		f.worker.slots.rest(f.index)
	}
	f.worker.wakers[f.index].poke(f)
}

func (f *feed) parse(l *leaseCall) (jobs []leased, next time.Time, ok bool) {
	parts, isList := l.call.reply.([]any)
	if !isList || len(parts) < 3 || len(parts)%4 != 3 {
		return nil, next, false
	}
	text := func(i int) string { s, _ := parts[i].(string); return s }
	now, err := strconv.ParseInt(text(0), 10, 64)
	if err != nil {
		return nil, next, false
	}
	clock := serverClock{ms: now, at: time.Now()}
	f.mu.Lock()
	f.clock = clock
	f.mu.Unlock()
	if ms, err := strconv.ParseInt(text(1), 10, 64); err == nil && ms >= 0 {
		next = clock.at.Add(time.Duration(min(ms, maxWait.Milliseconds())) * time.Millisecond)
	}
	jobs = make([]leased, 0, len(parts)/4)
	for i := 3; i < len(parts); i += 4 {
		job := leased{id: text(i), token: text(2), record: text(i + 1), sent: l.call.first, now: time.UnixMilli(now)}
		if flags, rest, more := strings.Cut(text(i+3), " "); more {
			job.flags, job.said = flags, readProgress(rest)
		} else {
			job.flags = flags
		}
		job.crashes, _ = strconv.Atoi(text(i + 2))
		job.suspect = strings.Contains(job.flags, "s")
		jobs = append(jobs, job)
	}
	return jobs, next, true
}

// start runs a leased job, gives it back if there is no room for it, or hands
// the new token to a handler of this worker that still runs it. It reports
// whether the job took a slot.
func (f *feed) start(l leased, room bool) bool {
	f.mu.Lock()
	held, quitting := f.running[l.id], f.quitting
	switch {
	case held == nil:
		f.mu.Unlock()
	case fence(held.token) >= fence(l.token):
		f.mu.Unlock()
		return false // the answer of an older lease came late
	case held.sent:
		// It may have been put back, and be free to be leased: the answer tells.
		defer f.mu.Unlock()
		return held.await(l, room)
	case !held.does(l):
		f.mu.Unlock()
		held.reportLost()
		f.mu.Lock()
		defer f.mu.Unlock()
		return held.await(l, room) // no second run of the job begins beside it
	default:
		f.mu.Unlock()
		f.adopt(held, l)
		return false
	}
	if quitting {
		return false // its lease runs out
	}
	r := newRun(f, l)
	until := r.until
	f.mu.Lock()
	f.running[l.id] = r // only loop adds to it, so nobody came in between
	draining := f.draining
	f.mu.Unlock()
	if draining || !room || !time.Now().Before(until) {
		// Too late to run it: the worker stops, or the answer took so long.
		out := r.unrun()
		if out == nil {
			out = &outcome{run: r, verb: verbRelease, unrun: true, event: r.event(nil)}
		}
		r.slotless, r.suspect = !room, r.suspect && room
		f.finish(out)
		return room
	}
	r.beSeen()
	f.worker.runners.start(r)
	return true
}

// adopt gives a run its new token: its lease ran out and a crash was counted, but
// its holder lives.
func (f *feed) adopt(r *run, l leased) {
	f.mu.Lock()
	before := extension{r, r.token, r.visibility}
	r.token, r.until = l.token, r.leaseEnd(l.sent)
	f.mu.Unlock()
	go f.takeBack(before)
}

// A relet is a newer lease of a job whose outcome is on its way to Redis, or which
// still runs with older arguments.
type relet struct {
	leased
	room bool // it holds a slot
}

// await keeps a newer lease until the answer tells whether the outcome was stored
// before it, and has it renewed meanwhile. A suspect keeps no slot, nor the right to run: it
// goes back, and comes again.
func (r *run) await(l leased, room bool) (took bool) {
	room = room && !l.suspect
	if r.next == nil {
		r.next = &relet{l, room}
		return room
	}
	took = room && !r.next.room
	r.next.leased, r.next.room = l, r.next.room || room
	return took
}

// answered starts a job whose outcome is stored and that was leased anew
// meanwhile, or, if the outcome was not stored, has its run adopt the new lease. One
// that is for other work is started all the same: the old run is over.
func (f *feed) answered(out *outcome, held bool) {
	f.mu.Lock()
	next := out.run.next
	out.run.next, out.run.sent = nil, false
	f.mu.Unlock()
	if next == nil {
		return
	}
	started := false
	if held && out.run.does(next.leased) {
		f.adopt(out.run, next.leased)
	} else {
		f.mu.Lock()
		f.forget(out.run)
		f.mu.Unlock()
		started = f.start(next.leased, next.room && !next.suspect)
	}
	if next.room && !started {
		f.worker.slots.give(f.index, 1)
	}
}
