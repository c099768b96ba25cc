package chaos

// left: what Redis holds at the end.
func (c *checker) left() {
	s := c.state.Stats
	if n := s.Depth() + s.Running; n > 0 {
		c.report(Stuck, nil, "the queues were not drained in time: %d ready, %d delayed, %d parked, %d running", s.Ready, s.Delayed, s.Parked, s.Running)
	}
	for _, text := range c.state.Problems {
		c.report(OneState, nil, "%s", text)
	}
	for _, key := range c.state.Leftover {
		c.report(OneState, nil, "the drained queue has the key %s", key)
	}
	if s.Total.Lost+s.Total.Healed > 0 {
		c.report(OneState, nil, "%d jobs had lost their record, %d their place", s.Total.Lost, s.Total.Healed)
	}
	seen := map[string]bool{}
	for _, t := range c.state.Dead {
		if seen[t.Job] {
			c.report(OneTombstone, c.jobs[t.Job], "has two tombstones")
		}
		seen[t.Job] = true
	}
	if int64(len(c.state.Dead)) != s.Dead {
		c.report(OneTombstone, nil, "%d tombstones, %d dead jobs", len(c.state.Dead), s.Dead)
	}
}

// counters: what was counted adds up, and is what the histories tell, as far as
// they do: an outcome that was returned and not seen stored may be counted or not.
func (c *checker) counters() {
	s, n := c.state.Stats, c.state.Stats.Total
	live := s.Depth() + s.Running
	if sum := live + s.Dead + n.Done + n.Discarded + n.Cancelled + n.Purged + n.Dropped; n.Enqueued != sum {
		c.report(Conservation, nil, "%d enqueued, but %d live + %d dead + %d done + %d discarded + %d cancelled + %d purged + %d dropped = %d",
			n.Enqueued, live, s.Dead, n.Done, n.Discarded, n.Cancelled, n.Purged, n.Dropped, sum)
	}
	c.deaths()
	var known, unknown, twins, maybeTwins, redriven, maybeRedriven, cancels int64
	for _, call := range c.calls {
		switch {
		case call.invoke.Op == Enqueue && call.sure() && call.answer.Duplicate,
			call.invoke.Op == Enqueue && call.answer != nil && call.answer.Class == "duplicate":
			twins++
		case call.invoke.Op == Enqueue && call.sure():
		case call.invoke.Op == Enqueue && call.may():
			maybeTwins++
			unknown++
		case call.invoke.Op == Redrive && call.sure() && call.invoke.Job == "":
			redriven += call.answer.Count
		case call.invoke.Op == Redrive && call.sure():
			redriven++
		case call.invoke.Op == Redrive && call.may() && call.invoke.Job == "":
			maybeRedriven += n.Redriven // who knows
		case call.invoke.Op == Redrive && call.may():
			maybeRedriven++
		case call.invoke.Op == Cancel && call.may():
			cancels++
		}
	}
	for _, j := range c.jobs {
		if j.enqueue != nil && (j.enqueue.sure() || len(j.runs) > 0 || j.dead != nil) {
			known++
		}
	}
	c.between("enqueued", n.Enqueued, known, known+unknown)
	c.between("duplicate", n.Duplicate, twins, twins+maybeTwins)
	c.between("redriven", n.Redriven, redriven, redriven+maybeRedriven)
	skips, more, waits := c.unrun()
	c.between("skipped", n.Skipped, skips, skips+more)
	c.outcomes("done", n.Done-skips, Done, "done", more)
	c.outcomes("discarded", n.Discarded, Discard, "discard", 0)
	c.outcomes("retried", n.Retried, Retry, "retry", 0)
	c.outcomes("snoozed", n.Snoozed, Snooze, "snooze", waits)
	c.outcomes("cancelled", n.Cancelled, Cancel, "", cancels)
}

// deaths: each is in the dead-letter queue, or was redriven, deleted or dropped.
func (c *checker) deaths() {
	s, n := c.state.Stats, c.state.Stats.Total
	purged, maybe := int64(0), false
	for _, call := range c.calls {
		if call.invoke.Op == Purge && call.invoke.Class == "dead" {
			if call.sure() {
				purged += call.answer.Count
			} else {
				maybe = maybe || call.may()
			}
		}
	}
	gone := n.Dead - s.Dead - n.Redriven - n.Dropped
	if gone < purged || gone > purged && !maybe {
		c.report(Conservation, nil, "%d deaths, but %d are dead, %d were redriven, %d dropped and %d deleted", n.Dead, s.Dead, n.Redriven, n.Dropped, purged)
	}
}

// outcomes compares a counter with the outcomes of a kind that are known to be
// stored, and those that may be. extra is how many more there may be.
func (c *checker) outcomes(name string, count int64, op Op, class string, extra int64) {
	sure, maybe := int64(0), extra
	for _, j := range c.jobs {
		for _, e := range j.loose {
			if e.Op == op {
				sure++
			}
		}
		for _, r := range j.runs {
			switch {
			case r.ended(op) != nil:
				sure++
			case len(r.ends) == 0 && r.effect != nil && r.effect.Class == class:
				maybe++
			}
		}
	}
	c.between(name, count, sure, sure+maybe)
}

func (c *checker) between(name string, count, least, most int64) {
	if count < least || count > most {
		c.report(Conservation, nil, "the counter %s is %d, and the histories tell of %d to %d", name, count, least, most)
	}
}
