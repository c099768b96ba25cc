package chaos

import "slices"

// fuzz is how far in ms two readings of one machine's clock may be apart by
// rounding.
const fuzz = 2

// patience is how long in ms a busy machine may leave a process waiting for the
// processor: no bound here is tighter.
const patience = 1500

// run: what one run of a handler says about itself.
func (c *checker) run(j *job, r *run) {
	s := r.start
	if len(r.again) > 0 {
		c.report(Fenced, j, "two runs have the token %d", s.Run)
	}
	if len(r.ends) > 1 {
		c.report(Fenced, j, "run %d has two outcomes: %s and %s", s.Run, r.ends[0].Op, r.ends[1].Op)
	}
	if s.Attempt > s.MaxAttempts {
		c.report(RetryLaw, j, "attempt %d of %d", s.Attempt, s.MaxAttempts)
	}
	slack := int64(0)
	if s.Due == j.enqueuedAt()/1000 {
		slack = fuzz * 1000 // ids of a burst run ahead of the clock
	}
	if early := s.Due*1000 - s.Run; early > slack {
		c.report(RetryLaw, j, "started %d us before it was due", early)
	}
	if end := r.ended(Retry, Snooze); end != nil && r.effect != nil {
		if end.Delay < r.effect.Least || end.Delay > r.effect.Most {
			c.report(RetryLaw, j, "after attempt %d it waits for %d ms, not for %d to %d", s.Attempt, end.Delay, r.effect.Least, r.effect.Most)
		}
	}
	if s.Crashes > 0 && j.runs[0] == r && s.Redrives == 0 && !c.disturbed(s.Due, r.leasedAt(), patience+2*s.Lease) {
		c.report(RetryLaw, j, "a crash is counted before its first run, and nothing had crashed")
	}
	first := j.runs[0] == r && s.Redrives == 0 && !j.hurried()
	if first && j.enqueue != nil {
		// A fresh job's due time is its id's, cut to the millisecond.
		if from := j.enqueuedAt() / 1000; s.Due+fuzz < from+j.enqueue.invoke.Delay {
			c.report(RetryLaw, j, "due %d ms after its enqueue, with a delay of %d", s.Due-from, j.enqueue.invoke.Delay)
		}
	}
}

// fence: once a newer run was leased, an older one stores nothing, and does not
// go on for long in the belief that it holds its lease.
func (c *checker) fence(j *job, older, newer *run) {
	if older.effect == nil {
		return
	}
	if end := older.ended(); end != nil && older.effect.At > newer.leasedAt()+fuzz {
		c.report(Fenced, j, "run %d was stored as %s, though run %d was leased %d ms before its handler returned",
			older.start.Run, end.Op, newer.start.Run, older.effect.At-newer.leasedAt())
	}
	// Renewed at the last moment, it may believe in its lease for a visibility
	// timeout more, and a frozen process as long as it is frozen.
	until := newer.leasedAt() + older.start.Lease
	for _, f := range c.faults {
		if f.Class == "stop" && f.Ref == older.start.Process {
			until = max(until, f.At+f.Delay)
		}
	}
	if older.effect.Cause == "" && older.effect.At > until+patience {
		c.report(Fenced, j, "run %d believed in its lease %d ms after run %d was leased",
			older.start.Run, older.effect.At-newer.leasedAt(), newer.start.Run)
	}
}

// succession: why there is a next run, and what it may look like.
func (c *checker) succession(j *job, a, b *run) {
	end := a.ended()
	if a.effect == nil || a.effect.At > b.leasedAt()+fuzz {
		// It was not over when it was taken: its lease must have run out.
		if early := a.leasedAt() + a.start.Lease - b.leasedAt() - fuzz; early > 0 {
			c.report(OneHolder, j, "run %d was leased %d ms before the lease of run %d could end", b.start.Run, early, a.start.Run)
		}
	}
	redriven := b.start.Redrives > a.start.Redrives
	switch {
	case end != nil && end.Op.over():
		c.report(EffectOnce, j, "ran again after it was %s", end.Op)
	case end != nil && (end.Op != Dead || redriven):
	case end == nil && c.relapsed(j, a, b):
	default:
		c.report(EffectOnce, j, "run %d came after run %d without a reason", b.start.Run, a.start.Run)
	}
	if !redriven {
		c.progress(j, a, b, end)
	}
}

// relapsed tells whether a run without a known outcome may be followed by
// another: it may have had one that asks for it, or lost its lease to a fault.
func (c *checker) relapsed(j *job, a, b *run) bool {
	if a.effect != nil && !a.final() && c.killed[a.start.Process] > 0 {
		return true
	}
	if at := c.killed[a.start.Process]; at > 0 && at <= b.leasedAt() {
		return true
	}
	lapsed := a.lost != nil || b.crashed || b.start.Crashes > a.start.Crashes || j.buriedBetween(a, b)
	return lapsed && c.disturbed(a.leasedAt(), b.leasedAt(), patience+2*a.start.Lease)
}

// buriedBetween tells whether the job died after a, of a lease whose handler was
// not called: b is then of a redrive.
func (j *job) buriedBetween(a, b *run) bool {
	return slices.ContainsFunc(j.loose, func(e Event) bool {
		return e.Op == Dead && e.Run > a.start.Run && e.Run < b.start.Run
	})
}

// progress: attempts and crashes count what happened, and a retry comes when it
// was to.
func (c *checker) progress(j *job, a, b *run, end *Event) {
	least, most := a.start.Attempt, a.start.Attempt+1
	switch {
	case end != nil && end.Op == Retry:
		least = most
	case end != nil, a.effect == nil, a.effect.Class != "retry": // no attempt was spent
		most = least
	}
	if n := b.start.Attempt; n < least || n > most {
		c.report(RetryLaw, j, "attempt %d came after attempt %d, which ended as %s", n, a.start.Attempt, a.class())
	}
	// One crash that was counted before may be given back: its holder lived.
	counted := max(a.start.Crashes, 1)
	cut := a.effect == nil || a.effect.Class == "exit"
	if cut && c.killed[a.start.Process] > 0 && b.start.Crashes < counted {
		c.report(RetryLaw, j, "the crash of run %d is not counted", a.start.Run)
	}
	calm := !c.disturbed(a.leasedAt(), b.leasedAt(), patience+2*a.start.Lease)
	if end != nil && b.start.Crashes > a.start.Crashes && calm {
		c.report(RetryLaw, j, "a crash is counted after run %d, which ended as %s", a.start.Run, end.Op)
	}
	if end == nil || end.Op != Retry && end.Op != Snooze || j.hurried() || a.effect == nil {
		return
	}
	if early := a.effect.At + end.Delay - b.start.Due; early > 0 {
		c.report(RetryLaw, j, "is due %d ms before its delay of %d is over", early, end.Delay)
	}
	if late := b.start.Due - end.At - end.Delay - fuzz; late > 0 && !c.waitedBetween(j, a, b) {
		c.report(RetryLaw, j, "is due %d ms after its delay of %d was over", late, end.Delay)
	}
}

func (r *run) class() string {
	switch {
	case len(r.ends) > 0:
		return string(r.ends[0].Op)
	case r.effect != nil:
		return "unknown, returning " + r.effect.Class
	}
	return "unknown"
}

// hurried tells whether an operator may have given it another time.
func (j *job) hurried() bool {
	return slices.ContainsFunc(j.moved, func(c *call) bool { return c.invoke.Op == RunNow && c.may() })
}
