package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

func (a *app) deadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead <command>",
		Short: "dead jobs: look, send back, remove",
		Long: `The dead-letter queue of a queue: the jobs that gave up, each with its post-mortem.
Begin with "groups", which says what they died of; mend the cause; then redrive.`,
		Example: `pawl dead groups emails
pawl dead redrive emails --fingerprint 5f1c0d3a9b7e2846 --dry-run
pawl dead redrive emails --fingerprint 5f1c0d3a9b7e2846 --over 10m --stop-after 20`,
		RunE: a.group,
	}
	cmd.AddCommand(a.deadListCommand(), a.deadGroupsCommand(), a.deadShowCommand(), a.deadRedriveCommand(), a.deadDeleteCommand(), a.deadPurgeCommand())
	return cmd
}

func (a *app) deadListCommand() *cobra.Command {
	var f deadFilter
	cmd := &cobra.Command{
		Use:   "list <queue>",
		Short: "the dead jobs of a queue",
		Long: `Lists dead jobs in the order of their deaths, the oldest first; --since 10m has the
newest. All filters must match. Only --since and --until narrow what is read: the
others are looked at job by job, in pages. That nothing matches is no error: it is
said on standard error.`,
		Example: `pawl dead list emails
pawl dead list emails --reason crashed --since 1h
pawl dead list emails --error "connection refused" --json | jq -r .id`,
		Args:              arguments("queue"),
		ValidArgsFunction: a.completeQueue,
	}
	f.add(a, cmd, limitUsage)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.with(cmd.Context(), func(ctx context.Context, s *session) error {
			show := newShowing(a, f.limit, "dead job")
			show.which = "the oldest " // and who looks for what goes on now looks for the newest
			f.limit = 0
			filter, err := f.filter(s.now())
			if err != nil {
				return err
			}
			t := a.newTable("ID", "DIED", "REASON", "~KIND", "#ATTEMPT", "~PAYLOAD", "+ERROR")
			q := s.Queue(args[0])
			err = walk(show, q.Dead().List(ctx, filter), func(d pawl.DeadJob) error {
				if a.asJSON() {
					return a.line(deadJSON(d))
				}
				return t.add(d.ID.String(), s.ago(d.DiedAt), string(d.Reason), d.Kind, fmt.Sprint(d.Attempt), string(d.Payload), d.Error)
			})
			return errors.Join(t.flush(), show.end(s.orQueue(ctx, q, err)))
		})
	}
	return cmd
}

func (a *app) deadGroupsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "groups <queue>",
		Short: "what they died of",
		Long: `Sorts the dead jobs of a queue by kind and kind of error, the largest group first:
numbers, ids, times and addresses in the text do not split a group. REASON is that of
all of a group, or "several". FINGERPRINT is for the filter of the other commands.
FIRST and LAST are its oldest and its newest death. EXAMPLE is the error of the
newest, cut to the window: --json has it whole, and so has --text into a pipe. All
post-mortems are read, in pages.`,
		Example: `pawl dead groups emails
pawl dead groups emails --json | jq -r 'select(.count > 100) | .fingerprint'`,
		Args:              arguments("queue"),
		ValidArgsFunction: a.completeQueue,
		RunE: a.onQueue(func(ctx context.Context, s *session, q *pawl.Queue) error {
			stop := a.progress(ctx, "reading the dead jobs of "+q.Name(), nil)
			groups, err := q.Dead().Groups(ctx)
			stop()
			if err != nil {
				return s.orQueue(ctx, q, err)
			}
			if len(groups) == 0 {
				a.note("no job of queue %s is dead", q.Name())
			}
			t := a.newTable("#COUNT", "~KIND", "REASON", "FINGERPRINT", "FIRST", "LAST", "+EXAMPLE")
			for _, g := range groups {
				var err error
				if a.asJSON() {
					err = a.line(groupLine{q.Name(), g.Kind, optional(string(g.Reason)), g.Fingerprint, g.Count, moment(g.First), moment(g.Last), g.Example})
				} else {
					err = t.add(count(int64(g.Count)), g.Kind, cmp.Or(string(g.Reason), "several"), g.Fingerprint, s.ago(g.First), s.ago(g.Last), g.Example)
				}
				if err != nil {
					return err
				}
			}
			return t.flush()
		}),
	}
}

type groupLine struct {
	Queue       string  `json:"queue"`
	Kind        string  `json:"kind"`
	Reason      *string `json:"reason"` // null: several
	Fingerprint string  `json:"fingerprint"`
	Count       int     `json:"count"`
	First       moment  `json:"first"`
	Last        moment  `json:"last"`
	Example     string  `json:"example"`
}

func (a *app) deadShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show <queue> <id>",
		Short: "the post-mortem of a job",
		Long: `Shows why a job died: the reason, the stack of a panic, the worker that buried it,
what the job carried, and its last failed attempts: when, how long it ran, and the
error. After a redrive attempts count from 1 again; those before it are still listed.`,
		Example:           `pawl dead show emails 01977420-dc7b-71c8-8001-23456789abcd`,
		Args:              arguments("queue id"),
		ValidArgsFunction: a.completeDead(1),
		RunE: a.onJob(func(ctx context.Context, s *session, q *pawl.Queue, id pawl.ID) error {
			d, err := getDead(ctx, q, id)
			if err != nil {
				return err
			}
			return a.showDead(s, d)
		}),
	}
}
