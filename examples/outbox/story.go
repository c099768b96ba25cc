package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlsql"
)

// story is told in chapters. Each looks at three places: the orders, the rows that wait
// beside them, and the jobs in Redis.
type story struct {
	start     time.Time
	place     place
	wire      *cable
	db        *sql.DB
	rows      *pawlsql.Relay // to count the rows with: it does not run
	queue     *pawl.Queue
	processes map[string]*process
	worker    *worker
}

// The orders of the story. The first one never commits.
const (
	lost   = 1
	first  = 2 // to early: taken before a relay runs
	early  = 13
	during = 14 // to late: taken while Redis is away
	late   = 33 // what is above is of the storm
)

func (s *story) tell(ctx context.Context) error {
	for _, chapter := range []func(context.Context) error{s.beforeCommit, s.beforeRelay, s.midRelay, s.work, s.outage, s.storm, s.count} {
		fmt.Println()
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) beforeCommit(ctx context.Context) error {
	fmt.Println("A shop takes an order, and its process is killed before the commit.")
	p := s.place
	p.First, p.Last, p.DieAt = lost, lost, "before the commit"
	if err := s.killWhen(ctx, "shop", p, p.DieAt); err != nil {
		return err
	}
	return s.look(ctx, sight{orders: 0, rows: 0, jobs: 0}, "nobody was told of the order, and there is no job of it")
}

func (s *story) beforeRelay(ctx context.Context) error {
	fmt.Println("The next one takes twelve, and is killed after the last commit. No relay runs yet.")
	p := s.place
	p.First, p.Last, p.DieAt = first, early, "after the commit"
	if err := s.killWhen(ctx, "shop", p, p.DieAt); err != nil {
		return err
	}
	return s.look(ctx, sight{orders: 12, rows: 12, jobs: 0}, "the jobs wait where the orders are")
}

func (s *story) midRelay(ctx context.Context) error {
	fmt.Printf("A relay moves them, %d at a time, and is killed when Redis has the second %d and their rows are still there.\n", batch, batch)
	p := s.place
	p.DieAfter = batch + 3
	if err := s.killWhen(ctx, "relay", p, "between Redis and the rows"); err != nil {
		return err
	}
	if err := s.look(ctx, sight{orders: 12, rows: 7, jobs: 10}, "five are in both places"); err != nil {
		return err
	}
	if err := s.launch(ctx, "relay", s.place); err != nil {
		return err
	}
	s.line("relay", "the next one starts")
	if err := s.until(ctx, func(now sight) bool { return now.rows == 0 }); err != nil {
		return err
	}
	return s.look(ctx, sight{orders: 12, rows: 0, jobs: 12, again: 5}, "five came again, and Redis knew them")
}

func (s *story) work(ctx context.Context) (err error) {
	fmt.Println("A worker starts.")
	if s.worker, err = startWorker(ctx, s.place); err != nil {
		return err
	}
	return s.allShipped(ctx)
}

// outage is of Redis, for the relay and the worker alike. The shop does not notice.
func (s *story) outage(ctx context.Context) error {
	fmt.Println("Redis goes away. The shop takes twenty orders.")
	s.wire.cut()
	p := s.place
	p.First, p.Last = during, late
	if err := s.launch(ctx, "shop", p); err != nil {
		return err
	}
	if err := s.processes["shop"].await(ctx, "all taken"); err != nil {
		return err
	}
	s.line("shop", "has taken them")
	if err := pause(ctx, 1500*time.Millisecond); err != nil { // the relay tries, and tries again
		return err
	}
	if err := s.look(ctx, sight{orders: 32, rows: 20, jobs: 0, again: 5}, "the rows wait, however long it takes"); err != nil {
		return err
	}
	s.line("redis", "is back")
	if err := s.wire.mend(ctx); err != nil {
		return err
	}
	return errors.Join(s.allShipped(ctx), s.processes["shop"].stop())
}

// storm kills shop and relay at moments that nobody chose.
func (s *story) storm(ctx context.Context) error {
	const length = 2 * time.Second
	fmt.Printf("For %v more, shop and relay are killed at any moment, and started again.\n", length)
	kills := 0
	for end := time.Now().Add(length); time.Now().Before(end); {
		// What the one before had committed is there, and nothing else of it.
		p := s.place
		p.Last = math.MaxInt
		if err := s.db.QueryRowContext(ctx, "SELECT max(no) + 1 FROM orders").Scan(&p.First); err != nil {
			return err
		}
		if err := s.launch(ctx, "shop", p); err != nil {
			return err
		}
		if err := pause(ctx, rand.N(150*time.Millisecond)); err != nil {
			return err
		}
		s.processes["shop"].kill()
		s.processes["relay"].kill()
		kills += 2
		if err := s.launch(ctx, "relay", s.place); err != nil {
			return err
		}
	}
	s.line("storm", "%d processes were killed (SIGKILL)", kills)
	return s.allShipped(ctx)
}

// allShipped waits until no row and no job is left.
func (s *story) allShipped(ctx context.Context) error {
	if err := s.until(ctx, func(now sight) bool { return now.rows == 0 && now.jobs == 0 }); err != nil {
		return err
	}
	s.line("worker", "has shipped %d orders", len(s.worker.shipments()))
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
