package pawl_test

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// Digest is the job of summing up what happened since the one before.
type Digest struct {
	Team string `json:"team"`
}

func (Digest) Kind() string { return "digest" }

// region schedules

// schedules is what every process of the program registers at its start: what is
// there already stays as it is.
func schedules(ctx context.Context, q *pawl.Queue) error {
	return q.Schedule(ctx,
		pawl.Schedule{
			ID:   "digest",
			When: pawl.CronIn("Europe/Berlin", "30 6 * * mon-fri"),
			Args: Digest{Team: "sales"},
		},
		pawl.Schedule{
			ID:      "refresh",
			When:    pawl.Every(5 * time.Minute),
			Args:    Digest{Team: "all"},
			Overlap: pawl.OverlapSkip, // not while the one before still lives
			Missed:  pawl.MissedSkip,  // an old one is of no use
			Options: []pawl.Option{pawl.MaxAttempts(2)},
		})
}

// endregion

// A schedule belongs to its queue, and any worker that serves it fires it.
func ExampleQueue_Schedule() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	reports := m.Queue("reports")

	mustNil(schedules(ctx, reports))
	mustNil(schedules(ctx, reports)) // the next process

	for _, s := range must(reports.Schedules(ctx)) {
		fmt.Println(s.ID, "|", s.Spec, "|", s.Kind, "| fired", s.Fired)
	}
	// Output:
	// digest | cron 30 6 * * mon-fri in Europe/Berlin | digest | fired 0
	// refresh | every 5m0s | digest | fired 0
}

// What a job is for is told by the time that it was made for, not by the clock: it
// may run late, and again.
func ExampleSchedule() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	reports := m.Queue("reports")
	mustNil(reports.Schedule(ctx, pawl.Schedule{ID: "digest", When: pawl.Every(time.Second), Args: Digest{Team: "sales"}}))

	w := m.worker("reports")
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Digest]) error {
		from, to := job.ScheduledAt.Add(-time.Second), job.ScheduledAt
		once := pawl.Key(job.Schedule, to.UnixMilli()) // for a service that knows idempotency keys
		fmt.Println(job.Schedule, "of", to.Sub(from), "for", job.Args.Team, once != "")
		return nil
	})
	m.run(w, 2)
	// Output:
	// digest of 1s for sales true
	// digest of 1s for sales true
}

// SyncSchedules is for a program that owns all schedules of its queue: what is no
// more in its code goes.
func ExampleQueue_SyncSchedules() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	reports := m.Queue("reports")
	hourly := func(id string) pawl.Schedule {
		return pawl.Schedule{ID: id, When: pawl.Cron("@hourly"), Args: Digest{Team: id}}
	}
	mustNil(reports.SyncSchedules(ctx, []pawl.Schedule{hourly("sales"), hourly("support")}))
	mustNil(reports.SyncSchedules(ctx, []pawl.Schedule{hourly("support"), hourly("finance")}))
	for _, s := range must(reports.Schedules(ctx)) {
		fmt.Println(s.ID)
	}
	// Output:
	// finance
	// support
}

// By hand: now, not for a while, no more.
func ExampleQueue_Trigger() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	reports := m.Queue("reports")
	mustNil(schedules(ctx, reports))

	// region byHand
	first := must(reports.Trigger(ctx, "refresh"))
	second := must(reports.Trigger(ctx, "refresh"))
	fmt.Println(first.Duplicate, second.Duplicate, second.ID == first.ID)

	mustNil(reports.PauseSchedule(ctx, "digest"))
	for _, s := range must(reports.Schedules(ctx)) {
		fmt.Println(s.ID, "paused:", s.Paused, "fired:", s.Fired, "skipped:", s.Skipped)
	}
	mustNil(reports.ResumeSchedule(ctx, "digest"))
	mustNil(reports.Unschedule(ctx, "refresh"))
	fmt.Println(len(must(reports.Schedules(ctx))), "left")
	// endregion

	// Output:
	// false true true
	// digest paused: true fired: 0 skipped: 0
	// refresh paused: false fired: 1 skipped: 1
	// 1 left
}

// When no worker ran for a night, of a schedule that fires each hour.
func ExampleMissed() {
	hourly := pawl.Schedule{ID: "hourly", When: pawl.Cron("@hourly"), Args: Digest{}}
	hourly.Missed = pawl.MissedOnce // one job in the morning, for the newest hour
	hourly.Missed = pawl.MissedSkip // none; the next one is that of the next hour
	hourly.Missed = pawl.MissedAll  // one for each hour of the night, oldest first
	fmt.Println(hourly.Missed == pawl.MissedAll)
	// Output: true
}

// A job that may take longer than the time to the next one.
func ExampleOverlap() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	q := m.Queue("reports")
	s := pawl.Schedule{ID: "s", When: pawl.Cron("@hourly"), Args: Digest{}}
	for _, overlap := range []pawl.Overlap{pawl.OverlapAllow, pawl.OverlapSkip} {
		s.Overlap = overlap
		mustNil(q.Schedule(ctx, s))
		must(q.Trigger(ctx, "s"))
		must(q.Trigger(ctx, "s"))
		fmt.Println(must(q.Stats(ctx)).Ready)
	}
	// Output:
	// 2
	// 3
}

// What a page for operators shows of a schedule.
func ExampleScheduleInfo() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	reports := m.Queue("reports")
	mustNil(schedules(ctx, reports))
	job := must(reports.Trigger(ctx, "digest"))

	var info pawl.ScheduleInfo = must(reports.Schedules(ctx))[0]
	fmt.Println(info.ID, info.LastJob == job.ID, !info.Last.IsZero(), info.Next.After(info.Last))
	fmt.Println(must(reports.Get(ctx, info.LastJob)).State)
	// Output:
	// digest true true true
	// ready
}

// An alarm that knows whether jobs get through, whatever is wrong.
func ExampleQueue_Canary() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	emails := m.Queue("emails")
	// region canary
	mustNil(emails.Canary(ctx, time.Second)) // a minute, in production

	w := m.worker("emails")
	pawl.Handle(w, sendWelcome)
	m.run(w, 1)

	s, err := emails.Stats(ctx)
	fmt.Println("alarm:", err != nil || s.CanaryAge > 3*s.CanaryEvery)
	// endregion
	fmt.Println("every", s.CanaryEvery)

	// Output:
	// alarm: false
	// every 1s
}
