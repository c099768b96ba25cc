package pawl

import "time"

// runnerPatience is how long a goroutine without a job waits for one.
const runnerPatience = time.Second

// runners are the goroutines that run a worker's handlers, one job after another.
// A new goroutine for each job would grow its stack each time, which took longer
// than all else that the worker does for a job.
type runners struct {
	jobs chan *run
	stop chan struct{}
}

func newRunners() *runners {
	return &runners{jobs: make(chan *run), stop: make(chan struct{})}
}

// start has r executed at once.
func (p *runners) start(r *run) {
	select {
	case p.jobs <- r:
	default: // nobody waits
		go p.serve(r)
	}
}

// serve runs r and what comes soon after. It ends with a handler that ends its
// goroutine.
func (p *runners) serve(r *run) {
	r.execute()
	patience := time.NewTimer(runnerPatience)
	defer patience.Stop()
	for {
		select {
		case r := <-p.jobs:
			r.execute()
			patience.Reset(runnerPatience)
		case <-patience.C:
			return
		case <-p.stop:
			return
		}
	}
}
