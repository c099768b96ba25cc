package pawl

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl/internal/record"
)

// RedriveWith is Redrive of one job with a repaired payload: args in the place of
// its arguments, and their kind in the place of its kind. Everything else stays:
// id, headers, history, policies and unique key; options of the type of args are
// not looked at.
//
// Errors: ErrInvalid and ErrTooLarge of args, as Enqueue; ErrNotFound, the job is
// not dead; ErrDuplicate, another job, which is named, holds its unique key;
// ErrFull. In each case the job is as it was. ErrUnconfirmed: it may have been
// moved, and then a second call is ErrNotFound.
func (d *DeadLetters) RedriveWith(ctx context.Context, id ID, args Args) error {
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	return d.q.wrap("redrive", d.redriveWith(ctx, id, args))
}

func (d *DeadLetters) redriveWith(ctx context.Context, id ID, args Args) error {
	if d.q.err != nil {
		return d.q.err
	}
	payload, err := d.q.encodeArgs(args)
	if err != nil {
		return err
	}
	for {
		graves, err := d.graves(ctx, []ID{id})
		if err != nil {
			return err
		}
		missing := fmt.Errorf("%w among the dead: %s", ErrNotFound, id)
		if graves[0].ID == "" {
			return missing
		}
		_, report, err := d.redrive(ctx, []redis.XMessage{repaired(graves[0], args.Kind(), payload)}, nil, nil)
		switch {
		case err != nil:
			return err
		case report.mistyped() != nil:
			return report.mistyped()
		case len(report.Refused) > 0:
			return fmt.Errorf("%w of %s, which holds the unique key", ErrDuplicate, report.Refused[0].Holder)
		case report.Moved == 1:
			return nil
		}
	}
}

// repaired is an entry whose job has another kind and payload. Of a corrupt job
// nothing else is known.
func repaired(e redis.XMessage, kind string, payload []byte) redis.XMessage {
	text, _ := e.Values["p"].(string)
	rec, err := record.Decode([]byte(text))
	if err != nil {
		rec = &record.Record{}
	}
	rec.Kind, rec.Payload = kind, payload
	if rec.Dead != nil && rec.Dead.Reason == string(ReasonCorrupt) {
		rec.Dead.Reason = string(ReasonUndecodable) // its payload can be read now
	}
	return redis.XMessage{ID: e.ID, Values: map[string]any{"i": e.Values["i"], "p": string(rec.Append(nil))}}
}
