package pawl

import (
	"sync"
	"time"
)

// runnerPatience is how long a goroutine without work waits for some.
const runnerPatience = time.Second

// runners are goroutines that do one thing after another: the handlers of a
// worker, or its round trips. A new goroutine for each would grow its stack each
// time, which took longer than all else that the worker does for a job.
//
// While things wait, one goroutine is on its way to them; it calls the next before it
// does what it took. So none waits for another that takes long, and many that are
// short are done by few goroutines, without a change of goroutine for each.
type runners[T any] struct {
	do   func(T)
	wake chan struct{} // a token for the goroutine that is called, if one waits
	stop chan struct{}

	mu      sync.Mutex
	waiting []T // from taken on
	taken   int
	idle    int  // goroutines that wait, and were not called
	coming  bool // one was called, and has not looked yet
}

func newRunners[T any](do func(T)) *runners[T] {
	return &runners[T]{do: do, wake: make(chan struct{}, 1), stop: make(chan struct{})}
}

// start has one do it at once.
func (p *runners[T]) start(it T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken > len(p.waiting)/2 { // also if it is never empty, it does not grow
		rest := copy(p.waiting, p.waiting[p.taken:])
		clear(p.waiting[rest:])
		p.waiting, p.taken = p.waiting[:rest], 0
	}
	p.waiting = append(p.waiting, it)
	p.call()
}

// call has a goroutine come if something waits and none is on its way.
func (p *runners[T]) call() {
	switch {
	case p.coming || len(p.waiting) == p.taken:
	case p.idle > 0:
		p.idle--
		p.coming = true
		p.wake <- struct{}{}
	default:
		p.coming = true
		go p.serve()
	}
}

// take is what waits longest. Without any the goroutine is idle.
func (p *runners[T]) take(called bool) (it T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if called {
		p.coming = false
	}
	if len(p.waiting) == p.taken {
		p.idle++
		return it, false
	}
	it, p.waiting[p.taken] = p.waiting[p.taken], it // which is zero
	if p.taken++; p.taken == len(p.waiting) {
		p.waiting, p.taken = p.waiting[:0], 0
	}
	p.call() // so nothing is left waiting if do ends this goroutine
	return it, true
}

// serve does what comes. It ends with what ends its goroutine.
func (p *runners[T]) serve() {
	patience := time.NewTimer(runnerPatience)
	defer patience.Stop()
	for called := true; ; {
		if it, ok := p.take(called); ok {
			called = false
			p.do(it)
			continue
		}
		patience.Reset(runnerPatience)
		select {
		case <-p.wake:
			called = true
			continue
		case <-patience.C:
		case <-p.stop:
		}
		if p.leave() {
			return
		}
		<-p.wake
		called = true
	}
}

// leave takes an idle goroutine off, unless the last one was called just now.
func (p *runners[T]) leave() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle == 0 {
		return false
	}
	p.idle--
	return true
}
