package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

// purgeable are the states that can be purged: running jobs are cancelled, one by one.
func purgeable() (names []string) {
	for _, name := range states() {
		if name != string(pawl.StateRunning) {
			names = append(names, name)
		}
	}
	return names
}

func (a *app) purgeCommand() *cobra.Command {
	var f jobFilter
	state, dry, yes := "", false, false
	cmd := &cobra.Command{
		Use:   "purge <queue> --state <state>",
		Short: "remove the jobs of a state",
		Long: `Removes for good the jobs of one state that match the filters, all of them without
one. Running jobs are not purged: cancel each. Pause the queue first if none of
them may run, and purge parked, ready and delayed, in this order. "done" are all that
are over and kept.

It asks before, or needs --yes. --dry-run counts them and changes nothing. It works
in steps of up to 500 jobs; Ctrl-C ends it after one, and what was removed is said.`,
		Example: `pawl purge emails --state ready --header campaign=spring --dry-run
pawl purge emails --state ready --header campaign=spring
pawl purge emails --state done --until 7d --yes`,
		Args:              arguments("queue"),
		ValidArgsFunction: a.completeQueue,
	}
	cmd.Flags().StringVar(&state, "state", "", "of this `state`: "+strings.Join(purgeable(), ", "))
	f.add(cmd, "at most so many, the first of the list")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "change nothing: say how many match")
	addYes(cmd, &yes)
	complete(cmd, "state", purgeable()...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if state == "" {
			return usagef("give --state: %s", strings.Join(purgeable(), ", "))
		}
		list, err := parseStates([]string{state}, purgeable()...)
		if err != nil {
			return err
		}
		return a.with(cmd.Context(), func(ctx context.Context, s *session) error {
			return a.purge(ctx, s, s.Queue(args[0]), list[0], f, dry, yes)
		})
	}
	return cmd
}

func (a *app) purge(ctx context.Context, s *session, q *pawl.Queue, state pawl.State, f jobFilter, dry, yes bool) error {
	if err := s.exists(ctx, q); err != nil {
		return err
	}
	filter, err := f.filter(s.now())
	if err != nil {
		return err
	}
	if dry {
		n, err := a.countState(ctx, q, state, filter)
		return a.removed(q, string(state), n, true, err)
	}
	before, err := q.Stats(ctx)
	if err != nil {
		return err
	}
	there := inState(before, state)
	what := "all " + count(there)
	if !f.empty() && !yes {
		many, none, err := a.soMany(ctx, func(ctx context.Context) (int64, error) { return a.countState(ctx, q, state, filter) })
		if err != nil {
			return err
		}
		if none {
			return a.removed(q, string(state), 0, false, nil)
		}
		what = many + ", of " + count(there)
	}
	if err := a.confirm(ctx, s, yes, fmt.Sprintf("Purge the %s jobs of queue %s, %s", state, q.Name(), what), ""); err != nil {
		return err
	}
	counter := func(st pawl.Stats) int64 { return st.Total.Purged }
	if state == pawl.StateDone { // which are not counted a second time
		counter = func(st pawl.Stats) int64 { return -st.Done }
	}
	stop := a.progress(ctx, fmt.Sprintf("purging %s jobs of %s", state, q.Name()), counting(q, before, 0, counter))
	n, err := q.Purge(ctx, state, filter)
	stop()
	return a.removed(q, string(state), n, false, err)
}

// countState counts the jobs of a state that match.
func (a *app) countState(ctx context.Context, q *pawl.Queue, state pawl.State, filter pawl.Filter) (int64, error) {
	return a.countAll(ctx, fmt.Sprintf("reading the %s jobs of %s", state, q.Name()), func(see func()) error {
		for _, err := range q.List(ctx, state, filter) {
			if err != nil {
				return err
			}
			see()
		}
		return nil
	})
}

func inState(st pawl.Stats, s pawl.State) int64 {
	return map[pawl.State]int64{pawl.StateReady: st.Ready, pawl.StateDelayed: st.Delayed, pawl.StateParked: st.Parked,
		pawl.StateDead: st.Dead, pawl.StateDone: st.Done}[s]
}

func (a *app) destroyCommand() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:   "destroy <queue>",
		Short: "remove a queue with all that is in it",
		Long: `Removes a queue: its jobs, the dead, counters, schedules, unique and idempotency keys,
the pause. While jobs run it refuses, and nothing is changed. Stop its producers and
workers first: an enqueue afterwards makes a new queue of that name.

It asks for the name of the queue before, or needs --yes. After an error it may be
removed in part: call it again until it says that there is no such queue. Its last
part looks at the name of every key of the server, a thousand at a time.`,
		Example: `pawl destroy reports
pawl destroy reports --yes`,
		Args:              arguments("queue"),
		ValidArgsFunction: a.completeQueue,
	}
	addYes(cmd, &yes)
	cmd.RunE = a.onQueue(func(ctx context.Context, s *session, q *pawl.Queue) error {
		if err := s.exists(ctx, q); err != nil && !isMissing(err) {
			return err
		}
		st, err := q.Stats(ctx)
		if err != nil {
			return err
		}
		question := fmt.Sprintf("Destroy queue %s, with %s and %s", q.Name(), some(st.Depth()+st.Running, "job"), some(st.Dead, "dead job"))
		if err := s.exists(ctx, q); isMissing(err) {
			question = "Destroy what is left of queue " + q.Name()
		}
		if err := a.confirm(ctx, s, yes, question, q.Name()); err != nil {
			return err
		}
		stop := a.progress(ctx, "destroying "+q.Name(), nil)
		err = q.Destroy(ctx)
		stop()
		if err != nil {
			return s.orQueue(ctx, q, err)
		}
		return a.tell(destroyLine{q.Name(), true}, func() error {
			_, err := fmt.Fprintf(a.out, "queue %s is destroyed\n", q.Name())
			return err
		})
	})
	return cmd
}

type destroyLine struct {
	Queue     string `json:"queue"`
	Destroyed bool   `json:"destroyed"`
}
