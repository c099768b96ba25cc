package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

func (a *app) schedulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schedules <command>",
		Short: "recurring jobs: list, trigger, pause, remove",
		Long: `The schedules of a queue, which programs register by Queue.Schedule. What is done here
lasts until a program registers or removes the schedule again; its pause lasts beyond.`,
		Example: `pawl schedules list reports
pawl schedules trigger reports nightly`,
		RunE: a.group,
	}
	cmd.AddCommand(
		a.schedulesListCommand(), a.triggerCommand(),
		a.scheduleCommand("pause", "hold a schedule back",
			"Holds a schedule back until it is resumed. What passes meanwhile is dealt with then,\nas its Missed says.", true, false, (*pawl.Queue).PauseSchedule),
		a.scheduleCommand("resume", "end the pause of a schedule",
			"Ends the pause of a schedule. Of one that is not paused it changes nothing.", false, false, (*pawl.Queue).ResumeSchedule),
		a.scheduleCommand("remove", "remove a schedule",
			"Removes a schedule. Jobs that it enqueued stay. It asks before, or needs --yes. A\nprogram that registers it at its start brings it back.", false, true, (*pawl.Queue).Unschedule),
	)
	return cmd
}

func (a *app) schedulesListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list <queue>",
		Short: "the schedules of a queue",
		Long: `Lists the schedules of a queue: when each fires next and fired last, and how often it
made a job (FIRED), passed without one (MISSED), or met its job before still at work
(SKIPPED). That there are none is no error: it is said on standard error.`,
		Example: `pawl schedules list reports
pawl schedules list reports --json | jq 'select(.missed > 0)'`,
		Args:              arguments("queue"),
		ValidArgsFunction: a.completeQueue,
		RunE: a.onQueue(func(ctx context.Context, s *session, q *pawl.Queue) error {
			if err := s.exists(ctx, q); err != nil {
				return err
			}
			list, err := q.Schedules(ctx)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				a.note("queue %s has no schedules", q.Name())
			}
			t := a.newTable("SCHEDULE", "SPEC", "~KIND", "STATE", "NEXT", "LAST", "#FIRED", "#MISSED", "#SKIPPED")
			for _, info := range list {
				if err := a.showSchedule(s, t, q, info); err != nil {
					return err
				}
			}
			return t.flush()
		}),
	}
}

func (a *app) showSchedule(s *session, t *table, q *pawl.Queue, i pawl.ScheduleInfo) error {
	if a.asJSON() {
		l := scheduleLine{Queue: q.Name(), Schedule: i.ID, Spec: i.Spec, Kind: i.Kind, Next: moment(i.Next), Last: moment(i.Last),
			LastJob: idText(i.LastJob), Fired: i.Fired, Missed: i.Missed, Skipped: i.Skipped, Paused: i.Paused}
		l.Payload, l.PayloadBase64 = bytesOf(i.Payload)
		if i.Spec != "" { // else it is not known
			l.OnMissed, l.Overlap = optional(missedName[i.OnMissed]), optional(overlapName[i.Overlap])
		}
		return a.line(l)
	}
	state := "active"
	if i.Paused {
		state = "paused"
	}
	next := "-"
	if !i.Next.IsZero() {
		next = s.in(i.Next)
	}
	return t.add(i.ID, i.Spec, i.Kind, state, next, s.ago(i.Last), count(i.Fired), count(i.Missed), count(i.Skipped))
}

var (
	missedName  = map[pawl.Missed]string{pawl.MissedOnce: "once", pawl.MissedSkip: "skip", pawl.MissedAll: "all"}
	overlapName = map[pawl.Overlap]string{pawl.OverlapAllow: "allow", pawl.OverlapSkip: "skip"}
)

type scheduleLine struct {
	Queue         string  `json:"queue"`
	Schedule      string  `json:"schedule"`
	Spec          string  `json:"spec"`
	Kind          string  `json:"kind"`
	Payload       *string `json:"payload"`
	PayloadBase64 *string `json:"payload_base64"`
	OnMissed      *string `json:"on_missed"`
	Overlap       *string `json:"overlap"`
	Next          moment  `json:"next"`
	Last          moment  `json:"last"`
	LastJob       *string `json:"last_job"`
	Fired         int64   `json:"fired"`
	Missed        int64   `json:"missed"`
	Skipped       int64   `json:"skipped"`
	Paused        bool    `json:"paused"`
}

func (a *app) triggerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "trigger <queue> <schedule>",
		Short: "enqueue the job of a schedule now",
		Long: `Enqueues the job of a schedule now, also while it is paused, and leaves its next time
as it is. If a job of it lives and it does not overlap, no job is added: the one
that is named is the one that lives.`,
		Example:           `pawl schedules trigger reports nightly`,
		Args:              arguments("queue schedule"),
		ValidArgsFunction: a.completeQueue,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, s *session) error {
				q := s.Queue(args[0])
				got, err := q.Trigger(ctx, args[1])
				if err != nil {
					return s.orQueue(ctx, q, err)
				}
				return a.enqueued(got)
			})
		},
	}
}

// scheduleCommand is a command that does one thing to one schedule.
func (a *app) scheduleCommand(verb, short, long string, paused, removes bool, do func(*pawl.Queue, context.Context, string) error) *cobra.Command {
	yes := !removes
	cmd := &cobra.Command{
		Use:               verb + " <queue> <schedule>",
		Short:             short,
		Long:              long,
		Example:           "pawl schedules " + verb + " reports nightly",
		Args:              arguments("queue schedule"),
		ValidArgsFunction: a.completeQueue,
	}
	if removes {
		addYes(cmd, &yes)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.with(cmd.Context(), func(ctx context.Context, s *session) error {
			q := s.Queue(args[0])
			if err := s.exists(ctx, q); err != nil {
				return err
			}
			if err := a.confirm(ctx, s, yes, fmt.Sprintf("Remove schedule %s of queue %s", args[1], q.Name()), ""); err != nil {
				return err
			}
			if err := do(q, ctx, args[1]); err != nil {
				return err
			}
			return a.tell(scheduleDone{q.Name(), args[1], paused, removes}, func() error {
				state := map[bool]string{true: "paused", false: "active"}[paused]
				if removes {
					state = "removed"
				}
				_, err := fmt.Fprintf(a.out, "schedule %s of queue %s is %s\n", visible(args[1]), q.Name(), state)
				return err
			})
		})
	}
	return cmd
}

type scheduleDone struct {
	Queue    string `json:"queue"`
	Schedule string `json:"schedule"`
	Paused   bool   `json:"paused"`
	Removed  bool   `json:"removed"`
}
