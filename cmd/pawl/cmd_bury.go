package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

func (a *app) deadDeleteCommand() *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:   "delete <queue> <id>...",
		Short: "remove dead jobs by their ids",
		Long: `Removes dead jobs for good, with their post-mortems. It asks before, or needs
--yes. An id that is not dead is an error; the others are removed all the same.`,
		Example:           `pawl dead delete emails 01977420-dc7b-71c8-8001-23456789abcd`,
		Args:              arguments("queue id..."),
		ValidArgsFunction: a.completeDead(0),
	}
	addYes(cmd, &yes)
	cmd.RunE = a.onJobs(func(ctx context.Context, s *session, q *pawl.Queue, ids []pawl.ID) error {
		return a.confirm(ctx, s, yes, "Delete "+some(len(ids), "dead job")+" of queue "+q.Name(), "")
	}, "deleted", func(ctx context.Context, q *pawl.Queue, id pawl.ID) error {
		n, err := q.Dead().Delete(ctx, id)
		if err == nil && n == 0 {
			return notFoundf("%s is not dead, or there is no such job in queue %s", id, q.Name())
		}
		return err
	})
	return cmd
}

func (a *app) deadPurgeCommand() *cobra.Command {
	var f deadFilter
	all, dry, yes := false, false, false
	cmd := &cobra.Command{
		Use:   "purge <queue>",
		Short: "remove the dead jobs that match",
		Long: `Removes for good all dead jobs that match the filters, or with --all all there are.
It asks before, or needs --yes. --dry-run counts them and changes nothing.`,
		Example: `pawl dead purge emails --reason expired --dry-run
pawl dead purge emails --reason expired --until 7d
pawl dead purge emails --all --yes`,
		Args:              arguments("queue"),
		ValidArgsFunction: a.completeQueue,
	}
	f.add(a, cmd, takenFilters)
	cmd.Flags().BoolVar(&all, "all", false, "all dead jobs")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "change nothing: say how many match")
	addYes(cmd, &yes)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.check(all, ""); err != nil {
			return err
		}
		return a.with(cmd.Context(), func(ctx context.Context, s *session) error {
			q := s.Queue(args[0])
			filter, err := f.filter(s.now())
			if err != nil {
				return err
			}
			if err := s.exists(ctx, q); err != nil {
				return err
			}
			if dry {
				n, err := a.countDead(ctx, q, filter)
				return a.removed(q, string(pawl.StateDead), n, true, err)
			}
			before, err := q.Stats(ctx)
			if err != nil {
				return err
			}
			what, none, err := "all "+count(before.Dead), false, error(nil)
			if f.chooses() && !yes {
				what, none, err = a.soMany(ctx, func(ctx context.Context) (int64, error) { return a.countDead(ctx, q, filter) })
			} else if f.limit > 0 {
				what = count(min(before.Dead, int64(f.limit))) + " of " + count(before.Dead)
			}
			if err != nil {
				return err
			}
			if none {
				return a.removed(q, string(pawl.StateDead), 0, false, nil)
			}
			if err := a.confirm(ctx, s, yes, fmt.Sprintf("Purge the dead jobs of queue %s, %s", q.Name(), what), ""); err != nil {
				return err
			}
			stop := a.progress(ctx, "purging dead jobs of "+q.Name(), counting(q, before, 0, func(st pawl.Stats) int64 { return st.Total.Purged }))
			n, err := q.Dead().Purge(ctx, filter)
			stop()
			return a.removed(q, string(pawl.StateDead), int64(n), false, err)
		})
	}
	return cmd
}

// countPatience is how long a question waits to be told how many jobs it is about.
const countPatience = 2 * time.Second

// soMany counts what a question is about, for as long as somebody may be kept waiting.
func (a *app) soMany(ctx context.Context, walk func(context.Context) (int64, error)) (what string, none bool, err error) {
	hasty, cancel := context.WithTimeout(ctx, countPatience)
	defer cancel()
	n, err := walk(hasty)
	switch {
	case err == nil:
		return count(n) + " that match", n == 0, nil
	case ctx.Err() == nil && hasty.Err() != nil:
		return "at least " + count(n) + " that match", false, nil
	}
	return "", false, err
}

// countDead counts the dead jobs that match.
func (a *app) countDead(ctx context.Context, q *pawl.Queue, filter pawl.DeadFilter) (int64, error) {
	return a.countAll(ctx, "reading the dead jobs of "+q.Name(), func(see func()) error {
		for _, err := range q.Dead().List(ctx, filter) {
			if err != nil {
				return err
			}
			see()
		}
		return nil
	})
}

// countAll counts what a walk sees, and says how far it is.
func (a *app) countAll(ctx context.Context, what string, walk func(see func()) error) (int64, error) {
	var n atomic.Int64
	stop := a.progress(ctx, what, func(context.Context) (string, error) { return count(n.Load()), nil })
	defer stop()
	err := walk(func() { n.Add(1) })
	return n.Load(), err
}

type removedLine struct {
	Queue    string `json:"queue"`
	State    string `json:"state"`
	Removed  int64  `json:"removed"`
	Matched  *int64 `json:"matched"` // of a dry run
	DryRun   bool   `json:"dry_run"`
	Complete bool   `json:"complete"`
}

// cutShort is the error of long work that was interrupted, between two of its steps or in
// one of them.
func cutShort(failed error, done, still string) error {
	more := ""
	if errors.Is(failed, pawl.ErrUnconfirmed) {
		more = "those of the last step, 500 at most, may have been " + done + " too; "
	}
	return fmt.Errorf("%w: %sthe others are %s; the same command goes on", errInterrupted, more, still)
}

// removed says what a purge has done, also if it was cut short.
func (a *app) removed(q *pawl.Queue, state string, n int64, dry bool, failed error) error {
	if failed != nil && n == 0 && !errors.Is(failed, errInterrupted) {
		return failed
	}
	l := removedLine{Queue: q.Name(), State: state, Removed: n, DryRun: dry, Complete: failed == nil}
	text := some(n, state+" job") + " removed"
	if dry {
		l.Removed, l.Matched, text = 0, &n, some(n, state+" job")+" would be removed"
	}
	err := a.tell(l, func() error { _, err := fmt.Fprintln(a.out, text); return err })
	if err == nil && errors.Is(failed, errInterrupted) {
		return cutShort(failed, "removed", "as they were")
	}
	if failed == nil && n == 0 {
		a.note("no %s job matches", state)
	}
	return errors.Join(err, failed)
}
