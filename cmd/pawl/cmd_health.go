package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

func (a *app) checkCommand() *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use:   "check <queue> | --all",
		Short: "is a queue consistent?",
		Long: `Walks a queue, or with --all each of them, and reports what is inconsistent: nothing,
unless keys were edited, evicted or lost. Workers mend most of it as they go, so
look twice. It changes nothing. The exit code is 6 if something was found.

It reads every key of the queue, in pages, and looks at the name of every key of
the server: it is not for a health check.`,
		Example: `pawl check emails
pawl check --all --json | jq 'select(.ok | not)'`,
		Args:              arguments("[queue]"),
		ValidArgsFunction: a.completeQueue,
	}
	cmd.Flags().BoolVar(&all, "all", false, "all queues")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if all == (len(args) == 1) {
			return usagef("give a queue, or --all")
		}
		return a.with(cmd.Context(), func(ctx context.Context, s *session) error {
			names := args
			if all {
				var err error
				if names, err = a.queueNames(ctx, s); err != nil {
					return err
				}
			}
			bad := false
			for _, name := range names {
				n, err := a.check(ctx, s, s.Queue(name))
				if all && isMissing(err) {
					continue // it was destroyed just now
				}
				if err != nil {
					return err
				}
				bad = bad || n > 0
			}
			if bad {
				return found
			}
			return nil
		})
	}
	return cmd
}

type checkLine struct {
	Queue      string          `json:"queue"`
	OK         bool            `json:"ok"`
	Complete   bool            `json:"complete"`
	Violations []violationLine `json:"violations"`
}

type violationLine struct {
	Key  string  `json:"key"`
	ID   *string `json:"id"`
	Text string  `json:"text"`
}

// check checks one queue, and returns how much it found. What was found before an error is
// shown too.
func (a *app) check(ctx context.Context, s *session, q *pawl.Queue) (int, error) {
	stop := a.progress(ctx, "checking "+q.Name(), nil)
	violations, failed := q.Check(ctx)
	stop()
	if isMissing(failed) || failed != nil && len(violations) == 0 {
		return 0, s.orQueue(ctx, q, failed)
	}
	l := checkLine{Queue: q.Name(), OK: len(violations) == 0 && failed == nil, Complete: failed == nil, Violations: []violationLine{}}
	for _, v := range violations {
		l.Violations = append(l.Violations, violationLine{v.Key, optional(v.ID), v.Text})
	}
	err := a.tell(l, func() error {
		if len(violations) == 0 {
			_, err := fmt.Fprintf(a.out, "queue %s: nothing found\n", q.Name())
			return err
		}
		for _, v := range violations {
			if _, err := fmt.Fprintln(a.out, visible(v.String())); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(a.out, "queue %s: %s found\n", q.Name(), some(len(violations), "violation"))
		return err
	})
	return len(violations), errors.Join(err, failed)
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "what of the server would hurt?",
		Long: `Looks at the settings of Redis and says what would hurt in production: an eviction
policy that drops keys, no AOF, a replica, a version too old, rights that the user
lacks. What may not be looked at is "unknown". It changes nothing. The exit code is
6 if something is bad.`,
		Example: `pawl doctor
pawl doctor --json | jq -r 'select(.status == "bad") | .text'`,
		Args: arguments(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, s *session) error {
				findings, err := s.Doctor(ctx)
				if err != nil {
					return err
				}
				bad := false
				for _, f := range findings {
					f.Text = s.heard.scrub(f.Text)
					status := "ok"
					switch {
					case f.Unknown:
						status = "unknown"
					case !f.OK:
						status, bad = "bad", true
					}
					err := a.tell(findingLine{f.Check, status, f.Text}, func() error {
						_, err := fmt.Fprintln(a.out, visible(f.String()))
						return err
					})
					if err != nil {
						return err
					}
				}
				if bad {
					return found
				}
				return nil
			})
		},
	}
}

type findingLine struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Text   string `json:"text"`
}
