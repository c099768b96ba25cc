package main

import (
	"context"
	"fmt"
	"time"
)

// sight is what is where: committed orders, rows that wait in the outbox, jobs that
// wait or run in Redis, and how many jobs came there again.
type sight struct{ orders, rows, jobs, again int64 }

func (s *story) now(ctx context.Context) (now sight, err error) {
	if err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM orders").Scan(&now.orders); err != nil {
		return now, err
	}
	rows, err := s.rows.Stats(ctx) // in production, to watch: Oldest small, Failed 0
	if err != nil {
		return now, err
	}
	if rows.Failed > 0 {
		return now, fmt.Errorf("%d rows were refused", rows.Failed)
	}
	stats, err := s.queue.Stats(ctx)
	now.rows, now.jobs, now.again = rows.Pending, stats.Depth()+stats.Running, stats.Total.Duplicate
	return now, err
}

// look prints what is where, and is an error unless that is as it should be.
func (s *story) look(ctx context.Context, want sight, meaning string) error {
	got, err := s.now(ctx)
	if err != nil {
		return err
	}
	s.line("look", "%2d orders, %2d rows, %2d jobs: %s", got.orders, got.rows, got.jobs, meaning)
	if got != want {
		return fmt.Errorf("it was to be %+v, and is %+v", want, got)
	}
	return nil
}

func (s *story) until(ctx context.Context, enough func(now sight) bool) error {
	for {
		now, err := s.now(ctx)
		if err != nil || enough(now) {
			return err
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("at %+v: %w", now, err)
		}
	}
}

// killWhen starts a process, and kills it (SIGKILL) when it says that it is there.
func (s *story) killWhen(ctx context.Context, role string, p place, where string) error {
	if err := s.launch(ctx, role, p); err != nil {
		return err
	}
	if err := s.processes[role].await(ctx, where); err != nil {
		return err
	}
	s.processes[role].kill()
	s.line(role, "is killed (SIGKILL) %s", where)
	delete(s.processes, role)
	return nil
}

func (s *story) launch(ctx context.Context, role string, p place) (err error) {
	s.processes[role], err = launch(ctx, role, p)
	if err != nil {
		delete(s.processes, role)
	}
	return err
}

// end leaves nothing running.
func (s *story) end() {
	for _, p := range s.processes {
		p.kill()
	}
	if s.worker != nil {
		_ = s.worker.stop() // count has told its error, unless there was another before
	}
}

// line prints what happens and when.
func (s *story) line(who, format string, args ...any) {
	fmt.Printf("%5d ms  %-6s  %s\n", time.Since(s.start).Milliseconds(), who, fmt.Sprintf(format, args...))
}
