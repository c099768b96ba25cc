package pawl

import (
	"context"
	"fmt"
	"sync"
)

// A courier carries what the runs of a feed say of their progress, beside its round
// trips: those must not wait for it. One call is under way at a time, however many
// runs there are, and what comes meanwhile shares the next. Its lane carries one call
// at a time, and one without an answer is made anew, as a renewal is: a later value
// stands for an earlier one, which the lane refuses if it comes late.
type courier struct {
	feed *feed
	lane *lane // of the flight alone

	mu      sync.Mutex
	waiting []*progress
	aloft   bool
	closed  bool
	flight  sync.WaitGroup
}

// news is the progress of one run in a call, as it stood when that was made.
type news struct {
	of    *progress
	token string
	said  remark
}

// carry has the newest value of a run sent. It reports whether anybody will.
func (c *courier) carry(p *progress) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.waiting = append(c.waiting, p)
	if !c.aloft {
		c.aloft = true
		c.flight.Go(c.fly)
	}
	return true
}

func (c *courier) fly() {
	for {
		batch := c.take()
		if batch == nil {
			return
		}
		c.call(batch)
	}
}

// take is the next call's share of what waits; nil ends the flight.
func (c *courier) take() (batch []news) {
	c.mu.Lock()
	n := min(len(c.waiting), maxCallItems)
	c.closed = c.closed || c.feed.worker.alive.Err() != nil // abandoned: see testhook
	if c.closed || n == 0 {
		left := c.waiting
		c.aloft, c.waiting = false, nil
		c.mu.Unlock()
		for _, p := range left {
			p.strand()
		}
		return nil
	}
	waiting := c.waiting[:n]
	if c.waiting = c.waiting[n:]; len(c.waiting) == 0 {
		c.waiting = nil
	}
	c.mu.Unlock()
	for _, p := range waiting {
		c.feed.mu.Lock()
		token := p.run.token
		c.feed.mu.Unlock()
		batch = append(batch, news{p, token, p.leave()})
	}
	return batch
}

// close lets nothing more go out, and waits for what is under way.
func (c *courier) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	ended := make(chan struct{})
	go func() { c.flight.Wait(); close(ended) }()
	within(ended, drainGrace)
}

// call sends a batch once.
func (c *courier) call(batch []news) {
	k := &c.feed.q.keys
	tell := &call{script: scriptProgress, keys: []string{k.leases, k.runs, c.lane.key}, args: []any{c.lane.next()}}
	for _, n := range batch {
		tell.args = append(tell.args, n.of.run.id, n.token, n.said.text())
	}
	attempt(context.Background(), c.feed.q.client.rdb, tell)
	var marks string
	err := tell.err
	if err == nil {
		if marks, err = tell.text(); err == nil && len(marks) != len(batch) {
			err = fmt.Errorf("script progress answered %q for %d jobs", marks, len(batch))
		}
		if err != nil {
			c.lane = newLane(k)
		}
	}
	for i, n := range batch {
		switch {
		case err != nil:
			n.of.landed(n.said, false, forGood(err))
		case marks[i] == 'l':
			n.of.landed(n.said, false, c.lost(n))
		default:
			if marks[i] == 'c' {
				n.of.run.cancel(ErrCancelled)
			}
			n.of.landed(n.said, true, nil)
		}
	}
}

// lost ends a run whose lease is gone. If it was leased to this worker anew
// meanwhile, it goes on, and its progress goes out under the new token.
func (c *courier) lost(n news) error {
	r := n.of.run
	c.feed.lose(extension{run: r, token: n.token})
	c.feed.mu.Lock()
	defer c.feed.mu.Unlock()
	if r.token != n.token {
		return nil
	}
	return ErrLeaseLost
}

// forGood is err if trying again will not help.
func forGood(err error) error {
	switch classify(err) {
	case classFull, classDenied, classBroken:
		return err
	default:
		return nil
	}
}
