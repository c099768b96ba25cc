package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

func (a *app) jobCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "job <queue> <id>",
		Short: "one job",
		Long: `Shows where a job is and all that is known of it; of a dead one its post-mortem. A
job that is over is known only if it was enqueued with Retain, and until that time
is over.`,
		Example: `pawl job emails 01977420-dc7b-71c8-8001-23456789abcd
pawl job emails 01977420-dc7b-71c8-8001-23456789abcd --json | jq '.payload | fromjson'`,
		Args:              arguments("queue id"),
		ValidArgsFunction: a.completeQueue,
		RunE: a.onJob(func(ctx context.Context, s *session, q *pawl.Queue, id pawl.ID) error {
			j, err := q.Get(ctx, id)
			if isMissing(err) {
				if err := s.exists(ctx, q); err != nil {
					return err
				}
				return notFoundf("there is no job %s in queue %s: it never was, or it is over and not kept (Retain)", id, q.Name())
			}
			if err != nil {
				return err
			}
			if j.State == pawl.StateDead {
				if d, err := q.Dead().Get(ctx, id); err == nil {
					return a.showDead(s, d)
				}
			}
			return a.showWhole(s, j)
		}),
	}
}

// showWhole shows all of a job.
func (a *app) showWhole(s *session, j pawl.JobInfo) error {
	if a.asJSON() {
		return a.line(jobJSON(j))
	}
	var f facts
	state := string(j.State)
	if j.Cancelling {
		state += ", to be cancelled"
	}
	s.common(&f, &j.RawJob, state)
	f.add("when", s.moves(j))
	if !j.DueAt.IsZero() {
		f.add("due", s.dated(j.DueAt))
	}
	if j.Priority > 0 {
		f.add("priority", fmt.Sprint(j.Priority))
	}
	f.add("unique key", j.Unique)
	f.add("idempotency key", j.Idempotency)
	f.add("worker", j.Worker)
	if j.State == pawl.StateRunning {
		f.add("started", s.dated(j.StartedAt))
		f.add("lease until", s.dated(j.LeaseUntil))
		f.add("progress", told(j.Percent, j.Note))
	}
	if !j.DoneAt.IsZero() {
		f.add("ended", s.dated(j.DoneAt))
	}
	f.text("last error", j.LastError)
	content(&f, &j.RawJob)
	if j.Result != nil {
		f.add("result", whole(j.Result))
	}
	return f.write(a.out)
}

// common are the facts of a job, dead or alive.
func (s *session) common(f *facts, j *pawl.RawJob, state string) {
	f.add("id", j.ID.String())
	f.add("queue", j.Queue)
	f.add("kind", j.Kind)
	f.add("state", state)
	attempt := fmt.Sprint(j.Attempt)
	if j.MaxAttempts > 0 {
		attempt += fmt.Sprintf(" of %d", j.MaxAttempts)
	}
	f.add("attempt", attempt)
	if j.Crashes > 0 {
		f.add("crashes", fmt.Sprint(j.Crashes))
	}
	if j.Redrives > 0 {
		f.add("redrives", fmt.Sprint(j.Redrives))
	}
	if !j.EnqueuedAt.IsZero() {
		f.add("enqueued", s.dated(j.EnqueuedAt))
	}
	if j.Schedule != "" {
		f.add("schedule", j.Schedule+", for "+s.dated(j.ScheduledAt))
	}
}

// content is what a job carries.
func content(f *facts, j *pawl.RawJob) {
	for _, key := range slices.Sorted(maps.Keys(j.Headers)) {
		f.add("header", key+": "+j.Headers[key])
	}
	f.add("payload", whole(j.Payload)+" ("+size(len(j.Payload))+")")
}

// shownBytes is how much of a payload is shown as text.
const shownBytes = 4 << 10

// whole is a payload, or so much of it that a screen is not flooded.
func whole(b []byte) string {
	if len(b) <= shownBytes {
		return string(b)
	}
	return string(b[:shownBytes]) + "… --json shows all"
}

// told is what a handler said of its progress; "" for nothing.
func told(percent float64, note string) string {
	if percent == 0 && note == "" {
		return ""
	}
	text := fmt.Sprintf("%.0f%%", percent)
	if note != "" {
		text += " " + note
	}
	return text
}

type jobLine struct {
	ID             *string           `json:"id"`
	Queue          string            `json:"queue"`
	Kind           string            `json:"kind"`
	State          string            `json:"state"`
	Attempt        int               `json:"attempt"`
	MaxAttempts    *int              `json:"max_attempts"`
	Crashes        int               `json:"crashes"`
	Redrives       int               `json:"redrives"`
	Priority       int               `json:"priority"`
	EnqueuedAt     moment            `json:"enqueued_at"`
	DueAt          moment            `json:"due_at"`
	UniqueKey      *string           `json:"unique_key"`
	IdempotencyKey *string           `json:"idempotency_key"`
	Schedule       *string           `json:"schedule"`
	ScheduledAt    moment            `json:"scheduled_at"`
	Cancelling     bool              `json:"cancelling"`
	Worker         *string           `json:"worker"`
	StartedAt      moment            `json:"started_at"`
	LeaseUntil     moment            `json:"lease_until"`
	Percent        float64           `json:"percent"`
	Note           *string           `json:"note"`
	LastError      *string           `json:"last_error"`
	DoneAt         moment            `json:"done_at"`
	Headers        map[string]string `json:"headers"`
	Payload        *string           `json:"payload"`
	PayloadBase64  *string           `json:"payload_base64"`
	Result         *string           `json:"result"`
	ResultBase64   *string           `json:"result_base64"`
}

func jobJSON(j pawl.JobInfo) jobLine {
	l := jobLine{ID: idText(j.ID), Queue: j.Queue, Kind: j.Kind, State: string(j.State), Attempt: j.Attempt, MaxAttempts: optional(j.MaxAttempts),
		Crashes: j.Crashes, Redrives: j.Redrives, Priority: j.Priority, EnqueuedAt: moment(j.EnqueuedAt), DueAt: moment(j.DueAt),
		UniqueKey: optional(j.Unique), IdempotencyKey: optional(j.Idempotency), Schedule: optional(j.Schedule), ScheduledAt: moment(j.ScheduledAt),
		Cancelling: j.Cancelling, Worker: optional(j.Worker), StartedAt: moment(j.StartedAt), LeaseUntil: moment(j.LeaseUntil), Percent: j.Percent, Note: optional(j.Note),
		LastError: optional(j.LastError), DoneAt: moment(j.DoneAt), Headers: orEmpty(j.Headers)}
	l.Payload, l.PayloadBase64 = bytesOf(j.Payload)
	l.Result, l.ResultBase64 = bytesOf(j.Result)
	return l
}

// orEmpty has no headers be {} and not null.
func orEmpty(h pawl.Headers) map[string]string {
	if h == nil {
		return map[string]string{}
	}
	return h
}
