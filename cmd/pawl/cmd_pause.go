package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

func (a *app) pauseCommand() *cobra.Command {
	d := time.Duration(0)
	cmd := &cobra.Command{
		Use:   "pause <queue>",
		Short: "stop leasing jobs of a queue",
		Long: `From the moment it returns no worker takes a job of the queue; what runs goes on, and
enqueues go on. With --for it ends by itself, so that a pause which everybody forgot
does no lasting harm. A second pause puts its end in the place of the first.`,
		Example: `pawl pause emails --for 2h
pawl pause emails`,
		Args:              arguments("queue"),
		ValidArgsFunction: a.completeQueue,
	}
	cmd.Flags().Var((*span)(&d), "for", "how long; default until: pawl resume")
	cmd.RunE = a.onQueue(func(ctx context.Context, s *session, q *pawl.Queue) error {
		if err := q.Pause(ctx, d); err != nil {
			return err
		}
		st, err := q.Stats(ctx) // the end, by the server's clock
		if err != nil {
			a.warn(fmt.Errorf("queue %s has been paused; what follows is of the look at it since", q.Name()))
			return err
		}
		return a.tell(pauseLine{q.Name(), st.Paused, moment(st.PausedUntil)}, func() error {
			until := "until it is resumed"
			switch {
			case !st.Paused: // it was that short, or somebody has ended it
				_, err := fmt.Fprintf(a.out, "queue %s was paused, and is active again\n", q.Name())
				return err
			case !st.PausedUntil.IsZero():
				until = "until " + s.dated(st.PausedUntil)
			}
			_, err := fmt.Fprintf(a.out, "queue %s is paused %s; %s still\n", q.Name(), until, runs(st.Running))
			return err
		})
	})
	return cmd
}

func runs(n int64) string {
	if n == 1 {
		return "1 job runs"
	}
	return count(n) + " jobs run"
}

type pauseLine struct {
	Queue       string `json:"queue"`
	Paused      bool   `json:"paused"`
	PausedUntil moment `json:"paused_until"`
}

func (a *app) resumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "resume <queue>",
		Short:             "end a pause",
		Long:              `Ends the pause of a queue at once. Of a queue that is not paused it changes nothing.`,
		Example:           `pawl resume emails`,
		Args:              arguments("queue"),
		ValidArgsFunction: a.completeQueue,
		RunE: a.onQueue(func(ctx context.Context, _ *session, q *pawl.Queue) error {
			if err := q.Resume(ctx); err != nil {
				return err
			}
			return a.tell(pauseLine{Queue: q.Name()}, func() error {
				_, err := fmt.Fprintf(a.out, "queue %s is active\n", q.Name())
				return err
			})
		}),
	}
}
