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
	StateReady   State = "ready"   // due; or its lease ran out, and nobody took it yet
	StateDelayed State = "delayed" // scheduled, snoozed or waiting for its retry
	StateRunning State = "running" // leased
	StateParked  State = "parked"  // behind the job that holds its Unique key; see RunLatestAfter
	StateDead    State = "dead"

	// Over, and kept: only of a job with Retain.

	StateDone      State = "done"
	StateCancelled State = "cancelled"
	StateDiscarded State = "discarded" // by Discard, or in favour of a newer one; see RunLatestAfter
)

// JobInfo is a job as it stands in Redis, in one moment. Attempt is the attempt
// that runs; of a job that does not run, how many have failed. MaxAttempts is
// what Enqueue was given, and 0 if it was given nothing: then the type, the
// handler or the worker decides where the job runs.
type JobInfo struct {
	RawJob
	State       State
	Priority    int
	Unique      string // its unique key; "" if it has none
	Idempotency string // the key of its Idempotency; "" if it has none

	// Cancelling is whether Cancel was called while it ran, and has not ended it yet.
	Cancelling bool

	// For a running job; zero otherwise.

	Worker     string    // its worker's name; "" if that has not been heard of for a minute
	StartedAt  time.Time // when it was leased, by the server's clock
	LeaseUntil time.Time // when its lease ends unless it is renewed, by the server's clock
	Percent    float64   // what its handler told RawJob.Progress; before it does, what a run that crashed had told; 0 once the run has ended
	Note       string

	// For a job that is over and kept; zero otherwise.

	DoneAt time.Time // when it ended, in whichever way, by the server's clock
	Result []byte    // as Config.Codec made it of SetResult's value; nil if there is none

	place string // of a dead job, its entry
	text  string // its id in Redis, where a foreign entry's is no ID
}

// Get is a job as it stands, or ErrNotFound: never enqueued; or over, not dead, and not
// kept (Retain), or no longer.
func (q *Queue) Get(ctx context.Context, id ID) (JobInfo, error) {
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	found, err := q.inspect(ctx, id)
	if err == nil && found.state == "" {
		err = fmt.Errorf("%w: %s", ErrNotFound, id)
	}
	if err != nil {
		return JobInfo{}, q.wrap("get", err)
	}
	info := found.info(q.queueState)
	if err := q.nameWorkers(ctx, found.now, []*JobInfo{&info}); err != nil {
		return JobInfo{}, q.wrap("get", err)
	}
	return info, nil
}

// found is a job as the scripts inspect and list see it.
type found struct {
	id     string // in Redis; "" if it is no job's id
	state  State  // "" if there is none
	record string
	place  string // lease deadline, due time, entry of the dead-letter stream, or until when it is kept
	run    string
	now    time.Time
}

// info reads what was found. The worker's name is yet to be looked up.
func (f *found) info(q *queueState) JobInfo {
	id, _ := jobid.FromText(f.id)
	rec, err := record.Decode([]byte(f.record))
	if err != nil {
		rec = &record.Record{Payload: []byte(f.record)}
	}
	info := JobInfo{RawJob: *rawJob(q, id, rec), State: f.state, Priority: rec.Priority, place: f.place, text: f.id}
	info.Attempt = rec.Attempts
	if rec.Unique != nil {
		info.Unique = rec.Unique.Key
	}
	info.Idempotency = idempotencyOf(rec)
	if f.state == StateDone {
		info.over(rec)
	}
	token, crashes, flags, said, ok := f.lease()
	if !ok {
		return info
	}
	info.Crashes, info.Cancelling = max(info.Crashes, crashes), strings.Contains(flags, "c")
	if f.state == StateRunning {
		info.Attempt++
		info.Run = fence(token)
		info.StartedAt = time.UnixMicro(info.Run)
		info.Worker = workerTag(token)
		ms, _ := strconv.ParseInt(f.place, 10, 64)
		info.LeaseUntil = time.UnixMilli(ms)
		info.Percent, info.Note = said.Percent, said.Note
	}
	return info
}

// lease reads the run entry: "token|crashes|flags|before", then " percent note".
func (f *found) lease() (token string, crashes int, flags string, progress remark, ok bool) {
	parts := strings.Split(f.run, "|")
	if len(parts) != 4 {
		return "", 0, "", remark{}, false
	}
	crashes, err := strconv.Atoi(parts[1])
	if _, rest, more := strings.Cut(parts[3], " "); more {
		progress = readProgress(rest)
	}
	return parts[0], crashes, parts[2], progress, err == nil
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
	parts, err := q.read(ctx, scriptInspect, []string{k.jobs, k.held, k.due, k.prio, k.leases, k.runs, k.dead, k.index, k.done, k.doneAt}, text)
	if err == nil && len(parts) != 5 {
		err = fmt.Errorf("script inspect answered %d words", len(parts))
	}
	if err != nil {
		return found{}, err
	}
	word := func(i int) string { s, _ := parts[i].(string); return s }
	f := found{id: text, state: State(word(0)), record: word(1), place: word(2), run: word(3)}
	ms, _ := strconv.ParseInt(word(4), 10, 64)
	f.now = time.UnixMilli(ms)
	switch f.state {
	case StateReady, StateDelayed, StateRunning, StateParked, StateDead, StateDone:
	case "missing":
		f.state = ""
	case "lost":
		f.state = StateReady // the workers put it back; see lua/lib/heal.lua
	default: // which is not to be taken for a job that is over
		return found{}, fmt.Errorf("script inspect answered %q", word(0))
	}
	return f, nil
}
