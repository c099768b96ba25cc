package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// long is a job that takes several times the visibility timeout.
func (s *studio) long(ctx context.Context) error {
	const video = "feature.mov"
	fmt.Printf("A job of %v, where a silent worker loses its jobs after %v.\n", 64*partTime, visibility)
	id, err := s.enqueue(ctx, video, 64)
	if err != nil {
		return err
	}
	renewals, err := s.countRenewals(ctx, id)
	if err != nil {
		return err
	}
	if _, err := s.journal.await(ctx, "done", video); err != nil {
		return err
	}
	s.journal.line("lease", video, "was renewed %d times, and the job ran %d time", renewals, s.journal.runsOf(video))
	if renewals < 3 || s.journal.runsOf(video) != 1 {
		return errors.New("a long job was to keep its lease, and to run once")
	}
	return nil
}

// countRenewals looks at the lease of a job until the job is gone.
func (s *studio) countRenewals(ctx context.Context, id pawl.ID) (renewals int, err error) {
	var until time.Time
	for ; ; pause(ctx) {
		info, err := s.queue.Get(ctx, id)
		switch {
		case errors.Is(err, pawl.ErrNotFound):
			return renewals, nil
		case err != nil:
			return 0, err
		case !until.IsZero() && info.LeaseUntil.After(until):
			renewals++
		}
		until = info.LeaseUntil
	}
}

// pause is the time between two looks at a job.
func pause(ctx context.Context) {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	}
}

// hung is a job that takes longer than its Timeout, each time.
func (s *studio) hung(ctx context.Context) error {
	fmt.Println("The encoder hangs. Each run ends by its timeout of 400 ms, which is a failure.")
	id, err := s.enqueue(ctx, broken, 10, pawl.Timeout(400*time.Millisecond))
	if err != nil {
		return err
	}
	if _, err := s.journal.await(ctx, "dead", broken); err != nil {
		return err
	}
	dead, err := s.queue.Dead().Get(ctx, id)
	if err != nil {
		return err
	}
	if dead.Reason != pawl.ReasonExhausted || len(dead.Errors) != 2 {
		return fmt.Errorf("the job was to die after two attempts, not so: %+v", dead)
	}
	for _, e := range dead.Errors {
		s.journal.line("attempt", broken, "%d took %d ms: %s", e.Attempt, e.Took.Milliseconds(), e.Error)
	}
	if _, err = s.queue.Dead().Delete(ctx, id); err != nil {
		return err
	}
	s.journal.line("deleted", broken, "from the dead, now that somebody has looked at it")
	return nil
}

// unwanted is a job that is cancelled while it runs.
func (s *studio) unwanted(ctx context.Context) error {
	const video = "holiday.mov"
	fmt.Println("A user deletes a video while it is being transcoded.")
	id, err := s.enqueue(ctx, video, 300)
	if err != nil {
		return err
	}
	if _, err := s.journal.await(ctx, "part 4", video); err != nil {
		return err
	}
	asked := time.Now()
	s.journal.line("cancel", video, "is asked for")
	answer := make(chan error, 1)
	go func() { answer <- s.queue.Cancel(ctx, id) }() // in production, the handler of an HTTP DELETE
	if err := <-answer; err != nil {
		return err
	}
	stopped, err := s.journal.await(ctx, "stopped", video)
	if err != nil {
		return err
	}
	took := stopped.at.Sub(asked)
	for ; ; pause(ctx) {
		if _, err = s.queue.Get(ctx, id); err != nil {
			break
		}
	}
	if !errors.Is(err, pawl.ErrNotFound) {
		return fmt.Errorf("the cancelled job was to be gone: %w", err)
	}
	s.journal.line("gone", video, "its handler heard of it after %d ms; promised is %d", took.Milliseconds(), (visibility / 3).Milliseconds())
	// Three times as much, for a machine that is busy with other things.
	if took > visibility || s.store.count(id.String()) != 0 || s.journal.runsOf(video) != 1 {
		return fmt.Errorf("the handler heard of it after %v and left %d parts", took, s.store.count(id.String()))
	}
	return nil
}

// deploy stops the worker while it runs two jobs. Another one takes up what it
// leaves.
func (s *studio) deploy(ctx context.Context, first *worker) error {
	const short, long = "teaser.mov", "series.mov"
	fmt.Printf("A deploy: running jobs have %v to finish. One can, one cannot.\n", drain)
	id, err := s.enqueue(ctx, long, 48)
	if err != nil {
		return err
	}
	if _, err := s.journal.await(ctx, "part 4", long); err != nil {
		return err
	}
	if _, err := s.enqueue(ctx, short, 10); err != nil {
		return err
	}
	if _, err := s.journal.await(ctx, "part 1", short); err != nil {
		return err
	}
	s.journal.line("worker", first.name, "is told to stop")
	late, ok := errors.AsType[*pawl.DrainError](first.stop())
	if !ok || len(late.Released) != 1 || late.Released[0] != id || len(late.Stuck) != 0 {
		return fmt.Errorf("one job was to be released, not so: %v", first.err)
	}
	s.journal.line("worker", first.name, "has stopped: %v", late)
	kept := s.store.count(id.String())

	s.journal.line("worker", "media-2", "starts")
	second, err := s.start(ctx, "media-2")
	if err != nil {
		return err
	}
	_, err = s.journal.await(ctx, "done", long)
	if err := errors.Join(err, second.stop()); err != nil {
		return err
	}
	if kept == 0 || kept >= 48 || s.journal.runsOf(short) != 1 || s.journal.runsOf(long) != 2 {
		return fmt.Errorf("the second run was to go on with the first one's %d parts", kept)
	}
	return nil
}
