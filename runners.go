package pawl

import "time"

// runnerPatience is how long a goroutine without work waits for some.
const runnerPatience = time.Second

// runners are goroutines that do one thing after another: the handlers of a
// worker, or its round trips. A new goroutine for each would grow its stack each
// time, which took longer than all else that the worker does for a job.
type runners[T any] struct {
	work chan T
	do   func(T)
	stop chan struct{}
}

func newRunners[T any](do func(T)) *runners[T] {
	return &runners[T]{work: make(chan T), do: do, stop: make(chan struct{})}
}

// start has one do it at once.
func (p *runners[T]) start(it T) {
	select {
	case p.work <- it:
	default: // nobody waits
		go p.serve(it)
	}
}

// serve does it and what comes soon after. It ends with what ends its goroutine.
func (p *runners[T]) serve(it T) {
	p.do(it)
	patience := time.NewTimer(runnerPatience)
	defer patience.Stop()
	for {
		select {
		case it := <-p.work:
			p.do(it)
			patience.Reset(runnerPatience)
		case <-patience.C:
			return
		case <-p.stop:
			return
		}
	}
}
