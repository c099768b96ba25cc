package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

// largestPayload is the most that pawl takes: which program's Config.MaxPayload is meant is
// not known here.
const largestPayload = 16 << 20

// enqueueFlags are the options of a job.
type enqueueFlags struct {
	kind, payload, file, unique, idempotency string
	raw                                      bool
	at                                       string
	delay, expire, retain, timeout           time.Duration
	priority, attempts                       int
	headers                                  []string
}

func (a *app) enqueueCommand() *cobra.Command {
	var f enqueueFlags
	cmd := &cobra.Command{
		Use:   "enqueue <queue> --kind <kind> --payload <json>",
		Short: "add a job",
		Long: `Adds a job, as a program would. The payload is the JSON of the arguments of its kind:
whether it is JSON is checked, whether it fits is not. --raw takes any bytes, for
programs with a codec of their own. A queue exists from its first job, so that a
mistyped name makes a new one; --existing refuses that.`,
		Example: `pawl enqueue emails --kind welcome --payload '{"user_id": 42}'
pawl enqueue emails --kind welcome --payload-file - --delay 1h < job.json
pawl enqueue emails --kind digest --payload '{}' --unique-key digest:42`,
		Args:              arguments("queue"),
		ValidArgsFunction: a.completeQueue,
	}
	existing := false
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.kind, "kind", "", "the `kind` of the job")
	flags.StringVar(&f.payload, "payload", "", "the `JSON` of its arguments")
	flags.StringVar(&f.file, "payload-file", "", "a `file` with it; - is standard input")
	flags.BoolVar(&f.raw, "raw", false, "the payload need not be JSON")
	flags.BoolVar(&existing, "existing", false, "only if the queue exists")
	flags.Var((*span)(&f.delay), "delay", "so long from now")
	flags.StringVar(&f.at, "at", "", "at this `time`: RFC 3339, or in UTC 2026-12-24 or \"2026-12-24 08:00\"")
	flags.IntVar(&f.priority, "priority", 0, "1 to 9, highest first; 0: first come, first served")
	flags.StringArrayVar(&f.headers, "header", nil, "a header, `key=value`; may be given again")
	flags.StringVar(&f.unique, "unique-key", "", "no second job while one with this `key` lives")
	flags.StringVar(&f.idempotency, "idempotency-key", "", "skip its run if one with this `key` was done")
	flags.Var((*span)(&f.expire), "expire-in", "it is dead if it is not done by then")
	flags.Var((*span)(&f.retain), "retain", "keep it so long after its end")
	flags.IntVar(&f.attempts, "max-attempts", 0, "how many runs may fail; 0: as the worker says")
	flags.Var((*span)(&f.timeout), "run-timeout", "how long one run may take")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		payload, err := a.payload(cmd, &f)
		if err != nil {
			return err
		}
		options, err := f.options()
		if err != nil {
			return err
		}
		return a.with(cmd.Context(), func(ctx context.Context, s *session) error {
			q := s.Queue(args[0])
			if existing {
				if err := s.exists(ctx, q); err != nil {
					return err
				}
			}
			got, err := q.EnqueueRaw(ctx, f.kind, payload, options...)
			if err != nil {
				return err
			}
			return a.enqueued(got)
		})
	}
	return cmd
}

// payload is what was given, which must be given once, and be JSON unless it is raw.
func (a *app) payload(cmd *cobra.Command, f *enqueueFlags) ([]byte, error) {
	set := cmd.Flags().Changed
	switch {
	case f.kind == "":
		return nil, usagef("give --kind")
	case set("payload") == set("payload-file"):
		return nil, usagef("give --payload or --payload-file")
	}
	payload := []byte(f.payload)
	if set("payload-file") {
		var err error
		if payload, err = a.readPayload(f.file); err != nil {
			return nil, usagef("--payload-file: %w", err)
		}
	}
	if !f.raw && !json.Valid(payload) {
		return nil, usagef("the payload is no JSON: mend it, or give --raw if the worker's codec is another")
	}
	return payload, nil
}

func (a *app) readPayload(name string) ([]byte, error) {
	from := a.in
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	payload, err := io.ReadAll(io.LimitReader(from, largestPayload+1))
	if err == nil && len(payload) > largestPayload {
		err = errors.New("above 16 MiB, the most there is")
	}
	return payload, err
}

func (f *enqueueFlags) options() ([]pawl.Option, error) {
	var list []pawl.Option
	if f.delay > 0 {
		list = append(list, pawl.Delay(f.delay))
	}
	if f.at != "" {
		var w when
		if err := w.Set(f.at); err != nil || w.ago > 0 {
			return nil, usagef("--at: %q is no time, such as 2026-12-24T08:00:00Z; for a duration give --delay", f.at)
		}
		list = append(list, pawl.At(w.at))
	}
	if f.priority != 0 {
		list = append(list, pawl.Priority(f.priority))
	}
	for _, text := range f.headers {
		var h header
		if err := h.Set(text); err != nil {
			return nil, usagef("--header: %w", err)
		}
		list = append(list, h.Header)
	}
	if f.unique != "" {
		list = append(list, pawl.Unique{Key: f.unique})
	}
	if f.idempotency != "" {
		list = append(list, pawl.Idempotency{Key: f.idempotency})
	}
	if f.expire > 0 {
		list = append(list, pawl.ExpireIn(f.expire))
	}
	if f.retain > 0 {
		list = append(list, pawl.Retain(f.retain))
	}
	if f.attempts != 0 {
		list = append(list, pawl.MaxAttempts(f.attempts))
	}
	if f.timeout > 0 {
		list = append(list, pawl.Timeout(f.timeout))
	}
	return list, nil
}

type enqueuedLine struct {
	Queue     string `json:"queue"`
	ID        string `json:"id"`
	Duplicate bool   `json:"duplicate"`
	Replaced  bool   `json:"replaced"`
}

// enqueued says which job stands for the call.
func (a *app) enqueued(e pawl.Enqueued) error {
	return a.tell(enqueuedLine{e.Queue, e.ID.String(), e.Duplicate, e.Replaced}, func() error {
		what := "enqueued"
		if e.Duplicate {
			what = "not enqueued: its unique key is held by"
		}
		_, err := fmt.Fprintln(a.out, what, e.ID)
		return err
	})
}
