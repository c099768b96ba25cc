package pawl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Minute is what a queue counted in one minute.
type Minute struct {
	At time.Time // when it began, by the server's clock; UTC
	Counters
}

// minutesKept is for how many minutes Redis knows the counters.
const minutesKept = 24 * 60

// Minutes are the counters of each minute that began at from or later and before
// to, oldest first, of the last 24 hours: what is asked for beyond is left out.
// A zero from is 24 hours ago, a zero to is now; the last minute may be the one
// that is not over. A minute in which nothing happened is there, all zeros; so
// is each minute of a queue that never had a job. It reads some 150 KB at most.
func (q *Queue) Minutes(ctx context.Context, from, to time.Time) ([]Minute, error) {
	if q.err != nil {
		return nil, q.wrap("minutes", q.err)
	}
	parts, err := q.read(ctx, scriptMinutes, []string{q.keys.meta, q.keys.minutes})
	if err != nil {
		return nil, q.wrap("minutes", err)
	}
	ms, marks := readMarks(parts)
	if ms <= 0 {
		return nil, q.wrap("minutes", fmt.Errorf("script minutes answered %d words, and no time", len(parts)))
	}
	last := ms / 60_000
	first := last - minutesKept + 1
	if !from.IsZero() {
		first = max(first, (ceilTime(from)+59_999)/60_000)
	}
	if !to.IsZero() {
		last = min(last, (ceilTime(to)+59_999)/60_000-1)
	}
	var minutes []Minute
	for m := first; m <= last; m++ {
		minute := Minute{At: time.UnixMilli(m * 60_000).UTC()}
		// What was counted from one mark to the next was counted in the minute
		// of the first: the next call of a later one would have left a mark.
		if i, ok := slices.BinarySearchFunc(marks, m, func(k minuteMark, m int64) int { return cmp.Compare(k.minute, m) }); ok && i+1 < len(marks) {
			minute.Counters = marks[i+1].counts.since(&marks[i].counts)
		}
		minutes = append(minutes, minute)
	}
	return minutes, nil
}

// minuteMark is how the counters stood before the first call of a minute.
type minuteMark struct {
	minute int64
	counts Counters
}

// readMarks reads the answer of minutes.lua; nowMs is 0 if it makes no sense. The
// last mark is the present.
func readMarks(parts []any) (nowMs int64, marks []minuteMark) {
	text := func(i int) string { s, _ := parts[i].(string); return s }
	if len(parts) == 0 {
		return 0, nil
	}
	nowMs, _ = strconv.ParseInt(text(0), 10, 64)
	var now Counters
	i := 1
	for ; i+1 < len(parts) && text(i) != ""; i += 2 {
		now.set(text(i), text(i+1))
	}
	for i++; i+1 < len(parts); i += 2 {
		words := strings.Fields(text(i + 1))
		if text(i) == "now" || len(words) < 2 {
			continue
		}
		var mark minuteMark
		mark.minute, _ = strconv.ParseInt(words[0], 10, 64)
		for n, p := range mark.counts.fields() {
			if n+1 < len(words) {
				*p, _ = strconv.ParseInt(words[n+1], 10, 64)
			}
		}
		if mark.minute <= nowMs/60_000 { // a clock that went back has others
			marks = append(marks, mark)
		}
	}
	slices.SortFunc(marks, func(a, b minuteMark) int { return cmp.Compare(a.minute, b.minute) })
	return nowMs, append(marks, minuteMark{nowMs/60_000 + 1, now})
}
