package pawl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Schedule enqueues a job again and again. It is kept in Redis, with its arguments,
// until Unschedule: what is registered once goes on when the program that did it has
// ended, as long as any worker serves the queue.
type Schedule struct {
	// ID is its identity in the queue: 1 to 128 bytes of printable UTF-8, not
	// beginning with "pawl:". Each job has it as RawJob.Schedule.
	ID string
	// When says when it fires: Cron, CronIn or Every.
	When Spec
	// Args are those of every job. They are encoded when the schedule is registered;
	// what a job is for is told by its RawJob.ScheduledAt.
	Args Args
	// Options are those of every job, as if given to Enqueue, with those of the type
	// (JobOptions) beside them, as they are when the schedule is registered. Not At;
	// a Delay counts from the tick. The headers of Config.Inject are not added: there
	// is no caller. With an Idempotency of a fixed key only the first job of each of its
	// windows runs.
	Options []Option
	// Missed says what to do about times that passed while no worker ran, or the
	// schedule was paused. Default MissedOnce.
	Missed Missed
	// Overlap says what to do while the job before still lives. Default OverlapAllow.
	Overlap Overlap
}

// Missed says what a schedule does about times that have passed when a worker comes
// to it. The first time that is due is never "missed" by MissedOnce and MissedAll,
// however late: it is enqueued late.
type Missed int

const (
	// MissedOnce enqueues one job for all of them, whose ScheduledAt is the newest.
	MissedOnce Missed = iota
	// MissedSkip enqueues one for the newest if that is at most a minute ago, as after
	// a failover, and else none.
	MissedSkip
	// MissedAll enqueues one job each, oldest first, for the newest 100.
	MissedAll
)

// Overlap says what a schedule does at a time at which a job of it still lives: waits,
// runs or waits for its retry.
type Overlap int

const (
	// OverlapAllow enqueues all the same.
	OverlapAllow Overlap = iota
	// OverlapSkip does not: the tick is counted in ScheduleInfo.Skipped. The job holds
	// the unique key "pawl:schedule:<id>" until it is done, dead, discarded or
	// cancelled, so that it cannot have another Unique; nor with MissedAll, of which it
	// would leave one job.
	OverlapSkip
)

const (
	maxScheduleID = 128  // bytes
	maxSchedules  = 1000 // in a queue
	// reserved begins the names that are pawl's own.
	reserved = "pawl:"
)

// Schedule registers schedules by their ID, or changes those that are there.
// Registering the same again changes nothing, so call it at every start, from any
// number of processes. The queue's workers fire them: each time gives one job, however
// many workers there are, and there is no leader. A worker of this Client hears of a
// schedule at once, others within 10 s.
//
// A change of arguments or options leaves the next time as it is, and so is a time
// that is due already: it is fired, with what is new. Else a changed When begins with
// its first time from now on. Of two processes that register different things under one
// ID the last one wins. What is registered no more goes on, under its ID, until
// Unschedule or SyncSchedules.
//
// All are checked before anything is sent. Errors: ErrInvalid or ErrTooLarge, and
// nothing was sent; ErrFull if the queue would have more than 1000 schedules, or Redis
// has no memory left; ErrUnconfirmed. With those some may be registered: call it again.
func (q *Queue) Schedule(ctx context.Context, s ...Schedule) error {
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	definitions, err := q.define(ctx, s)
	if err == nil {
		err = q.register(ctx, definitions)
	}
	return q.wrap("schedule", err)
}

// SyncSchedules makes s the whole list: it registers them as Schedule does, then removes
// the queue's others, but not the canary; these first if else there would be too many. Of
// two programs that share a queue, each would remove the schedules of the other; of two
// builds that are both at work during a deploy, the one that registers last decides.
// Errors as Schedule's; if one comes, all that should be removed may still be there.
func (q *Queue) SyncSchedules(ctx context.Context, s []Schedule) error {
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	definitions, err := q.define(ctx, s)
	if err != nil {
		return q.wrap("sync schedules", err)
	}
	return q.wrap("sync schedules", q.syncSchedules(ctx, definitions))
}

func (q *queueState) syncSchedules(ctx context.Context, definitions map[string]definition) error {
	err := q.register(ctx, definitions)
	if err != nil && !errors.Is(err, errCrowded) {
		return err
	}
	// There may be no room until the others have gone.
	if again := q.unscheduleOthers(ctx, definitions); again != nil || err == nil {
		return again
	}
	return q.register(ctx, definitions)
}

// unscheduleOthers removes all but some schedules and the canary.
func (q *queueState) unscheduleOthers(ctx context.Context, definitions map[string]definition) error {
	ids, err := q.scheduleIDs(ctx)
	if err != nil {
		return err
	}
	var others []string
	for _, id := range ids {
		if _, stays := definitions[id]; !stays && id != canaryName {
			others = append(others, id)
		}
	}
	return q.editSchedules(ctx, others, func(seen seenSchedule, _ int64) (edit, bool, error) {
		return seen.removal(), seen.there(), nil
	})
}

// Unschedule removes a schedule: nothing of it is known any more, but jobs that were
// enqueued stay. Errors: ErrNotFound if there is none of this id; ErrUnconfirmed, and it
// may be removed; with any other it is as it was.
func (q *Queue) Unschedule(ctx context.Context, id string) error {
	return q.wrap("unschedule", q.changeSchedule(ctx, id, func(seen seenSchedule) edit { return seen.removal() }))
}

// define is what is to be stored of schedules, by id.
func (q *queueState) define(ctx context.Context, list []Schedule) (map[string]definition, error) {
	if q.err != nil {
		return nil, q.err
	}
	plain, definitions := q.callerless(), map[string]definition{}
	for _, s := range list {
		d, err := plain.definition(ctx, s)
		if err != nil {
			return nil, &placed{fmt.Sprintf("schedule %.140q", s.ID), err}
		}
		if _, twice := definitions[s.ID]; twice {
			return nil, invalidf("schedule %q is given twice: give each an ID of its own", s.ID)
		}
		definitions[s.ID] = d
	}
	if len(definitions) > maxSchedules {
		return nil, invalidf("%d schedules: a queue has at most %d; use several queues", len(definitions), maxSchedules)
	}
	return definitions, nil
}

func (q *queueState) definition(ctx context.Context, s Schedule) (definition, error) {
	if err := checkScheduleID(s.ID); err != nil {
		return definition{}, err
	}
	if err := s.When.check(); err != nil {
		return definition{}, err
	}
	switch {
	case s.Missed < MissedOnce || s.Missed > MissedAll:
		return definition{}, invalidf("Missed is %d: give MissedOnce, MissedSkip or MissedAll", int(s.Missed))
	case s.Overlap < OverlapAllow || s.Overlap > OverlapSkip:
		return definition{}, invalidf("Overlap is %d: give OverlapAllow or OverlapSkip", int(s.Overlap))
	case s.Missed == MissedAll && s.Overlap == OverlapSkip:
		return definition{}, invalidf("MissedAll with OverlapSkip: of the jobs that were missed all but the first would be skipped; give MissedOnce")
	}
	raw, set, err := q.draft(ctx, s.Args, s.Options)
	switch {
	case err != nil:
		return definition{}, err
	case !set.at.IsZero():
		return definition{}, invalidf("At in the options of a schedule: When says when; a Delay holds each of its jobs back")
	case s.Overlap == OverlapSkip && set.unique != nil:
		return definition{}, invalidf("Unique with OverlapSkip, which is one: leave out one of them")
	case s.Overlap == OverlapSkip:
		set.unique = &Unique{Key: overlapKey(s.ID)}
	}
	return q.defined(s, raw, set), nil
}

// callerless is the queue for jobs that nobody enqueues in person: there is no context
// for Config.Inject, whose headers would also make each process's definition another.
func (q *queueState) callerless() *queueState {
	c := q.client
	return &queueState{name: q.name, keys: q.keys, client: &Client{rdb: c.rdb, namespace: c.namespace, codec: c.codec,
		log: c.log, hooks: c.hooks, max: c.max, retention: c.retention}}
}

// defined is the definition of a schedule that was checked.
func (q *queueState) defined(s Schedule, raw Raw, set settings) definition {
	return definition{spec: s.When.String(), missed: s.Missed, overlap: s.Overlap,
		delay: ceilMillis(set.delay), record: string(q.item(raw, set).record)}
}

// overlapKey is the unique key of the jobs of a schedule that do not overlap.
func overlapKey(id string) string { return reserved + "schedule:" + id }

func checkScheduleID(id string) error {
	switch {
	case id == "":
		return invalidf("the ID is empty: give it a name that stays, such as %q", "nightly-report")
	case len(id) > maxScheduleID:
		return invalidf("the ID %.40q… has %d bytes: use at most %d", id, len(id), maxScheduleID)
	case id == canaryName:
		return invalidf("%q is the queue's canary: Queue.Canary sets it, and removes it with a period of 0", id)
	case strings.HasPrefix(id, reserved):
		return invalidf("the ID %q begins with %q, as pawl's own do: choose another", id, reserved)
	case !utf8.ValidString(id):
		return invalidf("the ID %q is not UTF-8: use text", id)
	}
	for _, r := range id {
		if !unicode.IsPrint(r) {
			return invalidf("the ID %q has the character %U, which does not print: leave it out", id, r)
		}
	}
	return nil
}
