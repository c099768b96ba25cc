package pawl

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawlq/pawl/internal/record"
)

// Jobs that are over and kept (Retain): what a run leaves, and how it goes again.

// keptFor is for how many ms a job is kept once it is over; 0: not at all. What another
// producer wrote has not been checked.
func keptFor(rec *record.Record) int64 { return ceilMillis(min(max(rec.Retain, 0), maxWait)) }

// seal has what a job leaves go with its end: its record, if that is kept, and what
// follows it. With a retry goes how it ended, should it turn out to be over, since
// another waits behind it.
func (o *outcome) seal() {
	if o.verb == verbRetry && o.run.rec.Unique != nil {
		o.left = leftBy(o.run.rec, StateDiscarded, o.run.feed.now())
	}
	kept := keptFor(o.run.rec) > 0
	if o.verb != verbSettle || !kept && len(o.then) == 0 {
		return
	}
	if o.verb = verbFinish; !kept {
		return
	}
	state := StateDone // also if it was skipped
	if s := State(o.counter); s == StateCancelled || s == StateDiscarded {
		state = s
	}
	rec := *o.run.rec
	rec.Then = nil // it has followed, or never will
	rec.End = &record.End{State: string(state), At: o.run.feed.now().UnixMilli(), Result: o.result, HasResult: o.result != nil}
	o.record = rec.Append(nil)
}

// leftBy is what a script is told that has the record of a job itself: for how long it
// is kept, and how it ended; "" if it is not.
func leftBy(rec *record.Record, state State, now time.Time) string {
	ms := keptFor(rec)
	if ms == 0 {
		return ""
	}
	end := record.End{State: string(state), At: now.UnixMilli()}
	return fmt.Sprintf("%d %s", ms, end.Field())
}

// told marks the death of a job that somebody may wait for.
func (r *run) told() string {
	if keptFor(r.rec) == 0 {
		return ""
	}
	return "!"
}

// over reads how a job ended. f.place says until when it is kept, and so, by the
// server's clock, when that was; what the worker noted was its guess of the time.
func (info *JobInfo) over(rec *record.Record) {
	if e := rec.End; e != nil {
		if s := State(e.State); s == StateCancelled || s == StateDiscarded {
			info.State = s
		}
		info.DoneAt = time.UnixMilli(e.At)
		if e.HasResult {
			info.Result = append([]byte{}, e.Result...)
		}
	}
	if till, err := strconv.ParseFloat(info.place, 64); err == nil && keptFor(rec) > 0 {
		info.DoneAt = time.UnixMilli(int64(till) - keptFor(rec))
	}
}

// forget removes jobs that are over, and returns how many.
func (q *queueState) forget(ctx context.Context, jobs []JobInfo) (int, error) {
	args := make([]any, len(jobs))
	for i, j := range jobs {
		args[i] = j.text
	}
	marks, err := q.call(ctx, scriptForget, []string{q.keys.done, q.keys.doneAt, laneKey}, args...)
	return strings.Count(marks, "k"), err
}

// trim lets finished jobs go whose time is over, where no other ends that would see to
// it. A call that fails waits for the next time.
func (q *queueState) trim(ctx context.Context) {
	for ctx.Err() == nil {
		c := &call{script: scriptTrim, keys: []string{q.keys.done, q.keys.doneAt}}
		attempt(context.Background(), q.client.rdb, c)
		if text, err := c.text(); c.err != nil || err != nil || !strings.HasSuffix(text, " 1") {
			return
		}
	}
}
