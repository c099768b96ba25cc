package pawl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// DrainError is what Run returns when handlers were still running after
// DrainTimeout: Released went back, no attempt spent. Stuck are jobs whose
// handlers did not return even then, or whose outcome could not be stored;
// their leases run out by themselves and they run again.
type DrainError struct{ Released, Stuck []ID }

func (e *DrainError) Error() string {
	return fmt.Sprintf("pawl: drain: released %d, stuck %d", len(e.Released), len(e.Stuck))
}

// Run serves until ctx is cancelled, then drains: no new leases, running jobs
// finish within DrainTimeout, the rest have their contexts cancelled with
// ErrShutdown and go back with no attempt spent. It returns nil if all finished,
// *DrainError if some were released, or, at once, what is wrong with the
// registrations (all of it, wrapping ErrInvalid). Redis being away does not end
// it. A Worker runs once. It installs no signal handlers:
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	err := w.Run(ctx)
func (w *Worker) Run(ctx context.Context) error {
	if w.started.Swap(true) {
		return invalidf("Run was called before; make a new worker")
	}
	defer w.ended.Store(true)
	if len(w.handlers)+len(w.errs) == 0 {
		w.errs = append(w.errs, invalidf("the worker has no handler; register one with pawl.Handle"))
	}
	if err := errors.Join(w.errs...); err != nil {
		return fmt.Errorf("pawl: run: %w", err)
	}
	w.prepare(ctx)
	defer close(w.runners.stop)
	defer close(w.flights.stop)
	w.client.log.Info("pawl: worker serves", "worker", w.cfg.Name, "queues", names(w.cfg.Queues), "concurrency", w.cfg.Concurrency)
	defer w.askDoctor(ctx)()
	w.beginMending(ctx)

	var loops, pulses, reads sync.WaitGroup
	stopPulse, stopRead := make(chan struct{}), make(chan struct{})
	loopsEnded, readsEnded := make(chan struct{}), make(chan struct{})
	seen := map[*waker]bool{}
	for i, f := range w.feeds {
		loops.Go(func() { f.keep(f.loop) })
		pulses.Go(func() { f.keep(func() { f.pulse(stopPulse) }) })
		if k := w.wakers[i]; !seen[k] {
			seen[k] = true
			reads.Go(func() { k.loop(stopRead) })
		}
	}
	go func() { loops.Wait(); close(loopsEnded) }()
	go func() { reads.Wait(); close(readsEnded) }()

	if !w.timeless {
		for _, f := range w.feeds {
			f.ticks.start()
		}
	}
	keeping, stopKeeping := context.WithCancel(w.base)
	upkeepEnded := make(chan struct{})
	go func() { defer close(upkeepEnded); w.upkeep(keeping) }()

	var err error
	select {
	case <-ctx.Done():
		err = w.drain(loopsEnded)
	case <-w.alive.Done():
		<-loopsEnded
		err = errAbandoned
	}
	stopKeeping()
	close(stopRead)
	var closing sync.WaitGroup // beside one another: Redis may not answer
	closing.Go(func() { w.farewell(upkeepEnded) })
	for k := range seen {
		closing.Go(func() { k.close(readsEnded) })
	}
	for _, f := range w.feeds {
		closing.Go(f.claims.close)
		closing.Go(f.courier.close)
		closing.Go(f.ticks.close)
	}
	closing.Wait()
	close(stopPulse)
	pulsesEnded := make(chan struct{})
	go func() { pulses.Wait(); close(pulsesEnded) }()
	within(pulsesEnded, drainGrace)
	within(w.teller.silence(), drainGrace) // a hook that blocks must not keep Run
	if w.alive.Err() != nil {
		for _, f := range w.feeds {
			_ = f.renew() // of nothing: it waits for a renewal that is under way
		}
	}
	return err
}

func names(queues []WorkerQueue) (names []string) {
	for _, q := range queues {
		names = append(names, q.Name)
	}
	return names
}

// keep runs loop or pulse, again if a hook ends its goroutine (runtime.Goexit, as
// testing's FailNow does).
func (f *feed) keep(loop func()) {
	for returned := false; !returned; {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			loop()
			returned = true
		}()
		<-ended
		if !returned {
			f.worker.client.log.Error("pawl: a hook ended the goroutine that served a queue; it goes on in another", "queue", f.q.name)
		}
	}
}

// prepare is what can only be known once the handlers are.
func (w *Worker) prepare(ctx context.Context) {
	w.base = context.WithoutCancel(ctx)
	w.handlers[canaryName] = &handler{run: runCanary}
	w.runners = newRunners((*run).execute)
	w.flights = newRunners((*track).carry)
	w.leastCrashes = w.cfg.MaxCrashes
	for kind, h := range w.handlers {
		p := h.policy
		if h.own != nil {
			p = p.over(h.own(kind, []byte("{}")))
		}
		if p.maxCrashes > 0 {
			w.leastCrashes = min(w.leastCrashes, p.maxCrashes)
		}
	}
	newWakers(w)
}

// drain waits for the handlers in three steps: to finish, to heed the end of
// their contexts, and for Redis to take what they left.
func (w *Worker) drain(ended <-chan struct{}) error {
	close(w.draining)
	for _, f := range w.feeds {
		f.drain(false)
	}
	if within(ended, w.cfg.DrainTimeout) {
		return w.drained(nil)
	}
	for _, f := range w.feeds {
		f.cancelAll(ErrShutdown)
	}
	if within(ended, drainGrace) {
		return w.drained(nil)
	}
	var stuck []ID
	for _, f := range w.feeds {
		stuck = append(stuck, f.abandon()...)
	}
	if !within(ended, drainGrace) {
		for _, f := range w.feeds {
			stuck = append(stuck, f.left()...)
			f.drain(true)
		}
	}
	return w.drained(stuck)
}

func within(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

func (w *Worker) drained(stuck []ID) error {
	e := &DrainError{Stuck: stuck}
	for _, f := range w.feeds {
		f.mu.Lock()
		e.Released = append(e.Released, f.released...)
		f.mu.Unlock()
	}
	if len(e.Released)+len(e.Stuck) == 0 {
		return nil
	}
	w.client.log.Warn("pawl: worker drained late", "worker", w.cfg.Name, "released", e.Released, "stuck", e.Stuck)
	return e
}

func (f *feed) cancelAll(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.running {
		if !r.finished {
			r.cancel(cause)
		}
	}
}

// abandon reports the handlers that have not returned and waits for them no
// more: their leases are not renewed from here on.
func (f *feed) abandon() (stuck []ID) {
	f.mu.Lock()
	var runs []*run
	for id, r := range f.running {
		if !r.finished {
			runs = append(runs, r)
			stuck = append(stuck, r.job.ID)
			delete(f.running, id)
		}
	}
	f.mu.Unlock()
	for _, r := range runs {
		f.worker.teller.tell(r.reportStuck)
	}
	f.poke()
	return stuck
}

// left is the jobs whose outcome Redis did not take.
func (f *feed) left() (ids []ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.running {
		ids = append(ids, r.job.ID)
	}
	return ids
}
