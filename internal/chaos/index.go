package chaos

import (
	"slices"
	"sort"
	"strings"

	"github.com/google/uuid"
)

// index is a history sorted by jobs and by calls.
type index struct {
	state     State
	jobs      map[string]*job
	order     []string // ids of jobs, by age
	calls     []*call  // in the order of their invokes
	byRef     map[string]*call
	leases    []lease // in the order of their times
	faults    []Event
	processes map[string]int64 // the last sign of life of each
	killed    map[string]int64 // when a process was ended, with what it still ran
	cut       map[string]bool  // those of them that had no time to drain
}

// call is one call of a producer or operator. answer is nil if its process was
// killed before it had one.
type call struct {
	invoke Event
	answer *Event
}

// may tells whether the call may have done something.
func (c *call) may() bool { return c.answer == nil || c.answer.Type != Fail }

// sure tells whether it has done so for certain.
func (c *call) sure() bool { return c.answer != nil && c.answer.Type == OK }

// job is what is known of one job.
type job struct {
	id      string
	ref     string
	enqueue *call // nil for a phantom
	runs    []*run
	loose   []Event // ends of leases whose handler was never called
	cancels []*call
	moved   []*call // redrives and run-nows that name it
	dead    *Tombstone
	live    bool
}

// lease is a run and the job that it is of.
type lease struct {
	job *job
	run *run
}

// leasedBetween is the runs whose lease came after one time and before another.
func (x *index) leasedBetween(from, to int64) []lease {
	first := sort.Search(len(x.leases), func(i int) bool { return x.leases[i].run.leasedAt() > from })
	last := sort.Search(len(x.leases), func(i int) bool { return x.leases[i].run.leasedAt() >= to })
	return x.leases[first:max(first, last)]
}

// run is one run of a handler.
type run struct {
	start   Event
	again   []Event // further starts under the same token: there must be none
	effect  *Event
	ends    []Event
	lost    *Event
	crashed bool // it took over a lease that had run out
}

func (r *run) leasedAt() int64 { return r.start.Run / 1000 } // ms, by the server's clock

func (r *run) ended(ops ...Op) *Event {
	for i := range r.ends {
		if len(ops) == 0 || slices.Contains(ops, r.ends[i].Op) {
			return &r.ends[i]
		}
	}
	return nil
}

// enqueuedAt is in the id, by the server's clock in us: 48 bits of ms, 4 of
// version, 12 of us.
func (j *job) enqueuedAt() int64 {
	id, err := uuid.Parse(j.id)
	if err != nil {
		return 0
	}
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	return ms*1000 + int64(id[6]&0x0f)<<8 + int64(id[7])
}

func newIndex(history []Event, state State) *index {
	x := &index{state: state, jobs: map[string]*job{}, byRef: map[string]*call{},
		processes: map[string]int64{}, killed: map[string]int64{}, cut: map[string]bool{}}
	runs := map[string]map[int64]*run{}
	var ofRuns []Event
	for _, e := range history {
		x.processes[e.Process] = max(x.processes[e.Process], e.At)
		switch {
		case e.Op == Fault:
			x.faults = append(x.faults, e)
			if slices.Contains([]string{"kill", "exit", "term"}, e.Class) {
				x.killed[e.Ref] = e.At
				x.cut[e.Ref] = x.cut[e.Ref] || e.Class != "term"
			}
		case e.Ref != "" && e.Run == 0:
			x.call(e)
		case e.Job != "":
			ofRuns = append(ofRuns, e)
		}
	}
	for _, e := range ofRuns { // starts first: a merge by local clocks proves no order
		if e.Op == Start {
			j := x.job(e.Job)
			j.ref = e.Ref
			if runs[e.Job] == nil {
				runs[e.Job] = map[int64]*run{}
			}
			if r := runs[e.Job][e.Run]; r != nil {
				r.again = append(r.again, e)
				continue
			}
			r := &run{start: e}
			runs[e.Job][e.Run] = r
			j.runs = append(j.runs, r)
		}
	}
	for _, e := range ofRuns {
		x.outcome(e, runs[e.Job][e.Run])
	}
	x.final()
	for id, j := range x.jobs {
		slices.SortFunc(j.runs, func(a, b *run) int { return int(a.start.Run - b.start.Run) })
		x.order = append(x.order, id)
		for _, r := range j.runs {
			x.leases = append(x.leases, lease{j, r})
		}
	}
	slices.SortFunc(x.leases, func(a, b lease) int { return int(a.run.start.Run - b.run.start.Run) })
	slices.SortFunc(x.order, strings.Compare)
	return x
}

func (x *index) job(id string) *job {
	if x.jobs[id] == nil {
		x.jobs[id] = &job{id: id}
	}
	return x.jobs[id]
}

// call joins the two halves of a call by its ref, which is used once.
func (x *index) call(e Event) {
	c := x.byRef[e.Ref]
	if e.Type == Invoke {
		c = &call{invoke: e}
		x.byRef[e.Ref] = c
		x.calls = append(x.calls, c)
		if e.Job != "" {
			switch j := x.job(e.Job); e.Op {
			case Cancel:
				j.cancels = append(j.cancels, c)
			case Redrive, RunNow:
				j.moved = append(j.moved, c)
			}
		}
		return
	}
	if c == nil {
		return
	}
	c.answer = &e
	if e.Op == Enqueue && e.Type == OK && !e.Duplicate {
		j := x.job(e.Job)
		j.ref, j.enqueue = c.invoke.Ref, c
	}
}

func (x *index) outcome(e Event, r *run) {
	switch {
	case e.Op == Start:
	case r == nil && e.Op.ends():
		j := x.job(e.Job)
		j.loose = append(j.loose, e)
	case r == nil:
	case e.Op == Effect:
		r.effect = &e
	case e.Op == Lost:
		r.lost = &e
	case e.Op == Crashed:
		r.crashed = true
	case e.Op.ends():
		r.ends = append(r.ends, e)
	}
}

// final adds what Redis says, and finds the call that made each job.
func (x *index) final() {
	for _, id := range x.state.Live {
		x.job(id).live = true
	}
	for i := range x.state.Dead {
		t := &x.state.Dead[i]
		j := x.job(t.Job)
		j.dead = t
		if j.ref == "" {
			j.ref = t.Ref
		}
	}
	for _, j := range x.jobs {
		if c := x.byRef[j.ref]; j.enqueue == nil && c != nil && c.invoke.Op == Enqueue {
			j.enqueue = c
		}
	}
}

// disturbed tells whether a fault was under way in a time, or had been within
// the grace that its echoes take, that may cost a lease. A lost request or answer
// may not, nor may scripts that are not cached: the call is made again at once.
// What a worker that was told to end cannot finish it gives back.
func (x *index) disturbed(from, to, grace int64) bool {
	for _, f := range x.faults {
		echo := grace
		if f.Class == Starved {
			echo = 100 // it is over when it is over
		}
		if f.Class != Healed && !brief(f.Class) && f.At <= to && f.At+f.Delay+echo >= from {
			return true
		}
	}
	return false
}

func brief(class string) bool {
	return class == "flush" || class == "term" || slices.ContainsFunc([]string{" drop", " no reply", " reset", " half a reply"}, func(how string) bool {
		return strings.HasSuffix(class, how)
	})
}
