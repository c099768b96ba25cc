package pawl

import (
	"fmt"
	"sync"
	"time"

	"github.com/pawlq/pawl/internal/cron"
)

const minEvery = time.Second

// Validate is the error that Schedule would have of this Spec, an ErrInvalid that says
// what is wrong with it, as a line that somebody typed, and nil if nothing is. It needs
// no Redis. A time zone is known or not on the machine that asks: another may differ.
func (s Spec) Validate() error { return s.check() }

// Next is the first time after another at which a schedule of this Spec fires, that one
// itself excluded. Of a crontab line it is in the time zone of the line, as CronIn got it;
// ScheduleInfo.Next and RawJob.ScheduledAt, the same moments, are in UTC.
//
// Every has no times before it is registered: Next is that of a schedule which is
// registered at after, so after and one period, in UTC. For one that is registered,
// ScheduleInfo.Next has the real one, and a period after that is the next but one.
//
// An error is an ErrInvalid: that of Validate, or there is no such time before the year
// 10000.
func (s Spec) Next(after time.Time) (time.Time, error) {
	at, err := s.next(after, after)
	if err != nil || s.kind != cronSpec {
		return at, err
	}
	p, err := s.plan()
	if err != nil {
		return time.Time{}, err
	}
	return at.In(p.zone), nil
}

// check is the error of a Spec that cannot be used here, an ErrInvalid.
func (s Spec) check() error {
	switch s.kind {
	case everySpec:
		switch {
		case s.every < minEvery:
			return invalidf("Every(%v): use at least 1s", s.every)
		case s.every > maxWait:
			return invalidf("Every(%v): use at most 100 years", s.every)
		case s.every%time.Millisecond != 0:
			return invalidf("Every(%v): use whole milliseconds", s.every)
		}
		return nil
	case cronSpec:
		_, err := s.plan()
		return err
	}
	return invalidf("the Spec is zero: make one with Cron, CronIn or Every")
}

// next is the first firing after a time, in UTC; only Every minds the anchor.
// It is the same on every machine that has the same time zones. An error is an
// ErrInvalid: the Spec cannot be used here, or there is no such time before
// the year 10000.
func (s Spec) next(after, anchor time.Time) (time.Time, error) {
	if s.kind != cronSpec {
		if err := s.check(); err != nil {
			return time.Time{}, err
		}
		at, err := cron.Grid(after, anchor, s.every)
		return at, s.wrong(err)
	}
	p, err := s.plan()
	if err != nil {
		return time.Time{}, err
	}
	at, err := p.line.Next(after, p.zone)
	return at, s.wrong(err)
}

// wrong makes an ErrInvalid that begins with the call that made the Spec.
func (s Spec) wrong(err error) error {
	switch {
	case err == nil:
		return nil
	case s.kind == everySpec:
		return invalidf("Every(%v): %w", s.every, err)
	case s.zone == "UTC":
		return invalidf("Cron(%.80q): %w", s.line, err)
	}
	return invalidf("CronIn(%.80q, %.80q): %w", s.zone, s.line, err)
}

// plan is what a crontab Spec comes to.
type plan struct {
	line *cron.Line
	zone *time.Location
}

// maxPlans bounds how many are remembered; with more, all are forgotten.
const maxPlans = 1000

// plans remembers the plans that were made, since a worker asks for the next
// time of the same schedules again and again, and a zone is a file. What could
// not be planned is not remembered.
var plans struct {
	sync.RWMutex
	of map[Spec]plan
}

func (s Spec) plan() (plan, error) {
	plans.RLock()
	p, ok := plans.of[s]
	plans.RUnlock()
	if ok {
		return p, nil
	}
	var err error
	if p.line, err = cron.Parse(s.line); err != nil {
		if _, isLine := cron.Parse(s.zone); isLine == nil {
			err = fmt.Errorf("the zone comes first: write CronIn(%.80q, %.80q)", s.line, s.zone)
		}
		return plan{}, s.wrong(err)
	}
	if p.zone, err = cron.Zone(s.zone); err != nil {
		return plan{}, s.wrong(err)
	}
	plans.Lock()
	defer plans.Unlock()
	if plans.of == nil || len(plans.of) >= maxPlans {
		plans.of = map[Spec]plan{}
	}
	plans.of[s] = p
	return p, nil
}
