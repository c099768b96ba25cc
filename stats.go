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
	// none ever has. See Queue.Canary.
	LastCanary time.Time
	Total      Counters
}

// Depth is what waits: ready, delayed and parked.
func (s Stats) Depth() int64 { return s.Ready + s.Delayed + s.Parked }

// Stats looks at the queue. A queue that never had a job is all zeros.
func (q *Queue) Stats(ctx context.Context) (Stats, error) {
	if q.err != nil {
		return Stats{}, q.wrap("stats", q.err)
	}
	k := &q.keys
	parts, err := q.read(ctx, scriptStats, []string{k.jobs, k.held, k.due, k.prio, k.leases, k.dead, k.meta, k.doneAt})
	if err != nil {
		return Stats{}, q.wrap("stats", err)
	}
	if len(parts) < 8 {
		return Stats{}, q.wrap("stats", fmt.Errorf("script stats answered %d words", len(parts)))
	}
	number := func(i int) int64 {
		if n, ok := parts[i].(int64); ok {
			return n
		}
		s, _ := parts[i].(string)
		n, _ := strconv.ParseInt(s, 10, 64)
		return n
	}
	now := number(0)
	s := Stats{Ready: number(1), Delayed: number(2), Running: number(3), Parked: number(4), Dead: number(5), Done: number(7)}
	if oldest := number(6); oldest > 0 {
		age := min(max(0, now-oldest), maxWait.Milliseconds()) // a score may have been edited
		s.OldestReady = time.Duration(age) * time.Millisecond
	}
	for i := 8; i+1 < len(parts); i += 2 {
		field, _ := parts[i].(string)
		value, _ := parts[i+1].(string)
		s.Total.set(field, value)
		if ms := number(i + 1); field == "canary" && ms > 0 {
			s.LastCanary = time.UnixMilli(ms).UTC()
		}
		if until := number(i + 1); field == "paused" && until > now {
			s.Paused = true
			if until < pausedForever {
				s.PausedUntil = time.UnixMilli(until)
			}
		}
	}
	return s, nil
}
