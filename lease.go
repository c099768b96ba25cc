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
	suspect bool // the worker's suspect mutex is held for it
	yielded bool // its slots and the mutex were given back: no answer came
}

// leased is one job of a lease call's answer.
type leased struct {
	id, token, record, flags string
	crashes                  int
	suspect                  bool
	sent                     time.Time // when the lease was asked for
	now                      time.Time // by the server's clock
}

// fence is the number in the token that rises with every lease.
func (l *leased) fence() int64 {
	us, _, _ := strings.Cut(l.token, "-")
	n, _ := strconv.ParseInt(us, 10, 64)
	return n
}

// leaseCall is the lease to send, or nil. After an outage a lease that did not
// run is made anew, to leave expired leases to their holders.
func (f *feed) leaseCall(outage bool) *call {
	if l := f.leasing; l != nil {
		forgotten := l.call.unsure && time.Since(l.call.first) > laneTrust
		if !forgotten && (l.call.unsure || !outage) {
			return l.call
		}
		f.abandonLease(forgotten)
	}
	if f.draining || !f.hungry {
		return nil
	}
	want := f.worker.cfg.Concurrency - len(f.finished)
	for _, p := range f.pending {
		if p != nil && !p.call.first.IsZero() {
			want -= len(p.outs) // those that go with this lease are stored before it
		}
	}
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
	l := &leaseCall{n: n, wakes: f.wakes, suspect: f.worker.suspect.TryLock()}
	k := &f.q.keys
	l.call = &call{script: scriptLease,
		keys: []string{k.jobs, k.held, k.due, k.prio, k.leases, k.runs, k.meta, k.minutes, k.wake, f.leaser.key},
		args: []any{f.leaser.next(), n, f.worker.cfg.VisibilityTimeout.Milliseconds(), f.worker.tag + rand.Text()[:6],
			f.worker.leastCrashes, l.suspect, time.Now().After(f.cautious) && !f.unrenewed, strconv.FormatUint(jobid.NewLow(), 10)}}
	f.leasing = l
	return l.call
}

// abandonLease gives up an unanswered lease. If it ran after all, its jobs come
// back when their leases run out.
func (f *feed) abandonLease(forgotten bool) {
	l := f.leasing
	f.leasing = nil
	if forgotten {
		f.leaser = newLane(&f.q.keys)
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
func (f *feed) receive(l *leaseCall) {
	jobs, next, ok := f.parse(l)
	if !ok {
		f.worker.client.log.Error("pawl: a script's answer makes no sense", "queue", f.q.name, "script", "lease")
		f.leaser = newLane(&f.q.keys)
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
	f.hungry = full || f.wakes != l.wakes || !ok
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
	for i := 3; i < len(parts); i += 4 {
		job := leased{id: text(i), token: text(2), record: text(i + 1), flags: text(i + 3), sent: l.call.first, now: time.UnixMilli(now)}
		job.crashes, _ = strconv.Atoi(text(i + 2))
		job.suspect = strings.Contains(job.flags, "s")
		jobs = append(jobs, job)
	}
	return jobs, next, true
}
