package pawl

import (
	"context"
	"time"
)

// canaryName is the id of a queue's canary among the schedules, and the kind of its jobs.
const canaryName = reserved + "canary"

// Canary sends a job of no effect through the queue every so often, from 1 s up, by a
// schedule of the queue, which any worker fires and runs by itself: nothing is to be
// registered. That one went through lately proves that enqueue, lease, run and
// acknowledgement work from end to end. Alert when Stats fails, or its CanaryAge is above
// three times its CanaryEvery. 0 removes it, and the alert is off.
// Calling it again with the same period changes nothing, so call it at every start.
// Another period does not begin anew: a much shorter one may alert until its first.
//
// Its jobs are of the kind "pawl:canary": hooks, counters and List know them, and one
// waits or runs at a time. They take their turn as others do, so the canary is late in a
// queue that is behind. A worker of a build that does not know canaries puts them
// back for one that does. Errors as Schedule's; of a queue without one, 0 is none.
func (q *Queue) Canary(ctx context.Context, every time.Duration) error {
	return q.wrap("canary", q.canary(ctx, every))
}

func (q *queueState) canary(ctx context.Context, every time.Duration) error {
	if q.err != nil {
		return q.err
	}
	if every == 0 {
		return q.editSchedules(ctx, []string{canaryName}, func(seen seenSchedule, _ int64) (edit, bool, error) {
			return seen.removal(), seen.there(), nil
		})
	}
	s := Schedule{ID: canaryName, When: Every(every), Overlap: OverlapSkip}
	if err := s.When.check(); err != nil {
		return err
	}
	d := q.defined(s, Raw{Name: canaryName}, settings{unique: &Unique{Key: overlapKey(canaryName)}})
	return q.register(ctx, map[string]definition{canaryName: d})
}

// runCanary is the handler of canaries. What matters is that its outcome is stored.
func runCanary(context.Context, *RawJob) error { return nil }

// canaryCounter is the word by which the script settle notes the time, and counts a job
// that is done.
const canaryCounter = "canary"
