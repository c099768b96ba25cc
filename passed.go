package pawl

import (
	"fmt"
	"time"
)

// Times of ticks are whole milliseconds, as Redis has them.

// nextTick is the first tick after a time.
func nextTick(spec Spec, after, anchor int64) (int64, error) {
	t, err := spec.next(time.UnixMilli(after).UTC(), time.UnixMilli(anchor).UTC())
	if err != nil {
		return 0, err
	}
	if ms := ceilTime(t); ms > after {
		return ms, nil
	}
	return 0, fmt.Errorf("%s says that after %v comes %v", spec, time.UnixMilli(after).UTC(), t.UTC())
}

// maxPassed is how many ticks are walked over one by one. Those of a longer absence are
// jumped over, and not counted: a worker must not compute for a minute what nobody
// waits for.
const maxPassed = 100_000

// passedTicks are those from one that is due to now.
type passedTicks struct {
	newest []int64 // oldest first, as many as were asked for or there are
	count  int64
	next   int64 // the first one that has not passed
}

// passed is what has passed of a schedule whose next tick was first. That one counts,
// whether or not spec would have it so: it may have been another's.
func passed(spec Spec, first, now, anchor int64, keep int) (p passedTicks, err error) {
	if spec.kind == everySpec && first <= now {
		return passedGrid(spec, first, now, anchor, keep)
	}
	at := first
	for at <= now {
		if p.count == maxPassed {
			if at, err = nearTick(spec, at, now, anchor, keep); err != nil {
				return p, err
			}
		}
		p.count++
		if p.newest = append(p.newest, at); len(p.newest) > 2*keep {
			p.newest = append(p.newest[:0], p.newest[len(p.newest)-keep:]...)
		}
		if at, err = nextTick(spec, at, anchor); err != nil {
			return p, err
		}
	}
	p.newest = p.newest[max(0, len(p.newest)-keep):]
	p.next = at
	return p, nil
}

// passedGrid is passed of an Every, which needs no walk.
func passedGrid(spec Spec, first, now, anchor int64, keep int) (p passedTicks, err error) {
	p.newest, p.count = []int64{first}, 1
	if p.next, err = nextTick(spec, first, anchor); err != nil || p.next > now {
		return p, err
	}
	step := spec.every.Milliseconds()
	more := (now-p.next)/step + 1
	p.next += more * step
	p.count += more
	if more >= int64(keep) {
		p.newest = nil
	}
	for n := min(more, int64(keep)); n > 0; n-- {
		p.newest = append(p.newest, p.next-n*step)
	}
	p.newest = p.newest[max(0, len(p.newest)-keep):]
	return p, nil
}

// nearTick is a tick from which on there are at least keep to now, and not many more,
// or from if there are not.
func nearTick(spec Spec, from, now, anchor int64, keep int) (int64, error) {
	for back := time.Minute.Milliseconds(); now-back > from; back *= 2 {
		near, err := nextTick(spec, now-back, anchor)
		if err != nil {
			return 0, err
		}
		at, n := near, 0
		for ; at <= now && n < keep; n++ {
			if at, err = nextTick(spec, at, anchor); err != nil {
				return 0, err
			}
		}
		if n == keep {
			return near, nil
		}
	}
	return from, nil
}

// skipLate is how late MissedSkip still fires: as late as a worker that was busy, or a
// failover, makes it.
const skipLate = time.Minute

// maxMissed is how many jobs MissedAll makes at most.
const maxMissed = 100

// due are the ticks that a policy fires of those that passed, and how many it does not.
func (m Missed) due(p passedTicks, now int64) (fire []int64, missed int64) {
	switch keep := len(p.newest); {
	case m == MissedAll:
		fire = p.newest[max(0, keep-maxMissed):]
	case keep > 0 && (m == MissedOnce || now-p.newest[keep-1] <= skipLate.Milliseconds()):
		fire = p.newest[keep-1:]
	}
	return fire, p.count - int64(len(fire))
}

// keep is how many of those that passed a policy may fire.
func (m Missed) keep() int {
	if m == MissedAll {
		return maxMissed
	}
	return 1
}
