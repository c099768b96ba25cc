package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

// exists is an error that names the queue if it was never used. What pawl answers of such a
// queue is often zeros, which is right for a metric, and wrong for who has mistyped a name.
// A walk of what died before 1970 asks, and is over at once.
func (s *session) exists(ctx context.Context, q *pawl.Queue) error {
	for _, err := range q.Dead().List(ctx, pawl.DeadFilter{Until: time.UnixMilli(1), Limit: 1}) {
		if isMissing(err) {
			err = notFoundf("there is no queue %s in Redis at %s: it never had a job, a worker or a schedule, or was destroyed; see --namespace, and pawl queues for those there are", q.Name(), s.where)
		}
		return err
	}
	return nil
}

// orQueue is err, or that the queue does not exist if that is why something was not found.
func (s *session) orQueue(ctx context.Context, q *pawl.Queue, err error) error {
	if isMissing(err) {
		if missing := s.exists(ctx, q); isMissing(missing) {
			return missing
		}
	}
	return err
}

// onQueue is a command of one queue that needs nothing but its name.
func (a *app) onQueue(do func(context.Context, *session, *pawl.Queue) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.with(cmd.Context(), func(ctx context.Context, s *session) error {
			return do(ctx, s, s.Queue(args[0]))
		})
	}
}

// onJob is a command of one job.
func (a *app) onJob(do func(context.Context, *session, *pawl.Queue, pawl.ID) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ids, err := parseIDs(args[1:])
		if err != nil {
			return err
		}
		return a.onQueue(func(ctx context.Context, s *session, q *pawl.Queue) error {
			return s.orQueue(ctx, q, do(ctx, s, q, ids[0]))
		})(cmd, args)
	}
}

// each does something to each of a command's jobs, and goes on after an error, which is
// said, unless Redis is away or nobody reads what is done. The error that it returns has the code of the first.
func each[T any](ctx context.Context, a *app, list []T, do func(T) error) error {
	code := exitOK
	for _, v := range list {
		err := do(v)
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil || away(err) || errors.Is(err, errOutput):
			return err
		}
		a.warn(err)
		if code == exitOK {
			code = exitCode(err)
		}
	}
	if code != exitOK {
		return &failure{code: code}
	}
	return nil
}

// warn says an error that does not end the command.
func (a *app) warn(err error) {
	_ = a.out.Flush()
	_, _ = a.err.Write([]byte("pawl: " + visible(a.plain(err)) + "\n"))
}

// isMissing reports whether an error is of something that is not there.
func isMissing(err error) bool { return exitCode(err) == exitNotFound }
