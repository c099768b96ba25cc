package cron

import (
	"errors"
	"fmt"
	"time"
)

// farthest is more than any clock of the world is from UTC.
const farthest = 24 * time.Hour

var (
	firstTime = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	endOfTime = time.Date(lastYear+1, 1, 1, 0, 0, 0, 0, time.UTC)
)

// errNever: the years are over.
var errNever = errors.New("there is no such time before the year 10000")

// inTime is the error of a time whose year has not four digits, with which
// nothing can be computed exactly.
func inTime(t time.Time) error {
	if t.Before(firstTime) || !t.Before(endOfTime) {
		return errors.New("the time is not in the years 1 to 9999")
	}
	return nil
}

// Next is the first firing of the line after t, in UTC.
//
// If the hour is "*" (or "*/1"), the line fires whenever the clock of the zone
// shows one of its times: every real occurrence, so a time that comes twice
// fires twice, and one that is skipped does not. "*/30 * * * *" fires every
// half hour whatever the clock does.
//
// Else each of its times fires once: at the first moment at which the clock
// shows that time or a later one. So a time that is skipped fires when the gap
// ends, together with all others of that gap and with what is due at that
// moment anyway; and of a time that comes twice the first fires.
//
// That is what cron(8) of cronie promises: jobs at a specific time, and those
// that run less often than every hour, are looked after when the clock
// changes; all others are scheduled normally. There are two differences. "*/2"
// as an hour is such a job here, as that page says, while cronie's code takes
// anything that begins with a star for a wildcard. And a change of more than
// three hours, for cronie a correction of the clock, is no other case: the day
// that Samoa left out in 2011 fires when it has been skipped.
func (l *Line) Next(t time.Time, zone *time.Location) (time.Time, error) {
	if err := inTime(t); err != nil {
		return time.Time{}, err
	}
	next := l.nextFixed
	if l.everyHour {
		next = l.nextReal
	}
	at, ok := next(t.UTC(), zone)
	if !ok || inTime(at) != nil {
		return time.Time{}, errNever
	}
	return at, nil
}

// nextReal is the first moment after t at which the clock shows a time of the
// line.
func (l *Line) nextReal(t time.Time, zone *time.Location) (time.Time, bool) {
	offset, until := span(t, zone)
	wall := t.Add(offset)
	for {
		due, ok := l.after(wall)
		if !ok {
			return time.Time{}, false
		}
		if at := due.Add(-offset); until.IsZero() || at.Before(until) {
			return at, true
		}
		t = until
		offset, until = span(t, zone)
		wall = t.Add(offset - 1) // what the clock shows at t itself counts
	}
}

// nextFixed is the first moment after t at which the clock has reached a time
// of the line for the first time. What it has reached by t is known by its
// highest reading so far: a clock that was put back shows again what it has
// shown, until it is beyond that.
func (l *Line) nextFixed(t time.Time, zone *time.Location) (time.Time, bool) {
	due, ok := l.after(highest(t, zone))
	if !ok {
		return time.Time{}, false
	}
	at := t
	if earliest := due.Add(-farthest); at.Before(earliest) {
		at = earliest
	}
	for {
		offset, until := span(at, zone)
		reached := due.Add(-offset)
		if until.IsZero() || reached.Before(until) {
			if reached.Before(at) { // in the gap that ended at that moment
				return at, true
			}
			return reached, true
		}
		at = until
	}
}

// highest is the highest reading of the zone's clock up to t. Two clocks are
// never further apart than two days, so nothing before that matters.
func highest(t time.Time, zone *time.Location) time.Time {
	var high time.Time
	for at := t.Add(-2 * farthest); ; {
		offset, until := span(at, zone)
		last := t
		if over := !until.IsZero() && !until.After(t); over {
			last = until.Add(-1) // the moment of the change has the next offset
		}
		if reading := last.Add(offset); high.IsZero() || reading.After(high) {
			high = reading
		}
		if last.Equal(t) {
			return high
		}
		at = until
	}
}

// span is how far the zone's clock is ahead of UTC at t, and a later moment
// until which it stays so; zero is for ever. It may stay so for longer.
func span(t time.Time, zone *time.Location) (offset time.Duration, until time.Time) {
	local := t.In(zone)
	_, seconds := local.Zone()
	_, end := local.ZoneBounds()
	if end = end.UTC(); !end.IsZero() && !end.After(t) {
		// For the last day of a leap year Go may answer with the midnight
		// before it, as if the year had 365 days (go.dev/issue/81583). The
		// offset holds to the end of the year, in UTC.
		end = time.Date(t.Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Duration(seconds) * time.Second, end
}

// Grid is the first time after t of those that lie a whole number of steps
// before or after the anchor, in UTC. The step is in whole milliseconds, and
// more than 0.
func Grid(t, anchor time.Time, step time.Duration) (time.Time, error) {
	if step < time.Millisecond || step%time.Millisecond != 0 {
		return time.Time{}, fmt.Errorf("a step of %v: use whole milliseconds", step)
	}
	for _, given := range []time.Time{t, anchor} {
		if err := inTime(given); err != nil {
			return time.Time{}, err
		}
	}
	// In milliseconds, since the nanoseconds between two times may be more
	// than a Duration holds. What the anchor has beyond them, all times have.
	const ms = int64(time.Millisecond)
	rest := int64(anchor.Nanosecond()) % ms
	distance := t.UnixMilli() - anchor.UnixMilli()
	if int64(t.Nanosecond())%ms < rest {
		distance--
	}
	steps := floor(distance, step.Milliseconds()) + 1
	at := time.UnixMilli(anchor.UnixMilli() + steps*step.Milliseconds()).Add(time.Duration(rest)).UTC()
	if inTime(at) != nil {
		return time.Time{}, errNever
	}
	return at, nil
}

// floor is n/d rounded down, where Go rounds towards 0.
func floor(n, d int64) int64 {
	if n%d < 0 {
		return n/d - 1
	}
	return n / d
}
