package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlq/pawl"
)

// count stops everybody, prints what became of it all, and checks it.
func (s *story) count(ctx context.Context) error {
	if err := errors.Join(s.processes["relay"].stop(), s.worker.stop()); err != nil {
		return err
	}
	clear(s.processes)
	t, err := s.tally(ctx)
	if err != nil {
		return err
	}
	n := t.stats.Total
	fmt.Println("What became of it:")
	fmt.Printf("          %-8s  %d\n", "orders", t.orders)
	fmt.Printf("          %-8s  %d once, %d more than once, %d not at all, %d that were not committed\n", "shipped", t.once, t.more, t.never, t.unasked)
	fmt.Printf("          %-8s  enqueued %d, duplicate %d, done %d, failed %d\n", "counted", n.Enqueued, n.Duplicate, n.Done, n.Failed)
	fmt.Printf("          %-8s  %d rows, %d jobs, %d dead\n", "left", t.rows, t.jobs, t.stats.Dead)
	fmt.Printf("          %-8s  %d violations\n", "check", len(t.violations))
	return t.wrong()
}

type tally struct {
	sight
	once, more, never, unasked int64
	stats                      pawl.Stats
	violations                 []pawl.Violation
}

func (s *story) tally(ctx context.Context) (t tally, err error) {
	if t.sight, err = s.now(ctx); err != nil {
		return t, err
	}
	if t.stats, err = s.queue.Stats(ctx); err != nil {
		return t, err
	}
	// Check walks every key of the queue: it finds nothing unless somebody edited or
	// lost some.
	if t.violations, err = s.queue.Check(ctx); err != nil {
		return t, err
	}
	rows, err := s.db.QueryContext(ctx, "SELECT no FROM orders")
	if err != nil {
		return t, err
	}
	defer func() { _ = rows.Close() }()
	var orders []int
	for rows.Next() {
		var order int
		if err := rows.Scan(&order); err != nil {
			return t, err
		}
		orders = append(orders, order)
	}
	t.judge(orders, s.worker.shipments())
	return t, rows.Err()
}

// judge takes the orders that are committed, and how often each was shipped.
func (t *tally) judge(orders []int, shipped map[int]int) {
	for _, order := range orders {
		switch shipped[order] {
		case 0:
			t.never++
		case 1:
			t.once++
		default:
			t.more++
		}
		delete(shipped, order)
	}
	t.unasked = int64(len(shipped))
}

// wrong is nil if every order that was committed was shipped once, and nothing else.
func (t *tally) wrong() error {
	var wrong []error
	if t.once != t.orders || t.more != 0 || t.never != 0 || t.unasked != 0 {
		wrong = append(wrong, errors.New("each order was to be shipped once"))
	}
	if t.stats.Total.Enqueued != t.orders {
		wrong = append(wrong, fmt.Errorf("each of %d orders was to be one job, and %d were enqueued", t.orders, t.stats.Total.Enqueued))
	}
	if t.rows != 0 || t.jobs != 0 || t.stats.Dead != 0 {
		wrong = append(wrong, fmt.Errorf("something is left: %+v", t.stats))
	}
	for _, v := range t.violations {
		wrong = append(wrong, fmt.Errorf("check: %s", v))
	}
	return errors.Join(wrong...)
}
