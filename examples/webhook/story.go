package main

import (
	"context"
	"fmt"

	"github.com/pawlq/pawl"
)

// story is told in chapters.
type story struct {
	queue     *pawl.Queue
	journal   *journal
	customers customers
	published int // deliveries, without those that were there already
}

const firstEvent = "evt_1"

// publishTwice enqueues. No worker runs yet, and none is needed.
func (s *story) publishTwice(ctx context.Context) error {
	fmt.Println("\nAn event goes out to six customers. Its producer is not sure of that, and publishes it again.")
	if _, err := s.publish(ctx, firstEvent, s.customers.names()...); err != nil {
		return err
	}
	again, err := s.publish(ctx, firstEvent, s.customers.names()...)
	if err != nil {
		return err
	}
	for _, job := range again {
		if !job.Duplicate {
			return fmt.Errorf("publishing again made a job: %+v", job)
		}
	}
	return nil
}

func (s *story) publish(ctx context.Context, event string, endpoints ...string) ([]pawl.Enqueued, error) {
	jobs, err := publish(ctx, s.queue, event, endpoints...)
	if err != nil {
		return nil, err
	}
	for i, job := range jobs {
		note := ""
		if job.Duplicate {
			note = " is there already: no second job"
		} else {
			s.published++
		}
		s.journal.line("enqueue", event, endpoints[i], "job %s%s", short(job.ID), note)
	}
	return jobs, nil
}

// short is the end of an id, where those of one moment differ.
func short(id pawl.ID) string { return id.String()[24:] }

// answers waits until each delivery of the event has arrived or is dead.
func (s *story) answers(ctx context.Context) error {
	fmt.Println("\nA worker starts. The customers answer, each in its own way.")
	return s.journal.awaitEnds(ctx, s.published)
}

// outage shows that what cannot be delivered waits.
func (s *story) outage(ctx context.Context) error {
	down := s.customers[0]
	fmt.Printf("\nThe customer %q goes down. More events come.\n", down.name)
	down.close()
	var waiting []pawl.Enqueued
	for n := 2; n <= 6; n++ {
		jobs, err := s.publish(ctx, fmt.Sprintf("evt_%d", n), down.name)
		if err != nil {
			return err
		}
		waiting = append(waiting, jobs...)
	}
	if err := s.journal.awaitFailures(ctx, waiting); err != nil {
		return err
	}
	stats, err := s.queue.Stats(ctx)
	if err != nil {
		return err
	}
	left := stats.Depth() + stats.Running // some may be in their next attempt
	fmt.Printf("\nEach has failed at least twice, and all %d are there. The customer comes back.\n", left)
	if left != int64(len(waiting)) {
		return fmt.Errorf("%d deliveries were to wait, not %d", len(waiting), left)
	}
	if err := down.open(ctx); err != nil {
		return err
	}
	return s.journal.awaitEnds(ctx, s.published)
}
