package pawl

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Stats is one O(log n) look at a queue, all of it in one moment.
type Stats struct {
	Ready, Delayed, Running, Parked, Dead int64 // jobs, by State
	// Done is jobs that are over and kept (Retain), cancelled and discarded ones too.
	// Total.Done counts all that were ever done.
	Done   int64
	Paused bool
	// PausedUntil is when a pause ends by itself, by the server's clock; zero if
	// the queue is not paused, or is until it is resumed.
	PausedUntil time.Time
	// OldestReady is the age of the oldest job that could run now, since it
	// could: the latency a new job will see. 0 if no job is ready.
	OldestReady time.Duration
	// LastCanary is when a canary last went through, by the server's clock; zero if
	// none ever has. It stays when the canary is removed. See Queue.Canary.
	LastCanary time.Time
	// CanaryEvery is the period of the queue's canary, 0 if it has none, or if a newer
	// version of pawl has set it. CanaryAge is for how long none has gone through, both
	// ends by the server's clock: since the last one, or since the canary was set if that
	// is later; 0 if there is none. Alert on CanaryAge > 3*CanaryEvery, which is never
	// true of a queue without one, nor at once of one that has just been set.
	CanaryEvery, CanaryAge time.Duration
	// Workers is how many workers that serve the queue have been heard of within the
	// last minute; see Client.Workers. One that stops is not counted, one that died is
	// for a minute.
	Workers int64
	Total   Counters
}

// Depth is what waits: ready, delayed and parked.
func (s Stats) Depth() int64 { return s.Ready + s.Delayed + s.Parked }

// Stats looks at the queue. A queue that never had a job is all zeros.
func (q *Queue) Stats(ctx context.Context) (Stats, error) {
	if q.err != nil {
		return Stats{}, q.wrap("stats", q.err)
	}
	parts, err := q.read(ctx, scriptStats, q.keys.stats(), canaryName)
	if err != nil {
		return Stats{}, q.wrap("stats", err)
	}
	s, err := readStats(parts)
	return s, q.wrap("stats", err)
}

// statsWords is how many words of the script's answer come before the fields of meta.
const statsWords = 11

// readStats reads what the script answered.
func readStats(parts []any) (Stats, error) {
	if len(parts) < statsWords {
		return Stats{}, fmt.Errorf("script stats answered %d words", len(parts))
	}
	word := func(i int) string { s, _ := parts[i].(string); return s }
	number := func(i int) int64 {
		if n, ok := parts[i].(int64); ok {
			return n
		}
		n, _ := strconv.ParseInt(word(i), 10, 64)
		return n
	}
	now := number(0)
	s := Stats{Ready: number(1), Delayed: number(2), Running: number(3), Parked: number(4), Dead: number(5), Done: number(7),
		Workers: number(8), OldestReady: age(now, number(6))}
	for i := statsWords; i+1 < len(parts); i += 2 {
		s.Total.set(word(i), word(i+1))
		if ms := number(i + 1); word(i) == "canary" && ms > 0 {
			s.LastCanary = time.UnixMilli(ms).UTC()
		}
		if until := number(i + 1); word(i) == "paused" && until > now {
			s.Paused = true
			if until < pausedForever {
				s.PausedUntil = time.UnixMilli(until)
			}
		}
	}
	s.readCanary(now, word(9), word(10))
	return s, nil
}

// age is how long ago a moment was, both in ms, and 0 of none. It is kept within
// bounds, since a stored one may have been edited.
func age(now, ms int64) time.Duration {
	if ms <= 0 {
		return 0
	}
	return time.Duration(min(max(0, now-ms), maxWait.Milliseconds())) * time.Millisecond
}

// readCanary reads the schedule of the canary. LastCanary is known.
func (s *Stats) readCanary(now int64, definition, state string) {
	d, err := parseDefinition(definition)
	if err != nil {
		return
	}
	spec, err := parseSpec(d.spec)
	if err != nil || spec.kind != everySpec {
		return
	}
	at, _ := parseScheduleState(state) // one that was lost is mended soon
	since := at.anchor
	if !s.LastCanary.IsZero() {
		since = max(since, s.LastCanary.UnixMilli())
	}
	s.CanaryEvery, s.CanaryAge = spec.every, age(now, since)
}
