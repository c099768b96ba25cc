package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

// onJobs is a command that does one thing to each of some jobs. ask may be nil.
func (a *app) onJobs(ask func(context.Context, *session, *pawl.Queue, []pawl.ID) error, done string,
	do func(context.Context, *pawl.Queue, pawl.ID) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ids, err := parseIDs(args[1:])
		if err != nil {
			return err
		}
		return a.with(cmd.Context(), func(ctx context.Context, s *session) error {
			q := s.Queue(args[0])
			if err := s.exists(ctx, q); err != nil {
				return err
			}
			if ask != nil {
				if err := ask(ctx, s, q, ids); err != nil {
					return err
				}
			}
			return each(ctx, a, ids, func(id pawl.ID) error {
				err := do(ctx, q, id)
				if err != nil && !a.asJSON() {
					return err
				}
				l := doneLine{Queue: q.Name(), ID: id.String(), Action: cmd.Name(), OK: err == nil}
				if err != nil {
					l.Error = optional(a.plain(err))
				}
				if wrote := a.tell(l, func() error { _, err := fmt.Fprintln(a.out, done, id); return err }); wrote != nil {
					return wrote
				}
				return err
			})
		})
	}
}

type doneLine struct {
	Queue  string  `json:"queue"`
	ID     string  `json:"id"`
	Action string  `json:"action"`
	OK     bool    `json:"ok"`
	Error  *string `json:"error"`
}

// tell writes an object to machines, and something else to people.
func (a *app) tell(v any, text func() error) error {
	if a.asJSON() {
		return a.line(v)
	}
	return text()
}

func (a *app) cancelCommand() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:   "cancel <queue> <id>...",
		Short: "end jobs",
		Long: `Ends jobs, waiting or running, without a retry or a post-mortem. A waiting one is
gone at once; the context of a running one ends within a third of its visibility
timeout (10 s by default), and it ends when its handler returns. It asks before, or
needs --yes. Of a dead job "pawl dead delete" is the way.`,
		Example:           `pawl cancel emails 01977420-dc7b-71c8-8001-23456789abcd`,
		Args:              arguments("queue id..."),
		ValidArgsFunction: a.completeQueue,
	}
	addYes(cmd, &yes)
	cmd.RunE = a.onJobs(func(ctx context.Context, s *session, q *pawl.Queue, ids []pawl.ID) error {
		return a.confirm(ctx, s, yes, "Cancel "+some(len(ids), "job")+" of queue "+q.Name(), "")
	}, "cancelled", func(ctx context.Context, q *pawl.Queue, id pawl.ID) error { return q.Cancel(ctx, id) })
	return cmd
}

func (a *app) runNowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run-now <queue> <id>...",
		Short: "make delayed jobs ready",
		Long: `Makes jobs ready that wait for their time or their retry. One that is ready already
stays as it is. One that runs, is parked or is dead is refused.`,
		Example: `pawl run-now emails 01977420-dc7b-71c8-8001-23456789abcd
pawl jobs emails --state delayed --json | jq -r .id | xargs pawl run-now emails`,
		Args:              arguments("queue id..."),
		ValidArgsFunction: a.completeQueue,
		RunE: a.onJobs(nil, "made ready", func(ctx context.Context, q *pawl.Queue, id pawl.ID) error {
			return q.RunNow(ctx, id)
		}),
	}
}

func (a *app) rescheduleCommand() *cobra.Command {
	var at, in string
	cmd := &cobra.Command{
		Use:   "reschedule <queue> <id>... (--at time | --in duration)",
		Short: "move waiting jobs to another time",
		Long: `Moves jobs that are ready or delayed to another time; all else stays. A time that is
past means now. One that runs, is parked or is dead is refused.`,
		Example: `pawl reschedule emails 01977420-dc7b-71c8-8001-23456789abcd --in 2h
pawl reschedule emails 01977420-dc7b-71c8-8001-23456789abcd --at 2026-12-24T08:00:00Z`,
		Args:              arguments("queue id..."),
		ValidArgsFunction: a.completeQueue,
	}
	cmd.Flags().StringVar(&at, "at", "", "at this `time`: RFC 3339, or in UTC 2026-12-24 or \"2026-12-24 08:00\"")
	cmd.Flags().StringVar(&in, "in", "", "so long from now, by the clock of Redis, as a `duration`: 90s, 2h, 7d")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var w when
		var err error
		switch {
		case (at == "") == (in == ""):
			return usagef("give --at or --in")
		case at != "":
			if err = w.Set(at); err == nil && w.ago > 0 {
				err = fmt.Errorf("--at takes a time; for a duration from now give --in %s", at)
			}
		default:
			w.ago, err = parseSpan(in)
		}
		if err != nil {
			return usagef("%w", err)
		}
		var to time.Time
		return a.onJobs(func(_ context.Context, s *session, _ *pawl.Queue, _ []pawl.ID) error {
			if to = w.at; w.ago > 0 {
				to = s.now().Add(w.ago)
			}
			return nil
		}, "rescheduled", func(ctx context.Context, q *pawl.Queue, id pawl.ID) error { return q.Reschedule(ctx, id, to) })(cmd, args)
	}
	return cmd
}
