package chaos

import "slices"

// idempotent: no two jobs of an idempotency key are both done by runs of which one
// began before the window of the other had ended.
func (c *checker) idempotent() {
	byKey := map[string][]lease{}
	for _, l := range c.leases {
		if e := l.job.enqueue; e != nil && e.invoke.Idem != "" && l.run.effect != nil && l.run.ended(Done) != nil {
			key := e.invoke.Queue + " " + e.invoke.Idem
			byKey[key] = append(byKey[key], l)
		}
	}
	for key, done := range byKey {
		slices.SortFunc(done, func(a, b lease) int { return int(a.run.effect.At - b.run.effect.At) })
		for i := 1; i < len(done); i++ {
			// It was stored after the effect, and asked for the key before the start.
			a, b := done[i-1], done[i]
			free := a.run.effect.At + a.job.enqueue.invoke.Keep
			if early := free - fuzz - b.run.start.At; early > 0 {
				c.report(Idempotent, b.job, "was done under the key %q, and began %d ms before %s let go of it", key, early, a.job.id)
			}
		}
	}
}

// skippable tells whether a job may have ended unseen because another had been
// done under its key: its worker was killed before it could say so.
func (c *checker) skippable(j *job) bool {
	if j.enqueue == nil || j.enqueue.invoke.Idem == "" || len(c.cut) == 0 {
		return false
	}
	return slices.ContainsFunc(c.order, func(id string) bool {
		other := c.jobs[id]
		return other != j && other.enqueue != nil && other.enqueue.invoke.Queue == j.enqueue.invoke.Queue &&
			other.enqueue.invoke.Idem == j.enqueue.invoke.Idem && slices.ContainsFunc(other.runs, (*run).final)
	})
}

// waitedBetween tells whether a job may have been put back between two runs because its
// key was in use. Who did so may have been killed before it could say so.
func (c *checker) waitedBetween(j *job, a, b *run) bool {
	if j.enqueue != nil && j.enqueue.invoke.Idem != "" && c.cutBetween(a.leasedAt(), b.leasedAt()+patience) {
		return true
	}
	return slices.ContainsFunc(j.loose, func(e Event) bool {
		return e.Op == Snooze && e.Run > a.start.Run && e.Run < b.start.Run
	})
}

// unrun counts the jobs that are known to have been skipped, those that may have
// been, unseen, and how often at most keys in use put jobs back, unseen.
func (c *checker) unrun() (skips, maybe, waits int64) {
	for _, id := range c.order {
		j := c.jobs[id]
		ended := slices.ContainsFunc(j.ends(), func(e Event) bool { return e.Op.over() })
		for _, e := range j.loose {
			if e.Op == Skip {
				skips++
			}
		}
		if j.enqueue == nil || j.enqueue.invoke.Idem == "" {
			continue
		}
		waits += int64(len(c.cut))
		if !ended && !j.live && j.dead == nil && c.skippable(j) {
			maybe++
		}
	}
	return skips, maybe, waits
}
