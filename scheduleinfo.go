package pawl

import (
	"context"
	"fmt"
	"time"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// ScheduleInfo is a schedule as it stands. Times are by the server's clock, in UTC.
type ScheduleInfo struct {
	ID string
	// Spec is the text of its Spec, as "cron 0 2 * * * in Europe/Berlin"; it and Kind
	// are "" if a newer version of pawl has registered it.
	Spec, Kind string
	// Next is its next time. One that is past is about to be fired, or, while it is
	// paused, was held back.
	Next time.Time
	// Last is the time of its newest tick, as RawJob.ScheduledAt has it, and LastJob is
	// its newest job, which may be over; zero before the first. A tick that was skipped
	// made no job: LastJob is then of one before. Times that were missed are no ticks.
	Last    time.Time
	LastJob ID
	// Fired counts the times that made a job, Trigger's too; Missed those that passed
	// without one (see Missed), of one absence 100,000 more than were fired at most if
	// it is a cron line; Skipped those at which a job held the unique key.
	Fired, Missed, Skipped int64
	Paused                 bool
}

// Schedules lists the schedules of the queue by ID, paused ones too, but not the
// canary. There are none in a queue that was never used. Each is as it was in one
// moment.
func (q *Queue) Schedules(ctx context.Context) ([]ScheduleInfo, error) {
	if q.err != nil {
		return nil, q.wrap("schedules", q.err)
	}
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	ids, err := q.scheduleIDs(ctx)
	if err != nil {
		return nil, q.wrap("schedules", err)
	}
	var infos []ScheduleInfo
	for len(ids) > 0 {
		look, err := q.lookAtSchedules(ctx, "ids", 0, ids[:min(len(ids), schedulePage)]...)
		if err == nil && len(look.seen) == 0 {
			err = fmt.Errorf("script schedules answered of none of %d", len(ids))
		}
		if err != nil {
			return nil, q.wrap("schedules", err)
		}
		ids = ids[len(look.seen):]
		for _, seen := range look.seen {
			if seen.definition != "" && seen.id != canaryName {
				infos = append(infos, seen.info())
			}
		}
	}
	return infos, nil
}

func (s seenSchedule) info() ScheduleInfo {
	info := ScheduleInfo{ID: s.id}
	if d, err := parseDefinition(s.definition); err == nil {
		info.Spec = d.spec
		if rec, err := record.Decode([]byte(d.record)); err == nil {
			info.Kind = rec.Kind
		}
	}
	state, ok := parseScheduleState(s.state)
	if !ok {
		return info // the workers mend it
	}
	info.Next, info.Paused = time.UnixMilli(state.next).UTC(), state.paused
	info.Fired, info.Missed, info.Skipped = state.fired, state.missed, state.skipped
	if state.last > 0 {
		info.Last = time.UnixMilli(state.last).UTC()
	}
	info.LastJob, _ = jobid.FromText(state.job)
	return info
}

// PauseSchedule holds a schedule back until ResumeSchedule; jobs that were enqueued stay.
// Registering it again does not resume it. Of one that is paused it changes nothing.
// Errors: ErrNotFound; ErrUnconfirmed, and it may be paused.
func (q *Queue) PauseSchedule(ctx context.Context, id string) error {
	return q.wrap("pause schedule", q.setSchedulePause(ctx, id, true))
}

// ResumeSchedule ends a pause. What passed meanwhile is dealt with by Missed. Of one
// that is not paused it changes nothing. Errors: ErrNotFound; ErrUnconfirmed, and it may
// go on.
func (q *Queue) ResumeSchedule(ctx context.Context, id string) error {
	return q.wrap("resume schedule", q.setSchedulePause(ctx, id, false))
}

func (q *queueState) setSchedulePause(ctx context.Context, id string, paused bool) error {
	return q.changeSchedule(ctx, id, func(seen seenSchedule) (e edit) {
		state, ok := parseScheduleState(seen.state)
		if !ok || state.paused == paused && seen.fits(state) {
			return edit{} // a state that is lost the workers make anew
		}
		state.paused = paused
		return edit{id: id, seen: seen.state, state: state.text()}
	})
}

// Trigger enqueues a schedule's job now, also while it is paused, and leaves its next
// time as it is. ScheduledAt is now, by the server's clock. With OverlapSkip, or a
// Unique in its options, the job may be a Duplicate of one that lives.
// Errors: ErrNotFound, and those of Enqueue.
func (q *Queue) Trigger(ctx context.Context, id string) (Enqueued, error) {
	if q.err != nil {
		return Enqueued{}, q.wrap("trigger", q.err)
	}
	if err := checkScheduleID(id); err != nil {
		return Enqueued{}, q.wrap("trigger", err)
	}
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	start := time.Now()
	it, err := q.trigger(ctx, id)
	event := EnqueuedEvent{Err: q.wrap("trigger", err)}
	if it == nil {
		return Enqueued{}, event.Err
	}
	event.Enqueued, event.Kind, event.Took = it.result, it.kind, time.Since(start)
	q.client.hooks.enqueued(ctx, event)
	return it.result, event.Err
}

// claims reports whether a time is that of the newest job, or of a tick that has passed or
// is passing, and may be fired yet.
func (s scheduleState) claims(spec string, now int64) bool {
	if now <= s.next {
		return now == s.last || now == s.next
	}
	plan, err := parseSpec(spec)
	if err != nil {
		return now == s.last
	}
	at, err := nextTick(plan, now-1, s.anchor)
	return now == s.last || err == nil && at == now
}

// trigger returns nil for the job if nothing was sent.
func (q *queueState) trigger(ctx context.Context, id string) (*item, error) {
	for n := 0; ; n++ {
		look, err := q.lookAtSchedules(ctx, "ids", 0, id)
		if err != nil {
			return nil, err
		}
		if len(look.seen) == 0 || look.seen[0].definition == "" {
			return nil, fmt.Errorf("%w: schedule %q", ErrNotFound, id)
		}
		seen := look.seen[0]
		d, err := parseDefinition(seen.definition)
		if err != nil {
			return nil, fmt.Errorf("schedule %q: %w", id, err)
		}
		it, err := d.job(q, id, look.now)
		if err != nil {
			return nil, fmt.Errorf("schedule %q: %w", id, err)
		}
		// Each job of a schedule has a time of its own.
		if state, ok := parseScheduleState(seen.state); ok && !state.claims(d.spec, look.now) {
			f := []firing{{id: id, seen: seen.state, next: state.next, jobs: []*item{it}, times: []int64{look.now}}}
			keys, args := q.tickWords(f)
			text, err := q.call(ctx, scriptTick, keys, args...)
			if err != nil {
				return it, err
			}
			_, marks, err := readTick(text, f)
			if err != nil {
				return it, err
			}
			if marks == "k" {
				q.enlist()
				return it, it.rejected()
			}
		}
		select { // it has changed since it was looked at, its state was lost, or this ms is taken
		case <-time.After(retryPause(n)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
