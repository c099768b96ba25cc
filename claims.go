package pawl

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A claimer asks Redis for the idempotency keys of a feed's jobs, each before its
// handler is called. The run's own goroutine waits for the answer, and nothing
// else of the worker does. What is asked while a call is under way shares the
// next; one that is slow is passed by another, and more than two would take
// connections that renewals need.
//
// A call needs no lane, and is not sent unchanged: whoever asks again finds its
// own mark, and once its lease has gone it changes nothing.
type claimer struct {
	feed    *feed
	mu      sync.Mutex
	waiting []*claim
	flights int
	unwell  int // flights whose last call had no answer

	flying sync.WaitGroup
	stop   chan struct{} // the worker ends
}

const maxClaimFlights = 2

// claim is one question, for one lease of a job.
type claim struct {
	run    *run
	token  string
	ctx    context.Context
	answer chan claimed // has room for it
}

// claimed is the answer: what claim.lua says, and of "d" and "b" whose mark it is
// and for how long that one has been leased.
type claimed struct {
	mark   byte // 0: none came before the context of the run had ended
	holder string
	ms     int64
}

// ask returns when there is an answer, or when the context of the run has ended.
func (c *claimer) ask(r *run) claimed {
	for {
		if r.ctx.Err() != nil {
			return claimed{}
		}
		r.feed.mu.Lock()
		q := &claim{run: r, token: r.token, ctx: r.ctx, answer: make(chan claimed, 1)}
		r.feed.mu.Unlock()
		c.mu.Lock()
		c.waiting = append(c.waiting, q)
		if c.flights < maxClaimFlights {
			c.flights++
			c.flying.Go(c.fly)
		}
		c.mu.Unlock()
		select {
		case a := <-q.answer:
			r.feed.mu.Lock()
			adopted := r.token != q.token
			r.feed.mu.Unlock()
			if a.mark != 'l' || !adopted { // leased to this worker again meanwhile
				return a
			}
		case <-q.ctx.Done():
			return claimed{}
		}
	}
}

// take is the next call's share of what waits; nil ends the flight.
func (c *claimer) take() (batch []*claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := c.waiting[:0]
	for _, q := range c.waiting {
		switch {
		case q.ctx.Err() != nil: // nobody waits for it
		case len(batch) < maxCallRuns:
			batch = append(batch, q)
		default:
			rest = append(rest, q)
		}
	}
	clear(c.waiting[len(rest):])
	c.waiting = rest
	if batch == nil {
		c.flights--
	}
	return batch
}

// fly asks until nothing is left to ask, through outages too.
func (c *claimer) fly() {
	for failed := 0; ; {
		batch := c.take()
		if batch == nil {
			c.well(failed)
			return
		}
		err := c.call(batch)
		if err == nil {
			c.well(failed)
			failed = 0
			continue
		}
		c.sick(failed, err)
		select {
		case <-time.After(retryPause(failed)):
		case <-c.stop: // with it the contexts of all that wait have ended
		}
		failed++
		c.mu.Lock()
		c.waiting = append(batch, c.waiting...)
		c.mu.Unlock()
	}
}

// close waits for the calls that are under way.
func (c *claimer) close() {
	close(c.stop)
	ended := make(chan struct{})
	go func() { c.flying.Wait(); close(ended) }()
	within(ended, drainGrace)
}

// sick and well begin and end an outage, of which failed is how long it has gone
// on for a flight.
func (c *claimer) sick(failed int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if failed == 0 {
		c.unwell++
	}
	c.feed.worker.outages.begin(outage{feed: c.feed, claims: true}, err)
}

func (c *claimer) well(failed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if failed == 0 {
		return
	}
	if c.unwell--; c.unwell == 0 {
		c.feed.worker.outages.end(outage{feed: c.feed, claims: true})
	}
}

// call asks once, for all of a batch.
func (c *claimer) call(batch []*claim) error {
	k := &c.feed.q.keys
	ask := &call{script: scriptClaim, keys: []string{k.leases, k.runs}}
	for _, q := range batch {
		ask.keys = append(ask.keys, k.idem(q.run.rec.Idempotency.Key))
		ask.args = append(ask.args, q.run.id, q.token)
	}
	attempt(context.Background(), c.feed.q.client.rdb, ask)
	if ask.err != nil {
		return ask.err
	}
	text, err := ask.text()
	if err != nil {
		return err
	}
	answers, err := readClaims(text, len(batch))
	if err != nil {
		return err
	}
	for i, q := range batch {
		q.answer <- answers[i]
	}
	return nil
}

// readClaims reads the answer of claim.lua for n jobs.
func readClaims(text string, n int) ([]claimed, error) {
	words := strings.Split(text, " ")
	nonsense := fmt.Errorf("script claim answered %q for %d jobs", text, n)
	if len(words[0]) != n {
		return nil, nonsense
	}
	answers, rest := make([]claimed, n), words[1:]
	for i := range answers {
		a := &answers[i]
		if a.mark = words[0][i]; a.mark != 'd' && a.mark != 'b' {
			continue
		}
		if len(rest) < 2 {
			return nil, nonsense
		}
		a.holder = rest[0]
		a.ms, _ = strconv.ParseInt(rest[1], 10, 64)
		rest = rest[2:]
	}
	return answers, nil
}
