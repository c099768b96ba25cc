package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/examplefleet"
)

// period is that of the job of which some are to be seen, and of the canary.
const period = time.Second

// story is what the parent does: in production it is any program that registers.
type story struct {
	start   time.Time
	queue   *pawl.Queue
	fleet   *examplefleet.Fleet[report]
	reports chan report
	jobs    map[string]map[string]string // by tick: the jobs that ran, and where
}

func (s *story) hear(worker string, r report) {
	r.Worker = worker
	s.reports <- r
}

// next is what a worker reports next.
func (s *story) next(ctx context.Context) (report, error) {
	select {
	case r := <-s.reports:
		return r, nil
	case <-ctx.Done():
		return report{}, fmt.Errorf("waiting for a worker: %w", context.Cause(ctx))
	}
}

func (s *story) line(who, format string, args ...any) {
	fmt.Printf("%6d ms  %-8s  %s\n", time.Since(s.start).Milliseconds(), who, fmt.Sprintf(format, args...))
}

func (s *story) register(ctx context.Context) error {
	nightly := pawl.Schedule{ID: "nightly", When: pawl.CronIn("Europe/Berlin", "30 2 * * *"), Args: Report{Of: "the day"}}
	often := pawl.Schedule{ID: "often", When: pawl.Every(period), Args: Report{Of: "the second"}, Missed: pawl.MissedAll}
	for range 2 { // as every process would at its start
		if err := s.queue.SyncSchedules(ctx, []pawl.Schedule{nightly, often}); err != nil {
			return err
		}
	}
	if err := s.queue.Canary(ctx, period); err != nil {
		return err
	}
	infos, err := s.queue.Schedules(ctx)
	if err != nil {
		return err
	}
	for _, info := range infos {
		s.line("parent", "has %-7s  %s, next at %s", info.ID, info.Spec, info.Next.Format(time.DateTime+" UTC"))
	}
	return nil
}

// watch sees the ticks come, and kills the worker that has run the fourth.
func (s *story) watch(ctx context.Context) error {
	for killed := false; len(s.jobs) < ticks; {
		r, err := s.next(ctx)
		if err != nil {
			return err
		}
		if r.What != "often" {
			continue
		}
		if s.jobs[r.Tick] == nil {
			s.jobs[r.Tick] = map[string]string{}
		}
		s.jobs[r.Tick][r.Job] = r.Worker
		s.line("worker "+r.Worker, "runs the job of %s", r.Tick)
		if len(s.jobs) == 4 && !killed {
			killed = true
			if err := s.fleet.Kill(r.Worker); err != nil {
				return err
			}
			s.line("parent", "kills worker %s (SIGKILL)", r.Worker)
		}
	}
	return s.queue.PauseSchedule(ctx, "often")
}

// trigger runs the nightly job by hand.
func (s *story) trigger(ctx context.Context) error {
	if _, err := s.queue.Trigger(ctx, "nightly"); err != nil {
		return err
	}
	for {
		r, err := s.next(ctx)
		if err != nil {
			return err
		}
		if r.What == "nightly" {
			s.line("worker "+r.Worker, "runs the nightly job, triggered by hand")
			return nil
		}
	}
}

// end checks that all went as it is told.
func (s *story) end(ctx context.Context) error {
	stats, err := s.queue.Stats(ctx)
	if err != nil {
		return err
	}
	age := time.Since(stats.LastCanary)
	fmt.Printf("\n%d times, each one job; the canary came through less than %s ago\n", len(s.jobs), age.Truncate(period)+period)
	var wrong []error
	for tick, jobs := range s.jobs {
		if len(jobs) != 1 {
			wrong = append(wrong, fmt.Errorf("%s was %d jobs", tick, len(jobs)))
		}
	}
	if stats.CanaryAge > 3*stats.CanaryEvery { // the alert of docs/scheduling.md
		wrong = append(wrong, fmt.Errorf("the canary came through %v ago", age))
	}
	violations, err := s.queue.Check(ctx)
	for _, v := range violations {
		wrong = append(wrong, errors.New(v.String()))
	}
	return errors.Join(append(wrong, err)...)
}
