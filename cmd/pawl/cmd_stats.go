package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawlq/pawl"
)

func (a *app) statsCommand() *cobra.Command {
	watch, every := false, 2*time.Second
	cmd := &cobra.Command{
		Use:   "stats [queue]",
		Short: "how many jobs are where",
		Long: `Shows of each queue, or of one, how many jobs are ready, delayed, running, parked
behind a unique key, dead, and done and kept. OLDEST is how long the job that
could run first has waited: the number to alarm on. WORKERS is how many were heard
of within the last minute. Of one queue it shows its canary, and the counters of
its whole life too.

It costs one round trip a queue, however many jobs there are. With --watch it goes on
when Redis goes away, and says so.`,
		Example: `pawl stats
pawl stats emails --watch
pawl stats --json | jq 'select(.dead > 0) | .queue'`,
		Args:              arguments("[queue]"),
		ValidArgsFunction: a.completeQueue,
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "again and again, until Ctrl-C")
	cmd.Flags().Var((*span)(&every), "every", "how often, with --watch")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case !watch && cmd.Flags().Changed("every"):
			return usagef("--every is for --watch: give both, or leave it out")
		case every < fastest:
			return usagef("--every is %v: give %v or more", every, fastest)
		case watch:
			return a.watchStats(cmd.Context(), every, args)
		}
		return a.with(cmd.Context(), func(ctx context.Context, s *session) error { return a.stats(ctx, s, args) })
	}
	return cmd
}

// fastest is how often stats may be shown. Nobody reads faster, and without a bound a
// mistyped unit would keep this program and the server at work without a pause.
const fastest = 100 * time.Millisecond

// watchStats shows the stats again and again. A Redis that goes away after the first time is
// said, and waited for.
func (a *app) watchStats(ctx context.Context, every time.Duration, args []string) error {
	for shown := false; ; {
		err := a.with(ctx, func(ctx context.Context, s *session) error {
			return a.again(ctx, every, func() error {
				err := a.stats(ctx, s, args)
				shown = shown || err == nil
				return err
			})
		})
		switch {
		case shown && errors.Is(err, errInterrupted):
			return nil
		case !shown || exitCode(err) != exitAway:
			return err
		}
		a.out.Reset(a.world.out) // the last picture stays
		a.warn(fmt.Errorf("%w; it is tried again every %v", err, every))
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return nil
		}
	}
}

// again shows something until the context ends, which is no failure then.
func (a *app) again(ctx context.Context, every time.Duration, show func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if !a.asJSON() && a.outTerminal {
			_, _ = io.WriteString(a.out, "\x1b[H\x1b[2J")
		}
		err := show()
		if errors.Is(context.Cause(ctx), errInterrupted) {
			return nil
		}
		if err := errors.Join(err, a.out.Flush()); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, errInterrupted) {
				return cause
			}
			return nil
		}
	}
}

func (a *app) stats(ctx context.Context, s *session, args []string) error {
	if len(args) == 1 {
		return a.queueStats(ctx, s, s.Queue(args[0]))
	}
	names, err := a.queueNames(ctx, s)
	if err != nil {
		return err
	}
	t := a.newTable("QUEUE", "#READY", "#DELAYED", "#RUNNING", "#PARKED", "#DEAD", "#DONE", "OLDEST", "#WORKERS", "STATE")
	code := exitOK
	for page := range slices.Chunk(names, statsPage) {
		found, failed := a.statsOf(ctx, s, page)
		for _, name := range page {
			st, ok := found[name] // of a cluster one master may be away, and the others are not
			if !ok {
				continue
			}
			if err := a.showStats(s, t, name, st); err != nil {
				return err
			}
		}
		switch {
		case failed == nil:
		case ctx.Err() != nil || away(failed):
			return errors.Join(t.flush(), failed)
		default: // one with a damaged key, say, which does not hide the others
			a.warn(failed)
			code = cmp.Or(code, exitCode(failed))
		}
	}
	if err := t.flush(); err != nil || code == exitOK {
		return err
	}
	return &failure{code: code}
}

// statsOf looks at some queues. It goes past the watchdog, which hears nothing of what is
// asked of one master of a cluster by itself.
func (a *app) statsOf(ctx context.Context, s *session, names []string) (map[string]pawl.Stats, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.flags.timeout, errSilent)
	defer cancel()
	return s.Stats(ctx, names...)
}

// statsPage is how many queues are asked about before they are shown.
const statsPage = 100

func (a *app) showStats(s *session, t *table, name string, st pawl.Stats) error {
	if a.asJSON() {
		return a.line(statsJSON(name, st))
	}
	oldest := "-"
	if st.Ready > 0 {
		oldest = age(st.OldestReady)
	}
	return t.add(name, count(st.Ready), count(st.Delayed), count(st.Running), count(st.Parked), count(st.Dead), count(st.Done), oldest, count(st.Workers), s.paused(st))
}

// queueNames are those of the list of queues, which has at least one.
func (a *app) queueNames(ctx context.Context, s *session) (names []string, err error) {
	all, err := s.Queues(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range all {
		if queueName.MatchString(name) {
			names = append(names, name)
		} else {
			a.warn(fmt.Errorf("something else than pawl has put %q on the list of queues; it is left out", name))
		}
	}
	if len(names) == 0 {
		return nil, notFoundf("there are no queues in Redis at %s: none ever had a job or a worker; see --namespace", s.where)
	}
	return names, nil
}

func (a *app) queueStats(ctx context.Context, s *session, q *pawl.Queue) error {
	st, err := q.Stats(ctx)
	if err != nil {
		return err
	}
	if (st == pawl.Stats{}) {
		if err := s.exists(ctx, q); err != nil {
			return err
		}
	}
	if a.asJSON() {
		return a.line(statsJSON(q.Name(), st))
	}
	var f facts
	f.add("queue", q.Name())
	f.add("state", s.paused(st))
	f.add("ready", count(st.Ready))
	if st.Ready > 0 {
		f.add("oldest ready", age(st.OldestReady))
	}
	f.add("delayed", count(st.Delayed))
	f.add("running", count(st.Running))
	f.add("parked", count(st.Parked))
	f.add("dead", count(st.Dead))
	f.add("done, kept", count(st.Done))
	f.add("workers", count(st.Workers))
	if !st.LastCanary.IsZero() {
		f.add("last canary", s.dated(st.LastCanary))
	}
	if st.CanaryEvery > 0 {
		f.add("canary", fmt.Sprintf("every %v, none for %s", st.CanaryEvery, age(st.CanaryAge)))
	}
	for _, c := range counters(st.Total) {
		if *c.n > 0 {
			f.add("ever "+c.name, count(*c.n))
		}
	}
	return f.write(a.out)
}

// paused is what leasing does.
func (s *session) paused(st pawl.Stats) string {
	switch {
	case !st.Paused:
		return "active"
	case st.PausedUntil.IsZero():
		return "paused"
	}
	return "paused, ends " + s.in(st.PausedUntil)
}

type counter struct {
	name string
	n    *int64
}

// counters are in the order of a job's life.
func counters(c pawl.Counters) []counter {
	return []counter{
		{"enqueued", &c.Enqueued}, {"duplicate", &c.Duplicate}, {"started", &c.Started}, {"done", &c.Done}, {"skipped", &c.Skipped},
		{"failed", &c.Failed}, {"retried", &c.Retried}, {"snoozed", &c.Snoozed}, {"released", &c.Released},
		{"crashed", &c.Crashed}, {"dead", &c.Dead}, {"redriven", &c.Redriven}, {"discarded", &c.Discarded},
		{"cancelled", &c.Cancelled}, {"expired", &c.Expired}, {"purged", &c.Purged}, {"dropped", &c.Dropped},
		{"lost", &c.Lost}, {"healed", &c.Healed},
	}
}

type statsLine struct {
	Queue              string           `json:"queue"`
	Ready              int64            `json:"ready"`
	Delayed            int64            `json:"delayed"`
	Running            int64            `json:"running"`
	Parked             int64            `json:"parked"`
	Dead               int64            `json:"dead"`
	Done               int64            `json:"done"`
	Depth              int64            `json:"depth"`
	OldestReadySeconds float64          `json:"oldest_ready_seconds"`
	Paused             bool             `json:"paused"`
	PausedUntil        moment           `json:"paused_until"`
	LastCanary         moment           `json:"last_canary"`
	CanaryEverySeconds float64          `json:"canary_every_seconds"`
	CanaryAgeSeconds   float64          `json:"canary_age_seconds"`
	Workers            int64            `json:"workers"`
	Total              map[string]int64 `json:"total"`
}

func statsJSON(name string, st pawl.Stats) statsLine {
	total := map[string]int64{}
	for _, c := range counters(st.Total) {
		total[c.name] = *c.n
	}
	return statsLine{Queue: name, Ready: st.Ready, Delayed: st.Delayed, Running: st.Running, Parked: st.Parked, Dead: st.Dead,
		Done: st.Done, Depth: st.Depth(), OldestReadySeconds: st.OldestReady.Seconds(), Paused: st.Paused,
		PausedUntil: moment(st.PausedUntil), LastCanary: moment(st.LastCanary), CanaryEverySeconds: st.CanaryEvery.Seconds(),
		CanaryAgeSeconds: st.CanaryAge.Seconds(), Workers: st.Workers, Total: total}
}
