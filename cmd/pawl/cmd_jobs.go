package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

// shownByDefault is how many of a list people are shown unless they say otherwise.
const shownByDefault = 100

const limitUsage = "at most so many, 0 for all; default 100 as text, all as JSON"

func (a *app) jobsCommand() *cobra.Command {
	var f jobFilter
	names := []string{string(pawl.StateRunning), string(pawl.StateReady), string(pawl.StateDelayed), string(pawl.StateParked)}
	cmd := &cobra.Command{
		Use:   "jobs <queue>",
		Short: "the jobs of a queue, by state",
		Long: `Lists the jobs of a queue: first those that run, then those that are ready, in the
order in which they will be taken, then delayed ones, the next one first, then
those that are parked behind a unique key; or of the states that --state names.
"done" are all that are over and kept, cancelled and discarded ones too.
"pawl dead list" says more of the dead.

Redis has no index of kinds, headers and times: all jobs of a state are read, in
pages of 250, and those that do not match are passed over. The queue goes on
meanwhile. That no job matches is no error: it is said on standard error.`,
		Example: `pawl jobs emails
pawl jobs emails --state running
pawl jobs emails --state delayed --kind welcome --limit 10
pawl jobs emails --state ready,delayed --header tenant=acme --json | jq -r .id`,
		Args:              arguments("queue"),
		ValidArgsFunction: a.completeQueue,
	}
	cmd.Flags().StringSliceVar(&names, "state", names, "of these `states`: "+strings.Join(states(), ", "))
	f.add(cmd, limitUsage)
	complete(cmd, "state", states()...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		list, err := parseStates(names, states()...)
		if err != nil {
			return err
		}
		return a.with(cmd.Context(), func(ctx context.Context, s *session) error {
			q := s.Queue(args[0])
			show := newShowing(a, f.limit, "job")
			f.limit = 0
			filter, err := f.filter(s.now())
			if err != nil {
				return err
			}
			t := a.newTable("ID", "STATE", "~KIND", "#ATTEMPT", "WHEN", "~LAST ERROR", "~PAYLOAD")
			for _, state := range list {
				if err = walk(show, q.List(ctx, state, filter), func(j pawl.JobInfo) error { return a.showJob(s, t, j) }); err != nil || show.full {
					break
				}
			}
			return errors.Join(t.flush(), show.end(s.orQueue(ctx, q, err)))
		})
	}
	return cmd
}

// showing counts what is shown of a list, up to its limit.
type showing struct {
	a     *app
	thing string
	which string // those that are shown are, if that is to be said
	limit int    // 0: all
	n     int
	full  bool
}

func newShowing(a *app, most limit, thing string) *showing {
	limit := int(most)
	if limit < 0 {
		limit = shownByDefault
		if a.asJSON() {
			limit = 0
		}
	}
	return &showing{a: a, limit: limit, thing: thing}
}

// walk shows what a walk finds until enough was shown.
func walk[T any](s *showing, found iter.Seq2[T, error], show func(T) error) error {
	for v, err := range found {
		if err != nil {
			return err
		}
		if s.limit > 0 && s.n == s.limit {
			s.full = true
			return nil
		}
		s.n++
		if err := show(v); err != nil {
			return err
		}
	}
	return nil
}

// end says what was not shown.
func (s *showing) end(err error) error {
	switch {
	case err != nil:
		if errors.Is(err, errInterrupted) {
			return fmt.Errorf("%w after %s", errInterrupted, some(s.n, s.thing))
		}
		return err
	case s.full:
		s.a.note("%s%s shown, there are more: --limit 0 shows all", s.which, some(s.n, s.thing))
	case s.n == 0:
		s.a.note("no %s matches", s.thing)
	}
	return nil
}

// note says something beside the output.
func (a *app) note(format string, args ...any) { a.warn(fmt.Errorf(format, args...)) }

func (a *app) showJob(s *session, t *table, j pawl.JobInfo) error {
	if a.asJSON() {
		return a.line(jobJSON(j))
	}
	return t.add(j.ID.String(), string(j.State), j.Kind, fmt.Sprint(j.Attempt), s.moves(j), j.LastError, string(j.Payload))
}

// moves is what a job does, and since or until when.
func (s *session) moves(j pawl.JobInfo) string {
	switch j.State {
	case pawl.StateReady:
		return "waits " + age(s.now().Sub(j.DueAt))
	case pawl.StateDelayed:
		return "due " + s.in(j.DueAt)
	case pawl.StateRunning:
		text := "runs " + age(s.now().Sub(j.StartedAt))
		if j.Worker != "" {
			text += " on " + j.Worker
		}
		return text
	case pawl.StateParked:
		return "waits behind its key"
	case pawl.StateDead:
		return "enqueued " + s.ago(j.EnqueuedAt)
	}
	return "ended " + s.ago(j.DoneAt)
}
