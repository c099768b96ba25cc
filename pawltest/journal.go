package pawltest

import (
	"context"
	"errors"
	"sync"

	"github.com/pawlq/pawl"
)

// The most that a drain runs: one job, and all of them together.
const (
	maxRunsOfAJob = 1000
	maxRuns       = 100_000
)

// journal is what happened to the jobs of one worker, copies of it included,
// since it was last reported.
type journal struct {
	mu      sync.Mutex
	runs    []*entry // as they began
	open    map[*pawl.RawJob]*entry
	dead    []*pawl.RawJob
	counts  map[pawl.ID]int
	total   int
	excess  *pawl.RawJob // the job that ran too often
	stopRun context.CancelFunc
	limit   int // of the runs of a job
}

// entry is one run.
type entry struct {
	ctx   context.Context
	event pawl.Event
	ended bool
}

func newJournal(limit int) *journal {
	return &journal{limit: limit, open: map[*pawl.RawJob]*entry{}, counts: map[pawl.ID]int{}}
}

func (j *journal) started(ctx context.Context, e pawl.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	run := &entry{ctx: ctx, event: e}
	j.runs = append(j.runs, run)
	j.open[e.Job] = run
	j.total++
	j.counts[e.Job.ID]++
	if j.excess == nil && (j.counts[e.Job.ID] > j.limit || j.total > maxRuns) {
		// The worker is stopped here, since a job that comes back at once keeps
		// a bubble from coming to rest.
		j.excess = e.Job
		j.stopRun()
	}
}

// ended takes the outcome of a run. A job that ended unrun has no entry.
func (j *journal) ended(e pawl.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if run := j.open[e.Job]; run != nil {
		run.event, run.ended = e, true
	}
}

func (j *journal) died(e pawl.Event) {
	j.ended(e)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.dead = append(j.dead, e.Job)
}

// begin starts the counting anew.
func (j *journal) begin() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.total = 0
	clear(j.counts)
}

// tooMany is the job at which a limit was passed, and how often it ran, or nil.
func (j *journal) tooMany() (job *pawl.RawJob, runs int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.excess == nil {
		return nil, 0
	}
	return j.excess, j.counts[j.excess.ID]
}

// begun is how many runs there were since begin.
func (j *journal) begun() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.total
}

// quiet reports whether every run has been told the end of.
func (j *journal) quiet() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, run := range j.open {
		if !run.ended && !run.cancelled() {
			return false
		}
	}
	return true
}

// cancelled tells the run of a cancelled job, of which no hook speaks.
func (r *entry) cancelled() bool { return errors.Is(context.Cause(r.ctx), pawl.ErrCancelled) }

// take is what is over by now: the runs in the order in which they began, and
// the jobs that died. It is for a worker at rest.
func (j *journal) take() (runs []pawl.Event, dead []*pawl.RawJob) {
	j.mu.Lock()
	defer j.mu.Unlock()
	left := j.runs[:0]
	for _, run := range j.runs {
		if !run.ended && run.cancelled() {
			run.event.Err, run.ended = pawl.ErrCancelled, true
		}
		if !run.ended {
			left = append(left, run)
			continue
		}
		runs = append(runs, run.event)
		delete(j.open, run.event.Job)
	}
	j.runs, dead, j.dead = left, j.dead, nil
	return runs, dead
}
