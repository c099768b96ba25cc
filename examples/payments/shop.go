package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pawlq/pawl"
)

// Charge is an order to be paid.
type Charge struct {
	Order int   `json:"order"`
	Cents int64 `json:"cents"`
}

func (Charge) Kind() string { return "payment.charge" }

// region payments-door

// window is how long the door knows an order: 1 s, to be outlived soon. In production it
// is longer than whoever sends orders goes on trying, such as a day.
const window = time.Second

// place takes an order. After any error it may be called again.
func place(ctx context.Context, q *pawl.Queue, c Charge) (pawl.Enqueued, error) {
	// Of what is paid for, and of nothing that differs from try to try.
	order := pawl.Key("charge", c.Order)
	return q.Enqueue(ctx, c,
		// An order that is sent again adds no second job, for as long as the window or the
		// first job lasts. Later it gets in, and of what a job does twice this knows nothing.
		pawl.Unique{Key: order, For: window},
		// A second job of the order has the key of the first, for the API and the inbox to
		// know it by; without this, job.IdempotencyKey() is the job's id. And once one of
		// them was done the worker skips the others, for a day. Of a worker that died
		// before its job was done this knows nothing.
		pawl.Idempotency{Key: order})
}

// endregion

const (
	everyOrder = 10 * time.Millisecond
	againAtMax = 100 * time.Millisecond // after which an impatient customer has clicked again
	lateAfter  = window + 300*time.Millisecond
)

// shop sends orders, some of them again: at once, as a customer who clicks twice or a
// client that had no answer, and late, as somebody who runs yesterday's import again.
type shop struct {
	guarded bool
	queue   *pawl.Queue

	mu     sync.Mutex
	sent   map[int]int // how often, by order
	cents  int64       // of all orders
	again  int
	late   int
	failed []error
}

// open sends orders for so long, and returns once the last one is sent.
func (s *shop) open(ctx context.Context, length time.Duration) error {
	closing, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	tick := time.NewTicker(everyOrder)
	defer tick.Stop()
	var customers sync.WaitGroup
	for n := 1; closing.Err() == nil; n++ {
		c := Charge{Order: n, Cents: 100 + rand.Int64N(9900)}
		customers.Go(func() { s.buy(ctx, c) })
		select {
		case <-tick.C:
		case <-closing.Done():
		}
	}
	customers.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.failed...)
}

// buy is one customer.
func (s *shop) buy(ctx context.Context, c Charge) {
	s.send(ctx, c, nil)
	switch rand.IntN(8) {
	case 0, 1:
		pause(ctx, rand.N(againAtMax))
		s.send(ctx, c, &s.again)
	case 2:
		pause(ctx, lateAfter)
		s.send(ctx, c, &s.late)
	}
}

func (s *shop) send(ctx context.Context, c Charge, which *int) {
	var err error
	if s.guarded {
		_, err = place(ctx, s.queue, c)
	} else {
		_, err = s.queue.Enqueue(ctx, c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent[c.Order]++; s.sent[c.Order] == 1 {
		s.cents += c.Cents
	}
	if which != nil {
		*which++
	}
	if err != nil {
		s.failed = append(s.failed, err)
	}
}

// orders is how many there are.
func (s *shop) orders() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
