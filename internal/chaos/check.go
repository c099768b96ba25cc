package chaos

import (
	"fmt"
	"slices"
)

// The invariants, by the names that the list of faults has for them.
const (
	NoLoss       = "no loss"
	NoPhantom    = "no phantom"
	UnknownOnce  = "unknown is at most one"
	Fenced       = "fenced"
	OneHolder    = "one holder"
	OneState     = "one state"
	OneTombstone = "one tombstone"
	Conservation = "conservation"
	UniqueKey    = "unique"
	Idempotent   = "idempotent"
	RetryLaw     = "retry law"
	EffectOnce   = "effect at most once"
	Recovers     = "recovers alone"
	Stuck        = "stuck"
	HonestErrors = "honest errors"
)

// Violation is an invariant that a history or its end breaks.
type Violation struct{ Invariant, Job, Text string }

func (v Violation) String() string {
	if v.Job == "" {
		return v.Invariant + ": " + v.Text
	}
	return fmt.Sprintf("%s: job %s: %s", v.Invariant, v.Job, v.Text)
}

// Check judges a run by what its processes wrote down and what is left. It only
// claims what is certain: a line that is missing, because its writer was killed,
// may always have been there, and is taken for whatever would be in order.
func Check(history []Event, state State) []Violation {
	c := &checker{index: newIndex(history, state)}
	for _, id := range c.order {
		j := c.jobs[id]
		c.origin(j)
		c.loss(j)
		c.tombstones(j)
		c.cancelled(j)
		c.once(j)
		for i, r := range j.runs {
			c.run(j, r)
			c.told(j, r)
			if i > 0 {
				c.succession(j, j.runs[i-1], r)
			}
			for _, later := range j.runs[i+1:] {
				c.fence(j, r, later)
			}
		}
	}
	c.answers()
	c.pauses()
	c.recovery()
	c.uniques()
	c.idempotent()
	c.left()
	c.counters()
	return c.found
}

type checker struct {
	*index
	found []Violation
}

func (c *checker) report(invariant string, j *job, format string, args ...any) {
	v := Violation{Invariant: invariant, Text: fmt.Sprintf(format, args...)}
	if j != nil {
		v.Job = j.id
	}
	c.found = append(c.found, v)
}

// origin: what ran or died was enqueued.
func (c *checker) origin(j *job) {
	if j.enqueue == nil && (len(j.runs) > 0 || j.dead != nil) {
		c.report(NoPhantom, j, "nobody enqueued it (ref %q)", j.ref)
	}
}

// loss: what was there ends done, dead, cancelled or purged, and once.
func (c *checker) loss(j *job) {
	over := 0
	for _, e := range j.ends() {
		if e.Op.over() {
			over++
		}
	}
	switch {
	case over > 1:
		c.report(Fenced, j, "was ended %d times", over)
	case over == 1 && j.live:
		c.report(OneState, j, "is over, and in the queue all the same")
	case over == 1 && j.dead != nil:
		c.report(OneState, j, "is over, and dead all the same")
	case over == 1 || j.live || j.dead != nil:
	case j.enqueue == nil, len(j.runs) == 0 && !j.enqueue.sure():
		// It may never have been there.
	case c.explained(j):
	case c.lostButEnded(j):
		c.report(HonestErrors, j, "a run was told that its lease was lost, and nobody else can have ended the job")
	default:
		c.report(NoLoss, j, "is gone, and nothing ended it (ref %s)", j.ref)
	}
}

// ends are the outcomes of all its runs that are known to be stored.
func (j *job) ends() (all []Event) {
	for _, r := range j.runs {
		all = append(all, r.ends...)
	}
	return append(all, j.loose...)
}

// explained tells whether something may have ended the job unseen.
func (c *checker) explained(j *job) bool {
	if slices.ContainsFunc(j.cancels, (*call).may) {
		return true
	}
	if c.skippable(j) {
		return true
	}
	if j.enqueue != nil && j.enqueue.invoke.Scrap {
		for _, other := range c.calls {
			if other.invoke.Op == Purge && other.may() {
				return true
			}
		}
	}
	for _, r := range j.runs {
		if r.final() && len(r.ends) == 0 && (r.lost == nil || c.killed[r.start.Process] > 0) {
			return true
		}
	}
	return false
}

// final tells whether the handler returned what ends a job.
func (r *run) final() bool {
	return r.effect != nil && (r.effect.Class == "done" || r.effect.Class == "discard" || r.effect.Cause == "cancelled")
}

func (c *checker) lostButEnded(j *job) bool {
	return slices.ContainsFunc(j.runs, func(r *run) bool { return r.final() && r.lost != nil })
}

// cancelled: a job does not start any more once Cancel has returned.
func (c *checker) cancelled(j *job) {
	for _, call := range j.cancels {
		for _, r := range j.runs {
			if call.sure() && r.leasedAt() > call.answer.At {
				c.report(HonestErrors, j, "was started %d ms after its Cancel had returned", r.leasedAt()-call.answer.At)
			}
		}
	}
}

// tombstones: a death leaves one, a redrive takes it away.
func (c *checker) tombstones(j *job) {
	deaths := map[int]int{}
	for _, e := range j.ends() {
		if e.Op == Dead {
			deaths[e.Redrives]++
		}
	}
	for redrives, n := range deaths {
		if n > 1 {
			c.report(OneTombstone, j, "died %d times after %d redrives", n, redrives)
		}
	}
	t := j.dead
	if t == nil {
		return
	}
	for _, r := range j.runs {
		if r.start.Redrives > t.Redrives {
			c.report(OneTombstone, j, "ran after redrive %d, and its tombstone of %d is still there", r.start.Redrives, t.Redrives)
			break
		}
	}
	if t.Reason == "" || t.Ref == "" || t.DiedAt == 0 {
		c.report(OneTombstone, j, "its post-mortem is not complete: %+v", *t)
	}
	if j.live {
		c.report(OneState, j, "is dead, and in the queue all the same")
	}
	if t.Attempt > t.MaxAttempts || t.Reason == "exhausted" && t.Attempt != t.MaxAttempts {
		c.report(RetryLaw, j, "is dead (%s) after %d attempts of %d", t.Reason, t.Attempt, t.MaxAttempts)
	}
	for _, call := range j.moved {
		if call.invoke.Op == Redrive && call.sure() && t.DiedAt < call.invoke.At {
			c.report(HonestErrors, j, "a redrive moved it, and its tombstone of before is still there")
		}
	}
}
