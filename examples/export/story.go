package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pawlq/pawl"
)

// story is told by a client in chapters. It sees the queue only to count, at the end.
type story struct {
	client  *browser
	queue   *pawl.Queue
	fetched []string // paths of results that were fetched
}

func (s *story) tell(ctx context.Context) error {
	for _, chapter := range []func(context.Context) error{s.watched, s.failed, s.impatient, s.unwanted, s.late, s.count} {
		fmt.Println()
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// watched is an export that a client watches to its end.
func (s *story) watched(ctx context.Context) error {
	fmt.Println("A client asks for an export, watches it, and fetches the result.")
	path, err := s.client.order(ctx, "orders", 14)
	if err != nil {
		return err
	}
	if err := s.client.watch(ctx, "orders", path, pawl.StateDone); err != nil {
		return err
	}
	return s.fetch(ctx, "orders", path, http.StatusOK, `"rows":7000`)
}

// fetch is the client's, and what it is to be answered.
func (s *story) fetch(ctx context.Context, table, path string, code int, part string) error {
	got, text, err := s.client.fetch(ctx, table, path)
	if err == nil && (got != code || !strings.Contains(text, part)) {
		err = fmt.Errorf("the result of %s: %d %s, and not %d with %s", table, got, text, code, part)
	}
	if err == nil && code == http.StatusOK {
		s.fetched = append(s.fetched, path)
	}
	return err
}

// failed is an export that no retry would cure.
func (s *story) failed(ctx context.Context) error {
	fmt.Println("An export fails for good. Who asks for its result is told why.")
	path, err := s.client.order(ctx, secret, 5)
	if err != nil {
		return err
	}
	return s.fetch(ctx, secret, path, http.StatusInternalServerError, "the export failed: table salaries: permission denied")
}

// impatient is a client that hangs up, and comes back.
func (s *story) impatient(ctx context.Context) error {
	fmt.Println("A client waits for 0.2 s and hangs up. The export goes on, and the client comes back.")
	path, err := s.client.order(ctx, "invoices", 12)
	if err != nil {
		return err
	}
	soon, hangUp := context.WithTimeout(ctx, 200*time.Millisecond)
	defer hangUp()
	if _, _, err := s.client.fetch(soon, "invoices", path); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return fmt.Errorf("the client was to hang up first: %w", err)
	}
	s.client.line("invoices", "GET …/result", "hangs up")
	return s.fetch(ctx, "invoices", path, http.StatusOK, `"rows":6000`)
}

// unwanted is an export that is cancelled while it runs.
func (s *story) unwanted(ctx context.Context) error {
	fmt.Println("A client does not want its export any more.")
	path, err := s.client.order(ctx, "archive", 200)
	if err != nil {
		return err
	}
	if err := s.client.watch(ctx, "archive", path, pawl.StateRunning); err != nil {
		return err
	}
	code, text, err := s.client.ask(ctx, http.MethodDelete, path, nil)
	if err != nil {
		return err
	}
	s.client.tell("archive", "DELETE …", code, text)
	return s.fetch(ctx, "archive", path, http.StatusGone, "the export was cancelled")
}

// late is a client that comes for results that are kept no more.
func (s *story) late(ctx context.Context) error {
	fmt.Printf("Results are kept for %v.\n", keep)
	for _, path := range s.fetched {
		if err := s.expire(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// expire fetches a result again until it is kept no more.
func (s *story) expire(ctx context.Context, path string) error {
	for {
		code, text, err := s.client.ask(ctx, http.MethodGet, path+"/result", nil)
		if err != nil {
			return err
		}
		if code != http.StatusOK {
			s.client.tell("", "GET …/result", code, text)
			if code != http.StatusGone {
				return errors.New("an old result was to be gone")
			}
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("waiting for a result to go: %w", err)
		}
	}
}

// pause is nil after d, or why the context ended.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
