package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

// repairFlags are those with which a dead job goes back with another payload.
type repairFlags struct {
	file string
	raw  bool
}

func (f *repairFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "payload-file", "", "a `file` with the repaired payload of the one job; - is standard input")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "the repaired payload need not be JSON")
}

// payload is the repaired one, which is read before Redis is asked for anything.
func (f *repairFlags) payload(a *app, ids []pawl.ID, others bool) ([]byte, error) {
	switch {
	case len(ids) != 1:
		return nil, usagef("--payload-file is for one job: give its id, and no other")
	case others:
		return nil, usagef("--payload-file is for one job: leave out the filters, --all, --over and --stop-after")
	}
	payload, err := a.readPayload(f.file)
	switch {
	case err != nil:
		return nil, usagef("--payload-file: %w", err)
	case !f.raw && !json.Valid(payload):
		return nil, usagef("the repaired payload is no JSON: mend it, or give --raw if the worker's codec is another")
	}
	return payload, nil
}

// repair sends one job back with another payload, and says what it had: with the
// post-mortem that one is gone.
func (a *app) repair(ctx context.Context, s *session, q *pawl.Queue, id pawl.ID, payload []byte, dry bool) error {
	dead, err := getDead(ctx, q, id)
	switch {
	case err != nil:
		return s.orQueue(ctx, q, err)
	case dead.Reason == pawl.ReasonCorrupt:
		return refusedf("the record of %s cannot be read, so that its kind is not known: repair it by a program, with RedriveWith, or remove it", id)
	}
	l := repairedLine{Queue: q.Name(), ID: idText(id), Kind: dead.Kind, DryRun: dry, Moved: !dry}
	l.Before, l.BeforeBase64 = bytesOf(dead.Payload)
	l.Payload, l.PayloadBase64 = bytesOf(payload)
	if dry {
		no, err := refusal(ctx, q, dead)
		if err != nil {
			return err
		}
		if no != nil {
			l.Holder = idText(no.Holder)
		}
		if err := a.tell(l, func() error { return a.repairText(l, dead.Payload, payload, no != nil) }); err != nil || no == nil {
			return err
		}
		if no.Err != nil {
			a.note("%w", no.Err)
			return nil
		}
		a.note("it would stay dead, since %s holds its unique key, and the exit code would be %d; %s", no.Holder, exitRefused, refusedHint(q))
		return nil
	}
	st, err := q.Stats(ctx)
	if err != nil {
		return err
	}
	a.hindrances(s, q, pawl.Redrive{})(st)
	switch err := q.Dead().RedriveWith(ctx, id, pawl.Raw{Name: dead.Kind, Payload: payload}); {
	case errors.Is(err, pawl.ErrDuplicate):
		return fmt.Errorf("%w; it stayed dead as it was; %s", err, refusedHint(q))
	case err != nil:
		return err
	}
	return a.tell(l, func() error { return a.repairText(l, dead.Payload, payload, false) })
}

// refusal is why a job would stay dead, or nil. A dry run takes no ids, so that it is asked
// about all that died in the same millisecond.
func refusal(ctx context.Context, q *pawl.Queue, dead pawl.DeadJob) (*pawl.RefusedRedrive, error) {
	since := dead.DiedAt
	report, err := q.Dead().RedriveAll(ctx, pawl.DeadFilter{Since: since, Until: since.Add(time.Millisecond)}, pawl.Redrive{DryRun: true})
	for _, no := range report.Refused {
		if no.ID == dead.ID {
			return &no, err
		}
	}
	return nil, err
}

// getDead is a post-mortem, or an error that names the job.
func getDead(ctx context.Context, q *pawl.Queue, id pawl.ID) (pawl.DeadJob, error) {
	d, err := q.Dead().Get(ctx, id)
	if errors.Is(err, pawl.ErrNotFound) {
		err = notFoundf("%s is not dead, or there is no such job in queue %s; pawl job says where it is", id, q.Name())
	}
	return d, err
}

type repairedLine struct {
	Queue         string  `json:"queue"`
	ID            *string `json:"id"`
	Kind          string  `json:"kind"`
	DryRun        bool    `json:"dry_run"`
	Moved         bool    `json:"moved"`
	Holder        *string `json:"holder"` // of its unique key: it would be refused
	Before        *string `json:"payload_before"`
	BeforeBase64  *string `json:"payload_before_base64"`
	Payload       *string `json:"payload"`
	PayloadBase64 *string `json:"payload_base64"`
}

func (a *app) repairText(l repairedLine, before, payload []byte, refused bool) error {
	text := "1 job moved, with another payload"
	switch {
	case refused:
		text = "0 jobs would be moved, 1 refused"
	case l.DryRun:
		text = "1 job would be moved, with another payload"
	}
	if _, err := fmt.Fprintln(a.out, text); err != nil {
		return err
	}
	var f facts
	f.add("before", whole(before)+" ("+size(len(before))+")")
	f.add("now", whole(payload)+" ("+size(len(payload))+")")
	return f.write(a.out)
}
