package pawl

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// State is where a job is.
type State string

// The states of a job.
const (
	StateReady   State = "ready"
	StateDelayed State = "delayed" // scheduled, snoozed or waiting for its retry
	StateRunning State = "running" // leased
	StateDead    State = "dead"
)

// JobInfo is a job as it stands in Redis.
type JobInfo struct {
	RawJob
	State    State
	Priority int
	Unique   string // its unique key; "" if it has none
	// LeaseUntil is when the lease of a running job ends unless it is renewed,
	// by the server's clock; zero if it does not run.
	LeaseUntil time.Time
}

// Counters only grow. Failed counts attempts, Dead counts jobs.
type Counters struct {
	Enqueued, Duplicate, Started, Done, Failed, Retried, Snoozed, Released int64
	// Crashed counts leases that ran out; Dropped, entries without a job that a
	// lease found and removed; Healed, jobs without a place that were put back.
	Crashed, Dead, Redriven, Discarded, Cancelled, Purged, Dropped, Healed int64
}

// Stats is one O(log n) look at a queue.
type Stats struct {
	Ready, Delayed, Running, Dead int64
	Paused                        bool
	// OldestReady is the age of the oldest job that could run now, since it
	// could: the latency a new job will see.
	OldestReady time.Duration
	Total       Counters
}

// Depth is what waits: ready and delayed.
func (s Stats) Depth() int64 { return s.Ready + s.Delayed }

// Stats looks at the queue. A queue that never had a job is all zeros.
func (q *Queue) Stats(ctx context.Context) (Stats, error) {
	if q.err != nil {
		return Stats{}, q.wrap("stats", q.err)
	}
	k := &q.keys
	parts, err := q.read(ctx, scriptStats, []string{k.jobs, k.held, k.due, k.prio, k.leases, k.dead, k.meta})
	if err != nil {
		return Stats{}, q.wrap("stats", err)
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
	s := Stats{Ready: number(1), Delayed: number(2), Running: number(3), Dead: number(4)}
	if oldest := number(5); oldest > 0 {
		s.OldestReady = max(0, time.Duration(now-oldest)*time.Millisecond)
	}
	t := &s.Total
	counters := map[string]*int64{
		"enqueued": &t.Enqueued, "duplicate": &t.Duplicate, "started": &t.Started, "done": &t.Done,
		"failed": &t.Failed, "retried": &t.Retried, "snoozed": &t.Snoozed, "released": &t.Released,
		"crashed": &t.Crashed, "dead": &t.Dead, "redriven": &t.Redriven, "discarded": &t.Discarded,
		"cancelled": &t.Cancelled, "purged": &t.Purged, "dropped": &t.Dropped, "healed": &t.Healed,
	}
	for i := 6; i+1 < len(parts); i += 2 {
		field, _ := parts[i].(string)
		if c := counters[strings.TrimPrefix(field, "n:")]; c != nil && strings.HasPrefix(field, "n:") {
			*c = number(i + 1)
		}
		s.Paused = s.Paused || field == "paused" && number(i+1) > now
	}
	return s, nil
}

// Get is a job as it stands, or ErrNotFound: never enqueued, done, or deleted.
func (q *Queue) Get(ctx context.Context, id ID) (JobInfo, error) {
	found, err := q.inspect(ctx, id)
	if err != nil {
		return JobInfo{}, q.wrap("get", err)
	}
	if found.state == "" {
		return JobInfo{}, q.wrap("get", fmt.Errorf("%w: %s", ErrNotFound, id))
	}
	rec, err := record.Decode([]byte(found.record))
	if err != nil {
		rec = &record.Record{Payload: []byte(found.record)}
	}
	info := JobInfo{RawJob: *rawJob(q.queueState, id, rec), State: found.state, Priority: rec.Priority}
	info.Attempt = rec.Attempts
	if rec.Unique != nil {
		info.Unique = rec.Unique.Key
	}
	if token, crashes, ok := found.lease(); ok {
		info.Crashes = max(info.Crashes, crashes)
		if found.state == StateRunning {
			info.Attempt++
			info.Run = (&leased{token: token}).fence()
			ms, _ := strconv.ParseInt(found.place, 10, 64)
			info.LeaseUntil = time.UnixMilli(ms)
		}
	}
	return info, nil
}

// Cancel ends a job. A waiting one is gone on return. A running one has its
// context cancelled with ErrCancelled within a third of its visibility timeout;
// if its handler returns nil all the same, it is done. ErrNotFound: no such job,
// or done. ErrState: dead; see DeadLetters.Delete.
func (q *Queue) Cancel(ctx context.Context, id ID) error {
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	found, err := q.inspect(ctx, id)
	if err != nil {
		return q.wrap("cancel", err)
	}
	k := &q.keys
	keys := []string{k.jobs, k.held, k.due, k.prio, k.leases, k.runs, k.index, k.meta, laneKey}
	if rec, err := record.Decode([]byte(found.record)); err == nil && rec.Unique != nil {
		// A job's unique key never changes, so reading it beforehand is safe.
		keys = append(keys, k.unique(rec.Unique.Key))
	}
	word := "missing"
	if found.id != "" {
		if word, err = q.call(ctx, scriptCancel, keys, found.id); err != nil {
			return q.wrap("cancel", err)
		}
	}
	switch word {
	case "dead":
		return q.wrap("cancel", fmt.Errorf("%w: %s is dead; Dead().Delete removes it", ErrState, id))
	case "missing":
		return q.wrap("cancel", fmt.Errorf("%w: %s", ErrNotFound, id))
	}
	return nil
}

// found is what inspect.lua says of a job.
type found struct {
	id     string // in Redis; "" if it is no job's id
	state  State  // "" if there is none
	record string
	place  string // lease deadline, due time, or entry of the dead-letter stream
	run    string
	now    time.Time
}

// lease reads the run entry: "token|crashes|flags|before".
func (f *found) lease() (token string, crashes int, ok bool) {
	parts := strings.Split(f.run, "|")
	if len(parts) != 4 {
		return "", 0, false
	}
	crashes, err := strconv.Atoi(parts[1])
	return parts[0], crashes, err == nil
}

func (q *queueState) inspect(ctx context.Context, id ID) (found, error) {
	if q.err != nil {
		return found{}, q.err
	}
	text, ok := jobid.Text(id)
	if !ok {
		return found{}, nil
	}
	k := &q.keys
	parts, err := q.read(ctx, scriptInspect, []string{k.jobs, k.held, k.due, k.prio, k.leases, k.runs, k.dead, k.index}, text)
	if err != nil || len(parts) < 5 {
		return found{}, err
	}
	word := func(i int) string { s, _ := parts[i].(string); return s }
	f := found{id: text, state: State(word(0)), record: word(1), place: word(2), run: word(3)}
	ms, _ := strconv.ParseInt(word(4), 10, 64)
	f.now = time.UnixMilli(ms)
	switch f.state {
	case "missing":
		f.state = ""
	case "lost":
		f.state = StateReady // the workers put it back; see lua/lib/heal.lua
	}
	return f, nil
}

// read calls a script that writes nothing.
func (q *queueState) read(ctx context.Context, s *script, keys []string, args ...any) ([]any, error) {
	return await(ctx, func(ctx context.Context) ([]any, error) {
		c := &call{script: s, keys: keys, args: args}
		attempt(ctx, q.client.rdb, c)
		if c.err != nil {
			return nil, c.err
		}
		parts, ok := c.reply.([]any)
		if !ok {
			return nil, fmt.Errorf("script %s answered %T", s.name, c.reply)
		}
		return parts, nil
	})
}
