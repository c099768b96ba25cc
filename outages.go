package pawl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// outages knows which feeds cannot reach Redis, so that an outage of a worker
// is one line in the log, however many queues it serves.
type outages struct {
	mu    sync.Mutex
	errs  map[outage]error
	since time.Time
}

// outage is what cannot reach Redis: the loop of a feed, its renewals, which are
// all that a worker sends while its slots are full, or its claims.
type outage struct {
	feed     *feed
	renewals bool
	claims   bool
}

// has reports whether the feed's loop is in an outage.
func (o *outages) has(f *feed) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.errs[outage{feed: f}] != nil
}

// renewing reports whether renewals of any feed have no answer.
func (o *outages) renewing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for part := range o.errs {
		if part.renewals {
			return true
		}
	}
	return false
}

func (o *outages) begin(part outage, err error) {
	f := part.feed
	err = fmt.Errorf("pawl: serve %s: %w", f.q.name, err)
	o.mu.Lock()
	first := len(o.errs) == 0
	if o.errs == nil {
		o.errs = map[outage]error{}
	}
	o.errs[part] = err
	c := f.worker.client
	if first {
		o.since = time.Now()
		f.worker.teller.tell(func() { c.hooks.outage(context.Background(), err) }) // in order
	}
	o.mu.Unlock()
	if first {
		c.log.Error("pawl: worker cannot reach its queue, and goes on trying", "worker", f.worker.cfg.Name, "error", err)
	}
}

func (o *outages) end(part outage) {
	f := part.feed
	o.mu.Lock()
	last := len(o.errs) == 1 && o.errs[part] != nil
	delete(o.errs, part)
	took := time.Since(o.since)
	c := f.worker.client
	if last {
		f.worker.teller.tell(func() { c.hooks.outage(context.Background(), nil) })
	}
	o.mu.Unlock()
	if last {
		c.log.Info("pawl: worker reaches its queues again", "worker", f.worker.cfg.Name, "took", took)
	}
}

func (o *outages) err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	for _, err := range o.errs {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// slowCall is how long a round trip may take before the worker is unwell.
const slowCall = 10 * time.Second

// Healthy is nil while the worker completes round trips: for readiness. It does
// no I/O. It is an error before Run, after it, while Redis cannot be reached or
// refuses, and when a call has had no answer for 10 s.
func (w *Worker) Healthy() error {
	switch {
	case !w.started.Load():
		return errors.New("pawl: worker was not started")
	case w.ended.Load():
		return errors.New("pawl: worker has stopped")
	}
	errs := []error{w.outages.err()}
	for _, f := range w.feeds {
		f.mu.Lock()
		for _, t := range f.tracks {
			if t.calls != nil && time.Since(t.since) > slowCall {
				errs = append(errs, fmt.Errorf("pawl: serve %s: no answer for %v", f.q.name, time.Since(t.since).Round(time.Second)))
			}
		}
		f.mu.Unlock()
	}
	return errors.Join(errs...)
}
