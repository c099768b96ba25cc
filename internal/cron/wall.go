package cron

import (
	"math/bits"
	"time"
)

// lastYear is the last one that times are computed in.
const lastYear = 9999

// has tells whether n is in a set.
func has(set uint64, n int) bool { return set>>uint(n)&1 == 1 }

// from is the least of a set that is n or more, and above 63 if there is none.
func from(set uint64, n int) int { return n + bits.TrailingZeros64(set>>uint(n)) }

func daysIn(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// after is the first time of the line after a reading of a wall clock, as that
// clock shows it. Readings are times in UTC, whose clock never changes. false:
// there is none before the year 10000.
func (l *Line) after(wall time.Time) (time.Time, bool) {
	wall = wall.Truncate(time.Minute).Add(time.Minute)
	year, month, day := wall.Date()
	hour, minute := wall.Hour(), wall.Minute()
	for year <= lastYear {
		if has(l.months, int(month)) {
			last := daysIn(year, month)
			weekday := int(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Weekday())
			for ; day <= last; day++ {
				if l.onDay(day, weekday) {
					if h, m, ok := l.inDay(hour, minute); ok {
						return time.Date(year, month, day, h, m, 0, 0, time.UTC), true
					}
				}
				hour, minute = 0, 0
				weekday = (weekday + 1) % 7
			}
		}
		hour, minute = 0, 0
		day = 1
		if month++; month > time.December {
			month = time.January
			year++
		}
	}
	return time.Time{}, false
}

func (l *Line) onDay(day, weekday int) bool {
	if l.eitherDay {
		return has(l.days, day) || has(l.weekdays, weekday)
	}
	return has(l.days, day) && has(l.weekdays, weekday)
}

// inDay is the first time of a day that is not before hour and minute.
func (l *Line) inDay(hour, minute int) (h, m int, ok bool) {
	if has(l.hours, hour) {
		if m := from(l.minutes, minute); m < 60 {
			return hour, m, true
		}
	}
	if h := from(l.hours, hour+1); h < 24 {
		return h, from(l.minutes, 0), true
	}
	return 0, 0, false
}
