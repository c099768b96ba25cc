package pawlprom_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// note is a job that does what it says.
type note struct {
	Does string `json:"does,omitempty"`
}

func (note) Kind() string { return "note" }

// do is the handler of notes.
func do(ctx context.Context, job *pawl.Job[note]) error {
	switch job.Args.Does {
	case "fail":
		return pawl.RetryAfter(0, errors.New("busy"))
	case "die":
		return pawl.Permanent(errors.New("declined"))
	case "discard":
		return pawl.Discard(errors.New("paid"))
	case "snooze":
		return pawl.Snooze(time.Hour)
	case "hang":
		if job.Crashes > 0 {
			return nil // it has done its harm
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return nil
}

// put enqueues notes that do the same.
func put(t testing.TB, q *pawl.Queue, n int, does string, opts ...pawl.Option) {
	t.Helper()
	notes := make([]note, n)
	for i := range notes {
		notes[i].Does = does
	}
	_, err := q.EnqueueMany(t.Context(), pawl.Items(notes, opts...))
	require.NoError(t, err)
}

func newClient(t testing.TB, rdb redis.UniversalClient, hooks ...pawl.Hook) *pawl.Client {
	t.Helper()
	c, err := pawl.New(rdb, pawl.Config{Hooks: hooks})
	require.NoError(t, err)
	return c
}

func newWorker(t testing.TB, c *pawl.Client, cfg pawl.WorkerConfig, queues ...string) *pawl.Worker {
	t.Helper()
	cfg.Queues = pawl.Queues(queues...)
	w, err := pawl.NewWorker(c, cfg)
	require.NoError(t, err)
	pawl.Handle(w, do)
	return w
}

// registry is one of these collectors.
func registry(t testing.TB, collectors ...prometheus.Collector) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	for _, c := range collectors {
		require.NoError(t, reg.Register(c))
	}
	return reg
}

// values is what a scrape has of a metric, by its labels' values, joined by spaces in the
// order of their names.
func values(t testing.TB, reg prometheus.Gatherer, name string) map[string]float64 {
	t.Helper()
	found := map[string]float64{}
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			key := ""
			for _, l := range m.GetLabel() {
				if key != "" {
					key += " "
				}
				key += l.GetValue()
			}
			switch {
			case m.Gauge != nil:
				found[key] = m.GetGauge().GetValue()
			case m.Counter != nil:
				found[key] = m.GetCounter().GetValue()
			default:
				found[key] = float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return found
}

func requireLint(t testing.TB, reg prometheus.Gatherer) {
	t.Helper()
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}
