package chaos

import "slices"

// answers: what an enqueue says is what it did.
func (c *checker) answers() {
	made := map[string][]string{}
	for _, id := range c.order {
		if j := c.jobs[id]; j.ref != "" {
			made[j.ref] = append(made[j.ref], id)
		}
	}
	for _, call := range c.calls {
		ids := made[call.invoke.Ref]
		switch {
		case call.invoke.Op != Enqueue:
		case len(ids) > 1:
			c.report(UnknownOnce, nil, "the enqueue %s made %d jobs: %v", call.invoke.Ref, len(ids), ids)
		case len(ids) == 1 && !call.may():
			c.report(UnknownOnce, c.jobs[ids[0]], "its enqueue %s was refused: %s", call.invoke.Ref, call.answer.Class)
		case len(ids) == 1 && call.sure() && call.answer.Duplicate:
			c.report(UniqueKey, c.jobs[ids[0]], "its enqueue %s was answered as a duplicate", call.invoke.Ref)
		case call.sure() && call.answer.Duplicate:
			c.holder(call)
		}
	}
}

// holder: a duplicate is told of a job that may still have held the key.
func (c *checker) holder(call *call) {
	j := c.jobs[call.answer.Job]
	if j == nil || j.enqueue == nil {
		return // its enqueue was not answered
	}
	if j.enqueue.invoke.key() != call.invoke.key() {
		c.report(UniqueKey, j, "is said to hold the key %q of %s", call.invoke.Key, call.invoke.Ref)
	}
	for _, e := range j.ends() {
		if e.Op.over() && e.At < call.invoke.At && j.enqueuedAt()/1000+j.enqueue.invoke.Window < call.invoke.At-fuzz {
			c.report(UniqueKey, j, "held the key %q %d ms after it was over", call.invoke.Key, call.invoke.At-e.At)
		}
	}
}

// span is a time in which a job held its unique key for certain, in us of the
// server's clock.
type span struct {
	from, to int64
	job      *job
}

// uniques: no two jobs held one key at once. What counts is only what is certain:
// from a job's enqueue to the last moment at which it certainly was not over.
func (c *checker) uniques() {
	byKey := map[string][]span{}
	for _, id := range c.order {
		j := c.jobs[id]
		if j.enqueue == nil || j.enqueue.invoke.Key == "" {
			continue
		}
		key := j.enqueue.invoke.key()
		byKey[key] = append(byKey[key], c.holds(j, j.enqueue.invoke)...)
	}
	for key, spans := range byKey {
		slices.SortFunc(spans, func(a, b span) int { return int(a.from - b.from) })
		for i, a := range spans {
			for _, b := range spans[i+1:] {
				if b.from >= a.to {
					break // and so are those after it
				}
				if a.job != b.job {
					c.report(UniqueKey, b.job, "took the key %q %d us before %s gave it up", key, a.to-b.from, a.job.id)
				}
			}
		}
	}
}

// cutBetween tells whether a process was cut within a time: it may have given a
// lease back before it could say that it had one.
func (x *index) cutBetween(from, to int64) bool {
	for process := range x.cut {
		if at := x.killed[process]; at >= from && at <= to {
			return true
		}
	}
	return false
}

// holds is a span for the time before each death, and a window's.
func (c *checker) holds(j *job, e Event) (spans []span) {
	born := j.enqueuedAt()
	if e.Window > 0 {
		spans = append(spans, span{born, born + e.Window*1000, j})
	}
	lives := map[int]*span{0: {born, born, j}}
	for _, r := range j.runs {
		n := r.start.Redrives
		if lives[n] == nil {
			lives[n] = &span{r.start.Run, r.start.Run, j}
		}
		if e.Started {
			// The first lease frees it, which may have been one that nobody saw.
			if r == j.runs[0] && n == 0 && r.start.Crashes == 0 && len(j.loose) == 0 && !c.cutBetween(born/1000, r.leasedAt()+patience) {
				lives[n].to = r.start.Run
			}
			continue
		}
		lives[n].to = max(lives[n].to, r.start.Run)
		if end := r.ended(); end != nil && r.effect != nil {
			lives[n].to = max(lives[n].to, (r.effect.At-fuzz)*1000)
		}
	}
	for _, s := range lives {
		spans = append(spans, *s)
	}
	return spans
}
