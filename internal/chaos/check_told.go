package chaos

import "slices"

// told: a worker says how each run ended, unless it was killed, and it ended as
// its handler wanted.
func (c *checker) told(j *job, r *run) {
	name := r.start.Process
	until := r.leasedAt() + r.start.Lease
	if late := r.start.At - until; late > patience && !c.frozen(name, until, r.start.At) {
		c.report(Fenced, j, "run %d was started %d ms after its lease had ended", r.start.Run, late)
	}
	if len(r.ends) == 0 && r.lost == nil && !c.cut[name] && !c.disturbedDrain(name) {
		c.report(HonestErrors, j, "worker %s lived on, and never said how run %d ended", name, r.start.Run)
	}
	if r.effect == nil {
		return
	}
	for _, end := range r.ends {
		ok := end.Op == Cancel || slices.Contains(ways[r.effect.Class], end.Op)
		if end.Op == Release || end.Op == Dead {
			// What its worker did to the run comes before what the handler returns.
			ok = ok || r.effect.Cause != "" || c.killed[name] > 0 || c.disturbed(r.leasedAt(), r.effect.At, patience+2*r.start.Lease)
		}
		if !ok {
			c.report(RetryLaw, j, "run %d returned %q and was stored as %q", r.start.Run, r.effect.Class, end.Op)
		}
	}
}

// ways are the ends that the class of an effect may come to.
var ways = map[string][]Op{"done": {Done}, "discard": {Discard}, "dead": {Dead}, "retry": {Retry, Dead}, "snooze": {Snooze}}

// frozen tells whether a process was stopped within a time.
func (c *checker) frozen(process string, from, to int64) bool {
	return slices.ContainsFunc(c.faults, func(f Event) bool {
		return f.Class == "stop" && f.Ref == process && f.At <= to && f.At+f.Delay+patience >= from
	})
}

// disturbedDrain tells whether a worker was told to end when something kept it
// from telling Redis of what it had: a fault, or that the machine left too little of
// the seconds that it waits.
func (c *checker) disturbedDrain(process string) bool {
	at := c.killed[process]
	const drain = 300 + 2*3000 // ms that a worker gives its handlers, and Redis
	starved := int64(0)
	for _, f := range c.faults {
		switch {
		case f.Class == Healed, brief(f.Class), f.At > at+drain, f.At+f.Delay+patience < at:
		case f.Class != Starved:
			return at > 0
		default:
			starved += f.Delay
		}
	}
	return at > 0 && starved > 3*patience
}

// once: a job that may run at most once does, but for its redrives.
func (c *checker) once(j *job) {
	if j.enqueue == nil || j.enqueue.invoke.Class != "once" {
		return
	}
	runs := map[int]int{}
	for _, r := range j.runs {
		if runs[r.start.Redrives]++; runs[r.start.Redrives] == 2 {
			c.report(EffectOnce, j, "ran a second time, with one attempt and one crash")
		}
	}
}

// pauses: nothing is leased in a pause that was answered, until it ends or may
// have been ended.
func (c *checker) pauses() {
	var calls []*call
	for _, call := range c.calls {
		if call.invoke.Op == Pause || call.invoke.Op == Resume {
			calls = append(calls, call)
		}
	}
	for _, p := range calls {
		if p.invoke.Op != Pause || !p.sure() {
			continue
		}
		from, to := p.answer.At+fuzz, p.invoke.At+p.invoke.Delay-fuzz
		for _, other := range calls {
			if other != p && other.may() && other.invoke.Queue == p.invoke.Queue && (other.answer == nil || other.answer.At >= p.invoke.At) {
				to = min(to, other.invoke.At)
			}
		}
		for _, l := range c.leasedBetween(from, to) {
			if l.run.start.Queue == p.invoke.Queue {
				c.report(HonestErrors, l.job, "run %d was leased %d ms before the end of a pause", l.run.start.Run, to-l.run.leasedAt())
			}
		}
	}
}

// recovery: once the last fault is over, what waits is leased within a visibility
// timeout and two seconds.
func (c *checker) recovery() {
	if took, lease, waited := c.resumed(); waited && took > lease+2000+patience {
		c.report(Recovers, nil, "the first lease came %d ms after the last fault, with jobs waiting", took)
	}
}

// resumed is how long in ms after the last fault the first lease came, if there
// was work at that moment for certain: a job that nobody had leased before.
func (x *index) resumed() (took, lease int64, waited bool) {
	for _, f := range x.faults {
		if f.Class != Healed {
			continue
		}
		first := int64(-1)
		for _, j := range x.jobs {
			for i, r := range j.runs {
				if r.leasedAt() < f.At {
					continue
				}
				waited = waited || i == 0 && r.start.Due <= f.At && j.enqueuedAt()/1000 <= f.At
				if first < 0 || r.leasedAt() < first {
					first, lease = r.leasedAt(), r.start.Lease
				}
			}
		}
		return first - f.At, lease, waited
	}
	return 0, 0, false
}
