package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

const takenFilters = "at most so many, the oldest deaths first"

func (a *app) deadRedriveCommand() *cobra.Command {
	var f deadFilter
	var how pawl.Redrive
	var mend repairFlags
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
is then 5, but 0 of a dry run. "pawl job" with the id of the holder shows what that
is: if it does the same work, delete the dead one ("pawl dead delete"), else redrive
it once the holder has ended.

While the queue is paused, or no worker serves it, what is sent back waits, which is
said on standard error. The deaths that are shown on the way are all that the queue
has had since, those of other jobs too. The exit code of a redrive that --stop-after
ended is 6. Ctrl-C ends the command: what was moved is moved, the rest is dead still,
and the same command goes on.

--payload-file sends one job back with a repaired payload. The one of before is said,
and not kept. Whether the new one is JSON is checked, whether it fits the handler is
not; --raw takes any bytes. All else stays, kind and idempotency key too.`,
		Example: `pawl dead redrive emails 01977420-dc7b-71c8-8001-23456789abcd
pawl dead redrive emails --fingerprint 5f1c0d3a9b7e2846 --dry-run
pawl dead redrive emails --fingerprint 5f1c0d3a9b7e2846 --over 10m --stop-after 20
pawl dead redrive emails --all --limit 10
pawl dead redrive emails 01977420-dc7b-71c8-8001-23456789abcd --payload-file - < job`,
		Args:              arguments("queue [id...]"),
		ValidArgsFunction: a.completeDead(0),
	}
	f.add(a, cmd, takenFilters)
	cmd.Flags().BoolVar(&all, "all", false, "all dead jobs")
	cmd.Flags().BoolVar(&how.DryRun, "dry-run", false, "change nothing: say what would be done")
	cmd.Flags().Var((*span)(&how.Over), "over", "spread them evenly over this time")
	cmd.Flags().Var((*deaths)(&how.StopAfter), "stop-after", "end once so many of them died again; 0: never")
	mend.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := parseIDs(args[1:])
		repairs, payload := cmd.Flags().Changed("payload-file"), []byte(nil)
		switch {
		case err != nil:
		case repairs:
			payload, err = mend.payload(a, ids, all || f.chooses() || f.limit >= 0 || how != pawl.Redrive{DryRun: how.DryRun})
		case mend.raw:
			return usagef("--raw is of a repaired payload: give --payload-file")
		case len(ids) > 0 && (all || f.chooses() || f.limit >= 0 || how != pawl.Redrive{}):
			return usagef("ids are redriven as they are: leave out the filters, --all, --dry-run, --over and --stop-after")
		case len(ids) == 0:
			err = f.check(all, "ids, ")
		}
		if err != nil {
			return err
		}
		return a.with(cmd.Context(), func(ctx context.Context, s *session) error {
			q := s.Queue(args[0])
			if repairs {
				return a.repair(ctx, s, q, ids[0], payload, how.DryRun)
			}
			if len(ids) > 0 {
				st, err := q.Stats(ctx)
				if err != nil {
					return err
				}
				if st.Dead > 0 {
					a.hindrances(s, q, how)(st)
				}
				report, err := q.Dead().Redrive(ctx, ids...)
				if report.Matched > 0 || errors.Is(err, pawl.ErrUnconfirmed) {
					err = a.cutShort(ctx, s, err)
				}
				return a.redriven(q, how, report, 0, s.orQueue(ctx, q, err))
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
	if how.DryRun {
		stop := a.progress(ctx, "reading the dead jobs of "+q.Name(), nil)
		report, err := q.Dead().RedriveAll(ctx, filter, how)
		stop()
		return a.redriven(q, how, report, 0, s.orQueue(ctx, q, err))
	}
	total, err := a.toRedrive(ctx, q, filter, f.chooses(), how, before)
	if err != nil {
		return s.orQueue(ctx, q, err)
	}
	tell := a.hindrances(s, q, how)
	if total > 0 {
		tell(before)
	}
	stop := a.paced(ctx, "redriving dead jobs of "+q.Name(), how.Over, func(ctx context.Context) (string, error) {
		now, err := q.Stats(ctx)
		if err == nil {
			tell(now)
		}
		return redrivingText(before, now, total), err
	})
	report, err := q.Dead().RedriveAll(ctx, filter, how)
	stop()
	if report.Matched > 0 || errors.Is(err, pawl.ErrUnconfirmed) {
		err = a.cutShort(ctx, s, err)
	}
	return a.redriven(q, how, report, total, s.orQueue(ctx, q, err))
}

// toRedrive is how many will be tried, as far as is known before. Those that match a filter
// are counted only where the redrive lasts: to count them is to read all the dead.
func (a *app) toRedrive(ctx context.Context, q *pawl.Queue, filter pawl.DeadFilter, chooses bool, how pawl.Redrive, before pawl.Stats) (int64, error) {
	total := before.Dead
	if chooses && how != (pawl.Redrive{}) && total > 0 {
		return a.countDead(ctx, q, filter)
	}
	if filter.Limit > 0 {
		total = min(total, int64(filter.Limit))
	}
	return total, nil
}

// redrivingText says how far a redrive is, by the counters of the queue, where the work and
// the deaths of others count too.
func redrivingText(before, now pawl.Stats, total int64) string {
	text := fmt.Sprintf("%s of %s moved", count(max(0, now.Total.Redriven-before.Total.Redriven)), count(total))
	if died := now.Total.Dead - before.Total.Dead; died > 0 {
		text += ", " + count(died) + " died meanwhile"
	}
	return text
}

// hindrances tells, once each time it comes to be so, that what is sent back does not run.
func (a *app) hindrances(s *session, q *pawl.Queue, how pawl.Redrive) func(pawl.Stats) {
	last := ""
	return func(st pawl.Stats) {
		now, until := "", ""
		switch {
		case st.Paused:
			now, until = "queue "+q.Name()+" is paused", ": pawl resume "+q.Name()
		case st.Workers == 0:
			now, until = "no worker serves queue "+q.Name(), " one does"
		}
		if now == last {
			return
		}
		if last = now; now == "" {
			return
		}
		if st.Paused && !st.PausedUntil.IsZero() {
			now += " (ends " + s.in(st.PausedUntil) + ")"
		}
		waits := "what is sent back waits"
		switch {
		case how.StopAfter > 0 && how.Over == 0:
			waits += ", and so does this command,"
		case how.StopAfter > 0:
			waits += ", and --stop-after sees no deaths,"
		}
		a.wipe()
		a.note("%s: %s until%s", now, waits, until)
	}
}

// cutShort says of a redrive that Redis has left in the middle what became of the rest.
func (a *app) cutShort(ctx context.Context, s *session, err error) error {
	err = a.lost(ctx, err, s.addr)
	switch code := exitCode(err); code {
	case exitAway:
		return &failure{code, fmt.Errorf("%w: what was moved is moved, the others are dead still, and the same command goes on", err)}
	case exitUnconfirmed:
		return &failure{code, fmt.Errorf("%w: some more may have been moved than was said, the others are dead still, and the same command goes on", err)}
	}
	return err
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

// redriven says what a redrive has done, also if it was cut short. total is how many were to
// be tried, or 0 if that does not matter.
func (a *app) redriven(q *pawl.Queue, how pawl.Redrive, r pawl.RedriveReport, total int64, failed error) error {
	// Of a wrong queue or filter there is nothing to say but the error.
	if failed != nil && r.Matched == 0 && !errors.Is(failed, errInterrupted) {
		return failed
	}
	l := redriveLine{Queue: q.Name(), DryRun: how.DryRun, Matched: r.Matched, Moved: r.Moved, Refused: []refusedLine{},
		DiedAgain: r.DiedAgain, Stopped: r.Stopped, Complete: failed == nil && !r.Stopped}
	for _, no := range r.Refused {
		line := refusedLine{ID: idText(no.ID), Holder: idText(no.Holder)}
		if no.Err != nil {
			line.Error = optional(a.scrub(no.Err.Error(), no.Err))
		}
		l.Refused = append(l.Refused, line)
	}
	err := a.tell(l, func() error { return a.redriveText(how, r, total, l.Complete) })
	switch {
	case err != nil:
		return err
	case errors.Is(failed, errInterrupted):
		return cutShort(failed, "moved", "dead still")
	case failed != nil:
		return failed
	case r.Stopped:
		return found
	case r.Matched == 0:
		a.note("no dead job matches")
	case len(r.Refused) > 0 && how.DryRun:
		a.note("%s would stay dead, since another job holds the unique key, and the exit code would be %d; %s", some(len(r.Refused), "job"), exitRefused, refusedHint(q))
	case len(r.Refused) > 0:
		return refusedf("%s stayed dead, since another job holds the unique key; %s", some(len(r.Refused), "job"), refusedHint(q))
	}
	return nil
}

// refusedHint says what to do about jobs that were refused.
func refusedHint(q *pawl.Queue) string {
	return fmt.Sprintf("see what that one is: pawl job %s HOLDER; then delete the dead one, or redrive it when the other has ended", q.Name())
}

func (a *app) redriveText(how pawl.Redrive, r pawl.RedriveReport, total int64, complete bool) error {
	text := some(r.Moved, "job") + " moved"
	if how.DryRun {
		text = some(r.Matched-len(r.Refused), "job") + " would be moved"
	}
	if len(r.Refused) > 0 {
		text += ", " + count(int64(len(r.Refused))) + " refused"
	}
	if how.StopAfter > 0 && !how.DryRun {
		text += fmt.Sprintf(", %s died again", count(int64(r.DiedAgain)))
	}
	if rest := total - int64(r.Matched); r.Stopped && rest > 0 {
		text += ": stopped, the rest (" + count(rest) + ") is dead still"
	} else if r.Stopped {
		text += ": stopped"
	}
	if how.Over > 0 && !how.DryRun && complete && r.Matched > 0 { // one that ended early did not last so long
		text += " (over " + lasting(how.Over) + ")"
	}
	if _, err := fmt.Fprintln(a.out, text); err != nil || len(r.Refused) == 0 {
		return err
	}
	t := a.newTable("REFUSED", "HOLDER OF ITS UNIQUE KEY", "+ERROR")
	for _, no := range r.Refused {
		holder, problem := "", ""
		if id := idText(no.Holder); id != nil {
			holder = *id
		}
		if no.Err != nil {
			problem = a.scrub(no.Err.Error(), no.Err)
		}
		if err := t.add(no.ID.String(), holder, problem); err != nil {
			return err
		}
	}
	return t.flush()
}
