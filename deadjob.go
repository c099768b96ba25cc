package pawl

import (
	"time"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// DeadReason says which rule ended the job.
type DeadReason string

// The reasons for which a job dies.
const (
	ReasonExhausted   DeadReason = "exhausted"   // attempts spent
	ReasonPermanent   DeadReason = "permanent"   // the handler returned Permanent, or its RetryFunc gave up
	ReasonUndecodable DeadReason = "undecodable" // payload does not fit the type
	ReasonCrashed     DeadReason = "crashed"     // took MaxCrashes workers down
	ReasonCorrupt     DeadReason = "corrupt"     // the stored record cannot be read; raw bytes kept
	ReasonExpired     DeadReason = "expired"     // ExpireIn
	ReasonUnhandled   DeadReason = "unhandled"   // no worker knew its kind for UnknownKindGrace
)

// AttemptError is one failed attempt.
type AttemptError struct {
	Attempt int           // from 1
	At      time.Time     // when it failed, by the server's clock, to the millisecond
	Took    time.Duration // from the start of the run
	Error   string        // cut at 1 KiB
}

// DeadJob is a post-mortem: enough to find the cause and to run it again.
type DeadJob struct {
	// RawJob is the job as its last run saw it; Attempt is how many failed. Of a
	// corrupt job only ID, Queue and Payload, the raw bytes, are known.
	RawJob
	Reason DeadReason
	Error  string // of the last attempt, cut at 4 KiB
	// Stack is where it panicked; for an error, its "%+v" where that says more
	// than Error. Cut at 16 KiB.
	Stack         string
	Errors        []AttemptError // the last 5, oldest first
	FirstFailedAt time.Time      // zero if no attempt failed
	DiedAt        time.Time      // by the server's clock, to the millisecond: that of Position
	Worker        string         // that buried it; of a crashed job, not the one that ran it
	Build         string         // version and revision of that worker's program
	Unique        string         // its unique key; "" if it has none
	Idempotency   string         // the key of its Idempotency; "" if it has none
	Percent       float64        // what its last run told RawJob.Progress, or a run before it that crashed
	Note          string
	Position      string // of the post-mortem among those of the queue, by death
}

// deadJob reads a post-mortem; one that cannot be read is itself corrupt.
func deadJob(q *queueState, idText, position, body string) DeadJob {
	id, _ := jobid.FromText(idText)
	rec, err := record.Decode([]byte(body))
	if err != nil {
		rec = &record.Record{Payload: []byte(body), Dead: &record.PostMortem{Reason: string(ReasonCorrupt), Error: err.Error()}}
	}
	d := DeadJob{RawJob: *rawJob(q, id, rec), Position: position}
	d.Attempt = rec.Attempts
	if rec.Unique != nil {
		d.Unique = rec.Unique.Key
	}
	d.Idempotency = idempotencyOf(rec)
	if rec.FirstFailedAt > 0 {
		d.FirstFailedAt = time.UnixMilli(rec.FirstFailedAt)
	}
	for _, f := range rec.Failures {
		d.Errors = append(d.Errors, AttemptError{Attempt: f.Attempt, At: time.UnixMilli(f.At), Took: f.Took, Error: f.Text})
	}
	if p := rec.Dead; p != nil {
		d.Reason, d.Error, d.Stack, d.Worker, d.Build = DeadReason(p.Reason), p.Error, p.Stack, p.Worker, p.Build
		d.DiedAt = time.UnixMilli(p.At)
		d.MaxAttempts = p.MaxAttempts
	}
	if p := rec.Progress; p != nil {
		d.Percent, d.Note = p.Percent, p.Note
	}
	// What the worker noted was its guess of the time.
	if ms, _, ok := splitPosition(position); ok {
		d.DiedAt = time.UnixMilli(int64(ms))
	}
	return d
}

// revived is the record of a dead job with fresh attempts and crashes. Its id
// and history stay. now is the server's time, from which ExpireIn counts anew.
func revived(rec *record.Record, now time.Time) *record.Record {
	r := *rec
	r.LongHead, r.Started = true, false
	r.Progress = nil
	r.Dead, r.Attempts, r.Crashes, r.Snoozes = nil, 0, 0, 0
	r.UnknownSince, r.PutBacks = 0, 0
	r.Redrives++
	r.Since = now.UnixMilli()
	return &r
}
