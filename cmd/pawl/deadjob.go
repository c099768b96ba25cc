package main

import (
	"fmt"
	"time"

	"github.com/pawlq/pawl"
)

// showDead shows a post-mortem.
func (a *app) showDead(s *session, d pawl.DeadJob) error {
	if a.asJSON() {
		return a.line(deadJSON(d))
	}
	var f facts
	s.common(&f, &d.RawJob, string(pawl.StateDead))
	f.add("reason", string(d.Reason))
	f.add("died", s.dated(d.DiedAt))
	if !d.FirstFailedAt.IsZero() {
		f.add("first failed", s.dated(d.FirstFailedAt))
	}
	f.add("buried by", d.Worker)
	f.add("build", d.Build)
	f.add("unique key", d.Unique)
	f.add("idempotency key", d.Idempotency)
	f.add("progress", told(d.Percent, d.Note))
	content(&f, &d.RawJob)
	f.text("error", d.Error)
	for _, e := range d.Errors {
		f.text(fmt.Sprintf("attempt %d", e.Attempt), fmt.Sprintf("%s, ran %v: %s", s.ago(e.At), e.Took.Round(time.Millisecond), e.Error))
	}
	f.text("stack", d.Stack)
	return f.write(a.out)
}

type attemptLine struct {
	Attempt     int     `json:"attempt"`
	At          moment  `json:"at"`
	TookSeconds float64 `json:"took_seconds"`
	Error       string  `json:"error"`
}

type deadLine struct {
	ID             *string           `json:"id"`
	Queue          string            `json:"queue"`
	Kind           string            `json:"kind"`
	State          string            `json:"state"`
	Reason         string            `json:"reason"`
	Error          string            `json:"error"`
	Attempt        int               `json:"attempt"`
	MaxAttempts    *int              `json:"max_attempts"`
	Crashes        int               `json:"crashes"`
	Redrives       int               `json:"redrives"`
	EnqueuedAt     moment            `json:"enqueued_at"`
	FirstFailedAt  moment            `json:"first_failed_at"`
	DiedAt         moment            `json:"died_at"`
	Worker         *string           `json:"worker"`
	Build          *string           `json:"build"`
	UniqueKey      *string           `json:"unique_key"`
	IdempotencyKey *string           `json:"idempotency_key"`
	Schedule       *string           `json:"schedule"`
	ScheduledAt    moment            `json:"scheduled_at"`
	Percent        float64           `json:"percent"`
	Note           *string           `json:"note"`
	Errors         []attemptLine     `json:"errors"`
	Stack          *string           `json:"stack"`
	Headers        map[string]string `json:"headers"`
	Payload        *string           `json:"payload"`
	PayloadBase64  *string           `json:"payload_base64"`
}

func deadJSON(d pawl.DeadJob) deadLine {
	l := deadLine{ID: idText(d.ID), Queue: d.Queue, Kind: d.Kind, State: string(pawl.StateDead), Reason: string(d.Reason), Error: d.Error,
		Attempt: d.Attempt, MaxAttempts: optional(d.MaxAttempts), Crashes: d.Crashes, Redrives: d.Redrives, EnqueuedAt: moment(d.EnqueuedAt),
		FirstFailedAt: moment(d.FirstFailedAt), DiedAt: moment(d.DiedAt), Worker: optional(d.Worker), Build: optional(d.Build),
		UniqueKey: optional(d.Unique), IdempotencyKey: optional(d.Idempotency), Schedule: optional(d.Schedule), ScheduledAt: moment(d.ScheduledAt),
		Percent: d.Percent, Note: optional(d.Note), Errors: []attemptLine{}, Stack: optional(d.Stack), Headers: orEmpty(d.Headers)}
	for _, e := range d.Errors {
		l.Errors = append(l.Errors, attemptLine{e.Attempt, moment(e.At), e.Took.Seconds(), e.Error})
	}
	l.Payload, l.PayloadBase64 = bytesOf(d.Payload)
	return l
}
