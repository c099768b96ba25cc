package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/examplefleet"
)

// story is the program as its parent process sees it.
type story struct {
	namespace  string
	work, mail *pawl.Queue
	store      *store
	fleet      *examplefleet.Fleet[report]

	photos, nights  int // chains that were enqueued
	started, killed int // worker processes
}

func (s *story) tell(ctx context.Context) error {
	fmt.Println("Two worker processes start.")
	if err := s.launch(ctx); err != nil {
		return err
	}
	for _, name := range s.fleet.Running() {
		if _, err := s.store.await(ctx, 0, "the workers are ready", func(e event) bool { return e.What == "ready" && e.worker == name }); err != nil {
			return err
		}
	}
	for _, chapter := range []func(context.Context) error{s.one, s.many, s.none, s.count} {
		fmt.Println()
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// one follows a single chain through three kills.
func (s *story) one(ctx context.Context) error {
	fmt.Println("One photo: fetch, resize, publish, mail. Three workers are killed under it.")
	s.store.follow(photo(1))
	from := s.store.heard()
	if err := s.enqueue(ctx, 1, 0); err != nil {
		return err
	}
	for _, kill := range []struct {
		moment
		kind string
	}{{within, "fetch"}, {after, "resize"}, {handsOn, "publish"}} {
		if err := s.killAt(ctx, from, kill.moment, kill.kind); err != nil {
			return err
		}
	}
	for _, kind := range []string{"mail", "publish"} {
		if _, err := s.store.await(ctx, from, kind+" ended", func(e event) bool { return e.Kind == kind && e.What == "ended" }); err != nil {
			return err
		}
	}
	return nil
}

// rounds is how often more chains come and a worker is killed.
const rounds = 6

// many has new chains come, and workers killed, all the time.
func (s *story) many(ctx context.Context) error {
	fmt.Printf("Many chains at once, and %d workers are killed under them, each with all that it runs.\n", rounds)
	s.store.follow("")
	for i := range rounds {
		if err := s.enqueue(ctx, 3, 1); err != nil {
			return err
		}
		if err := pause(ctx, stepTime+restTime); err != nil { // some are in their second step, or third
			return err
		}
		if err := s.killAt(ctx, s.store.heard(), []moment{between, within, after, handsOn}[i%4], ""); err != nil {
			return err
		}
	}
	return nil
}

// none has no worker left for a while, and waits until others have finished.
func (s *story) none(ctx context.Context) error {
	fmt.Println("All workers are killed. What is not done is in Redis, and so is what follows it.")
	running := s.fleet.Running()
	if err := s.fleet.Kill(running...); err != nil {
		return err
	}
	s.killed += len(running)
	left, err := s.left(ctx)
	if err != nil {
		return err
	}
	s.store.line("parent", "sees %d jobs, and no worker", left)
	if left == 0 {
		return errors.New("the workers were to be killed before the end")
	}
	if err := s.launch(ctx); err != nil {
		return err
	}
	for left > 0 {
		if err := pause(ctx, stepTime); err != nil {
			return fmt.Errorf("waiting for %d jobs: %w", left, err)
		}
		if left, err = s.left(ctx); err != nil {
			return err
		}
	}
	s.store.line("parent", "sees no job any more, and tells the workers to stop")
	return s.fleet.Stop(s.fleet.Running()...)
}

// left is how many jobs wait or run. A mail is enqueued before the job that it follows
// ends: so none is overlooked on its way, as the mails are counted last.
func (s *story) left(ctx context.Context) (n int64, err error) {
	for _, q := range []*pawl.Queue{s.work, s.mail} {
		stats, err := q.Stats(ctx)
		if err != nil {
			return 0, err
		}
		n += stats.Depth() + stats.Running
	}
	return n, nil
}

// enqueue begins as many chains more.
func (s *story) enqueue(ctx context.Context, photos, nights int) error {
	for range photos {
		s.photos++
		if _, err := s.work.Enqueue(ctx, Fetch{Photo: s.photos}); err != nil {
			return err
		}
	}
	for range nights {
		s.nights++
		if err := enqueueNight(ctx, s.work, s.nights); err != nil {
			return err
		}
	}
	return nil
}
