package pawl

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// extender renews the leases of a feed's runs. Its lane carries one call at a
// time; a renewal that got no answer is made anew, since a later one includes
// it and the lane refuses the earlier.
type extender struct {
	mu   sync.Mutex
	lane *lane
}

// extension is one run in a renewal, as it stood when the call was made.
type extension struct {
	run        *run
	token      string
	visibility time.Duration
}

// pulse renews leases at a third of the smallest visibility timeout, ends the
// contexts of runs whose lease ran out by the local clock, whether or not Redis
// can be reached, and reports handlers that are stuck. It ends with stop.
func (f *feed) pulse(stop <-chan struct{}) {
	beats := make(chan error, 1)
	renewals := outage{feed: f, renewals: true}
	defer f.worker.outages.end(renewals)
	beating, failures := false, 0
	last, again := time.Now(), time.Time{} // the last renewal, and the next if it failed
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			return
		case <-f.beat:
		case <-timer.C:
		case err := <-beats:
			beating = false
			if failures++; err == nil {
				failures = 0
			} else {
				f.worker.outages.begin(renewals, err)
			}
			again = time.Now().Add(retryPause(failures))
			f.mu.Lock()
			f.unrenewed = err != nil
			f.mu.Unlock()
		}
		now := time.Now()
		every, next, hurry := f.inspect(now)
		if failures == 0 || every == 0 { // renewed, or nothing to renew
			if failures > 0 {
				f.mu.Lock()
				f.unrenewed = false
				f.mu.Unlock()
			}
			failures = 0
			f.worker.outages.end(renewals)
		}
		due := last.Add(every)
		switch {
		case failures > 0:
			due = again
		case hurry:
			due = now
		}
		if every > 0 && !beating && !now.Before(due) {
			beating, last = true, now
			due = now.Add(every)
			go func() { beats <- f.renew() }()
		}
		if every > 0 && !beating && due.Before(next) {
			next = due
		}
		timer.Reset(time.Until(next))
	}
}

// inspect ends what has to end and returns the interval of renewals (0: nothing
// runs), when to inspect again, and whether a lease ends before the next renewal.
func (f *feed) inspect(now time.Time) (every time.Duration, next time.Time, hurry bool) {
	var lost, stuck []*run
	// Early enough to renew what is leased in the next moment.
	next = now.Add(f.worker.cfg.VisibilityTimeout / 3)
	sooner := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	f.mu.Lock()
	f.pulsed = now
	for _, r := range f.running {
		// A lease begins with the worker's visibility timeout: see leaseEnd.
		if third := min(r.visibility, f.worker.cfg.VisibilityTimeout) / 3; every == 0 || third < every {
			every = third
		}
		if r.finished {
			continue
		}
		if !r.lost && !now.Before(r.until) {
			lost = append(lost, r)
		} else if !r.lost {
			sooner(r.until)
			hurry = hurry || r.until.Sub(now) < min(r.visibility, f.worker.cfg.VisibilityTimeout)/3
		}
		if r.endedAt.IsZero() && r.ctx.Err() != nil {
			r.endedAt = now
		}
		report := r.endedAt.Add(f.worker.cfg.StuckAfter)
		switch {
		case r.endedAt.IsZero() && !r.endsAt.IsZero():
			sooner(r.endsAt.Add(time.Millisecond))
		case r.endedAt.IsZero() || r.stuck:
		case now.Before(report):
			sooner(report)
		default:
			r.stuck = true
			stuck = append(stuck, r)
		}
	}
	f.mu.Unlock()
	// The hooks are told beside: they may be slow, and clocks run on.
	for _, r := range lost {
		r.reportLost()
	}
	for _, r := range stuck {
		f.worker.teller.tell(r.reportStuck)
	}
	if len(lost) > 0 {
		next = now // their contexts have ended now
	}
	return every, next, hurry
}

func (r *run) reportStuck() {
	ctx, e := r.seen(nil)
	e.Job.Logger().Warn("pawl: handler is stuck: its context has ended and it runs on", "cause", e.Err)
	r.feed.worker.client.hooks.stuck(ctx, e)
}

// renew extends the lease of every run, those that wait to be stored included.
// Its error is that of the first call without an answer.
func (f *feed) renew() error {
	f.extender.mu.Lock()
	defer f.extender.mu.Unlock()
	f.mu.Lock()
	var all []extension
	for _, r := range f.running {
		e := extension{r, r.token, r.visibility}
		if r.next != nil {
			e.token = r.next.token // the older one is no longer valid
		}
		all = append(all, e)
	}
	f.mu.Unlock()
	for len(all) > 0 {
		n := min(len(all), maxCallItems)
		if err := f.extend(all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

func (f *feed) extend(batch []extension) error {
	k, l := &f.q.keys, f.extender.lane
	c := &call{script: scriptExtend, keys: []string{k.leases, k.runs, l.key}, args: []any{l.next()}}
	for _, e := range batch {
		c.args = append(c.args, e.run.id, e.token, ceilMillis(e.visibility))
	}
	attempt(context.Background(), f.q.client.rdb, c)
	if c.err != nil {
		return c.err
	}
	marks, err := c.text()
	if err == nil && len(marks) != len(batch) {
		err = fmt.Errorf("script extend answered %q for %d jobs", marks, len(batch))
	}
	if err != nil {
		f.extender.lane = newLane(k)
		return err
	}
	for i, e := range batch {
		switch marks[i] {
		case 'l':
			f.lose(e)
		case 'c':
			e.run.cancel(ErrCancelled)
			fallthrough
		default:
			f.mu.Lock()
			e.run.until = c.first.Add(e.visibility)
			if next := e.run.next; next != nil && next.token == e.token {
				next.until = e.run.until
			}
			f.mu.Unlock()
		}
	}
	return nil
}

// takeBack renews a lease that is no longer held, to have the crash taken back
// that was counted when it ran out: its holder lives.
func (f *feed) takeBack(e extension) {
	f.extender.mu.Lock()
	defer f.extender.mu.Unlock()
	_ = f.extend([]extension{e}) // lost: a crash too many in the count
}

// lose ends a run whose lease is gone, unless it has a newer one by now or its
// outcome is on its way: that will be answered for itself.
func (f *feed) lose(e extension) {
	f.mu.Lock()
	current := f.running[e.run.id] == e.run && e.run.token == e.token && !e.run.finished
	f.mu.Unlock()
	if current {
		e.run.reportLost()
	}
}
