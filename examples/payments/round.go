package main

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/pawlq/pawl"
)

// round is one run of everything, with the guards or without.
type round struct {
	queue *pawl.Queue
	books *sql.DB
	api   *gateway
	shop  *shop
	fleet *fleet
	start time.Time
}

// run returns when the shop is closed, the killing is over and all jobs have ended.
func (r *round) run(ctx context.Context, length time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var busy sync.WaitGroup
	ended := make(chan error, 2)
	busy.Go(func() { ended <- r.shop.open(ctx, length) })
	busy.Go(func() { ended <- r.fleet.harry(ctx, length) })
	err := r.watch(ctx, length, ended)
	if err != nil {
		cancel()
		busy.Wait()
		_ = r.fleet.stop() // its error says that they were killed
		return err
	}
	return r.fleet.stop()
}

// watch prints a line now and then, until both have ended and no job is left.
func (r *round) watch(ctx context.Context, length time.Duration, ended <-chan error) error {
	tick := time.NewTicker(max(length/4, 250*time.Millisecond))
	defer tick.Stop()
	for left := cap(ended); left > 0; {
		select {
		case err := <-ended:
			if left--; err != nil {
				return err
			}
		case <-tick.C:
			if err := r.line(ctx); err != nil {
				return err
			}
		}
	}
	return r.drain(ctx)
}

// drain waits until no job is left.
func (r *round) drain(ctx context.Context) error {
	for {
		stats, err := r.queue.Stats(ctx)
		if err != nil {
			return err
		}
		if stats.Depth() == 0 && stats.Running == 0 {
			return r.line(ctx)
		}
		pause(ctx, 20*time.Millisecond)
	}
}

func (r *round) line(ctx context.Context) error {
	stats, err := r.queue.Stats(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%6d ms  orders %5d  jobs done %5d, left %4d  workers killed %4d\n", time.Since(r.start).Milliseconds(),
		r.shop.orders(), stats.Total.Done, stats.Depth()+stats.Running, r.fleet.killed())
	return nil
}

// count is called when nothing runs any more.
func (r *round) count(ctx context.Context) (t tally, err error) {
	if t.stats, err = r.queue.Stats(ctx); err != nil {
		return t, err
	}
	// Check walks every key of the queue: it finds nothing unless somebody edited or
	// lost some.
	if t.violations, err = r.queue.Check(ctx); err != nil {
		return t, err
	}
	booked, balance, err := readLedger(ctx, r.books)
	if err != nil {
		return t, err
	}
	r.api.mu.Lock()
	defer r.api.mu.Unlock()
	t.orders, t.again, t.late, t.cents = len(r.shop.sent), r.shop.again, r.shop.late, r.shop.cents
	t.kills, t.afterCharge, t.afterEntry, t.entriesSkipped = r.fleet.kills, r.fleet.charged, r.fleet.booked, r.fleet.skipped
	t.refused, t.unsure, t.repeats, t.charged = r.api.refused, r.api.unsure, r.api.repeats, r.api.cents
	t.balance = balance
	t.charges, t.entries = judge(r.shop.sent, r.api.charges), judge(r.shop.sent, booked)
	return t, nil
}
