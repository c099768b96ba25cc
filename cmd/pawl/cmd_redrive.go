package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

const takenFilters = "at most so many, the oldest deaths first"

func (a *app) deadRedriveCommand() *cobra.Command {
	var f deadFilter
	var how pawl.Redrive
	all := false
	cmd := &cobra.Command{
		Use:   "redrive <queue> [id...]",
		Short: "send dead jobs back",
		Long: `Sends dead jobs back to ready with fresh attempts: those with the ids, or all that
match the filters, or --all. Id, history, idempotency key and payload stay.

--dry-run changes nothing and says what would happen. --over spreads the jobs over
a time, so that what has just come up is not taken down again; the command lasts
that long. --stop-after ends it once so many of its jobs have died again: a cause
that was not mended then costs that many jobs and not all. Without --over at most
so many are under way at once, so that it waits for workers.

A job whose unique key another job holds is refused, and stays dead; the exit code
is then 5. Ctrl-C ends the command: what was moved is moved, the rest is dead
still, and the same command goes on.`,
		Example: `pawl dead redrive emails 01977420-dc7b-71c8-8001-23456789abcd
pawl dead redrive emails --fingerprint 5f1c0d3a --dry-run
pawl dead redrive emails --fingerprint 5f1c0d3a --over 10m --stop-after 20
pawl dead redrive emails --all --limit 10`,
		Args:              arguments("queue [id...]"),
		ValidArgsFunction: a.completeQueue,
	}
	f.add(cmd, takenFilters)
	cmd.Flags().BoolVar(&all, "all", false, "all dead jobs")
	cmd.Flags().BoolVar(&how.DryRun, "dry-run", false, "change nothing: say what would be done")
	cmd.Flags().Var((*span)(&how.Over), "over", "spread them evenly over this time")
	cmd.Flags().IntVar(&how.StopAfter, "stop-after", 0, "end once so `many` of them died again; 0: never")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := parseIDs(args[1:])
		switch {
		case err != nil:
			return err
		case len(ids) > 0 && (all || !f.empty() || how != pawl.Redrive{}):
			return usagef("ids are redriven as they are: leave out the filters, --all, --dry-run, --over and --stop-after")
		case len(ids) == 0 && f.empty() && !all:
			return usagef("which dead jobs? Give ids, filters, or --all")
		}
		return a.with(cmd.Context(), func(ctx context.Context, s *session) error {
			q := s.Queue(args[0])
			if len(ids) > 0 {
				report, err := q.Dead().Redrive(ctx, ids...)
				return a.redriven(q, how, report, orQueue(ctx, q, err))
			}
			return a.redriveAll(ctx, s, q, f, how)
		})
	}
	return cmd
}

func (a *app) redriveAll(ctx context.Context, s *session, q *pawl.Queue, f deadFilter, how pawl.Redrive) error {
	filter, err := f.filter(s.now())
	if err != nil {
		return err
	}
	before, err := q.Stats(ctx)
	if err != nil {
		return err
	}
	total := int64(0)
	if limit := f.limit; f.kind+f.reason+f.text+f.fingerprint+f.since.text+f.until.text == "" {
		if total = before.Dead; limit > 0 {
			total = min(total, int64(limit))
		}
	}
	what, done := "redriving dead jobs of "+q.Name(), counting(q, before, total, func(st pawl.Stats) int64 { return st.Total.Redriven })
	if how.DryRun {
		what, done = "reading the dead jobs of "+q.Name(), nil
	}
	stop := a.progress(ctx, what, done)
	report, err := q.Dead().RedriveAll(ctx, filter, how)
	stop()
	return a.redriven(q, how, report, err)
}

type redriveLine struct {
	Queue     string        `json:"queue"`
	DryRun    bool          `json:"dry_run"`
	Matched   int           `json:"matched"`
	Moved     int           `json:"moved"`
	Refused   []refusedLine `json:"refused"`
	DiedAgain int           `json:"died_again"`
	Stopped   bool          `json:"stopped"`
	Complete  bool          `json:"complete"`
}

type refusedLine struct {
	ID     *string `json:"id"`
	Holder *string `json:"holder"`
	Error  *string `json:"error"`
}

// redriven says what a redrive has done, also if it was cut short.
func (a *app) redriven(q *pawl.Queue, how pawl.Redrive, r pawl.RedriveReport, failed error) error {
	// Of a wrong queue or filter there is nothing to say but the error.
	if failed != nil && r.Matched == 0 && !errors.Is(failed, errInterrupted) {
		return failed
	}
	l := redriveLine{Queue: q.Name(), DryRun: how.DryRun, Matched: r.Matched, Moved: r.Moved, Refused: []refusedLine{},
		DiedAgain: r.DiedAgain, Stopped: r.Stopped, Complete: failed == nil && !r.Stopped}
	for _, no := range r.Refused {
		line := refusedLine{ID: idText(no.ID), Holder: idText(no.Holder)}
		if no.Err != nil {
			line.Error = optional(no.Err.Error())
		}
		l.Refused = append(l.Refused, line)
	}
	err := a.tell(l, func() error { return a.redriveText(how, r) })
	switch {
	case err != nil:
		return err
	case errors.Is(failed, errInterrupted):
		return cutShort(failed, "moved", "dead still")
	case failed != nil:
		return failed
	case r.Stopped:
		return found
	case len(r.Refused) > 0 && !how.DryRun:
		return refusedf("%s stayed dead, since another job holds the unique key", some(len(r.Refused), "job"))
	}
	return nil
}

func (a *app) redriveText(how pawl.Redrive, r pawl.RedriveReport) error {
	text := some(r.Moved, "job") + " moved"
	if how.DryRun {
		text = some(r.Matched-len(r.Refused), "job") + " would be moved"
	}
	if len(r.Refused) > 0 {
		text += ", " + count(int64(len(r.Refused))) + " refused"
	}
	if how.StopAfter > 0 {
		text += fmt.Sprintf(", %s died again", count(int64(r.DiedAgain)))
	}
	if r.Stopped {
		text += ": stopped, the rest is dead still"
	}
	if how.Over > 0 && !how.DryRun {
		text += " (over " + how.Over.Round(time.Second).String() + ")"
	}
	if _, err := fmt.Fprintln(a.out, text); err != nil || len(r.Refused) == 0 {
		return err
	}
	t := a.newTable("REFUSED", "HOLDER OF ITS UNIQUE KEY", "~ERROR")
	for _, no := range r.Refused {
		holder, problem := "", ""
		if id := idText(no.Holder); id != nil {
			holder = *id
		}
		if no.Err != nil {
			problem = no.Err.Error()
		}
		if err := t.add(no.ID.String(), holder, problem); err != nil {
			return err
		}
	}
	return t.flush()
}
