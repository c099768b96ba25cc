package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

func (a *app) queuesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "queues",
		Short: "the names of the queues",
		Long: `Lists the queues of the namespace that ever had a job or a worker and were not
destroyed, one a line. It costs one round trip.`,
		Example: `pawl queues
pawl queues --text | grep mail`,
		Args: arguments(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, s *session) error {
				names, err := a.queueNames(ctx, s)
				for _, name := range names {
					if a.asJSON() {
						err = a.line(queueLine{name})
					} else {
						_, err = fmt.Fprintln(a.out, visible(name))
					}
					if err != nil {
						return err
					}
				}
				return err
			})
		},
	}
}

func (a *app) workersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "workers [queue]",
		Short: "who works",
		Long: `Lists the workers that have been heard of within the last minute, or those of them
that serve one queue. Workers beat every 10 s: one that was SEEN longer than 20 s
ago is dead, frozen or cut off. BUSY is how many of its slots had a job at its last
beat. No workers at all are an error, as of a queue that nobody serves.

It costs one round trip a queue.`,
		Example: `pawl workers
pawl workers emails
pawl workers --json | jq -r .build | sort | uniq -c`,
		Args:              arguments("[queue]"),
		ValidArgsFunction: a.completeQueue,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.with(cmd.Context(), func(ctx context.Context, s *session) error {
				workers, err := a.workersOf(ctx, s, args)
				if err != nil {
					return err
				}
				t := a.newTable("WORKER", "BUSY", "SEEN", "STARTED", "STATE", "QUEUES", "~BUILD")
				for _, w := range workers {
					if err := a.showWorker(s, t, w); err != nil {
						return err
					}
				}
				return t.flush()
			})
		},
	}
}

// workersOf are all, or those of one queue, and at least one.
func (a *app) workersOf(ctx context.Context, s *session, args []string) ([]pawl.WorkerInfo, error) {
	if len(args) == 1 {
		if err := s.exists(ctx, s.Queue(args[0])); err != nil {
			return nil, err
		}
	}
	workers, err := s.Workers(ctx)
	if err != nil {
		return nil, err
	}
	if len(args) == 1 {
		workers = slices.DeleteFunc(workers, func(w pawl.WorkerInfo) bool { return !slices.Contains(w.Queues, args[0]) })
		if len(workers) == 0 {
			return nil, notFoundf("no worker of queue %s has been heard of for a minute", args[0])
		}
	}
	if len(workers) == 0 {
		return nil, notFoundf("no worker has been heard of for a minute in Redis at %s", s.where)
	}
	return workers, nil
}

func (a *app) showWorker(s *session, t *table, w pawl.WorkerInfo) error {
	if a.asJSON() {
		return a.line(workerLine{Worker: w.Name, Host: w.Host, PID: w.PID, Build: w.Build, Queues: w.Queues,
			Concurrency: w.Concurrency, Running: w.Running, StartedAt: moment(w.StartedAt), SeenAt: moment(w.SeenAt), Draining: w.Draining})
	}
	state := "active"
	if w.Draining {
		state = "draining"
	}
	return t.add(w.Name, fmt.Sprintf("%d/%d", w.Running, w.Concurrency), s.ago(w.SeenAt), s.ago(w.StartedAt), state, strings.Join(w.Queues, ","), w.Build)
}

type workerLine struct {
	Worker      string   `json:"worker"`
	Host        string   `json:"host"`
	PID         int      `json:"pid"`
	Build       string   `json:"build"`
	Queues      []string `json:"queues"`
	Concurrency int      `json:"concurrency"`
	Running     int      `json:"running"`
	StartedAt   moment   `json:"started_at"`
	SeenAt      moment   `json:"seen_at"`
	Draining    bool     `json:"draining"`
}

type queueLine struct {
	Queue string `json:"queue"`
}
