package pawlprom

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlq/pawl"
)

// buckets are the upper bounds of both histograms, in seconds: from 1 ms to 1 h.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}

// Metrics is a hook that counts what this process runs: give it to pawl.Config.Hooks in
// every worker process. It does no I/O, and is safe for concurrent use. NewMetrics makes
// it; the zero Metrics is of no use.
type Metrics struct {
	runs, retries, deaths, crashes, losses *prometheus.CounterVec
	took, waited                           *prometheus.HistogramVec
}

var (
	_ pawl.OnStarted   = (*Metrics)(nil)
	_ pawl.OnDone      = (*Metrics)(nil)
	_ pawl.OnRetry     = (*Metrics)(nil)
	_ pawl.OnSnoozed   = (*Metrics)(nil)
	_ pawl.OnReleased  = (*Metrics)(nil)
	_ pawl.OnDead      = (*Metrics)(nil)
	_ pawl.OnDiscarded = (*Metrics)(nil)
	_ pawl.OnCancelled = (*Metrics)(nil)
	_ pawl.OnCrashed   = (*Metrics)(nil)
	_ pawl.OnLeaseLost = (*Metrics)(nil)
)

// NewMetrics makes a Metrics and registers its series, which appear with their first
// event. One Metrics will do for all clients and workers of a namespace in the process: a
// second one with the same registerer is refused with prometheus.AlreadyRegisteredError. A
// nil registerer, of any type, is pawl.ErrInvalid. After an error nothing is registered.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	if isNil(reg) {
		return nil, fmt.Errorf("pawlprom: %w: the registerer is nil: give prometheus.DefaultRegisterer, or one of your own", pawl.ErrInvalid)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"queue", "kind"}, labels...))
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"queue", "kind"})
	}
	m := &Metrics{
		runs:    counter("pawl_job_runs_total", "Runs of handlers in this process that ended, by what became of the job.", "outcome"),
		retries: counter("pawl_job_retries_total", "Failed attempts in this process after which the job comes again."),
		deaths:  counter("pawl_job_deaths_total", "Jobs that this process buried, run or not, by reason.", "reason"),
		crashes: counter("pawl_job_crashes_total", "Jobs that this process took over from a worker that died or hung."),
		losses:  counter("pawl_job_lease_losses_total", "Runs in this process that lost their lease, whose effect may happen twice."),
		took:    histogram("pawl_job_run_seconds", "Time that runs took, however they ended."),
		waited:  histogram("pawl_job_wait_seconds", "Time from when a job was due to the start of its run."),
	}
	all := []prometheus.Collector{m.runs, m.retries, m.deaths, m.crashes, m.losses, m.took, m.waited}
	for i, c := range all {
		if err := reg.Register(c); err != nil {
			for _, c := range all[:i] {
				reg.Unregister(c)
			}
			return nil, fmt.Errorf("pawlprom: register metrics: %w", err)
		}
	}
	return m, nil
}

// isNil reports whether a registerer is nil, or a nil pointer of any type.
func isNil(reg prometheus.Registerer) bool {
	return reg == nil || reflect.ValueOf(reg).Kind() == reflect.Pointer && reflect.ValueOf(reg).IsNil()
}

// Started implements pawl.OnStarted.
func (m *Metrics) Started(_ context.Context, e pawl.Event) {
	m.waited.WithLabelValues(e.Job.Queue, kind(e)).Observe(e.Wait.Seconds())
}

// Done implements pawl.OnDone.
func (m *Metrics) Done(_ context.Context, e pawl.Event) { m.ended(e, "done") }

// Retry implements pawl.OnRetry.
func (m *Metrics) Retry(_ context.Context, e pawl.RetryEvent) {
	m.retries.WithLabelValues(e.Job.Queue, kind(e.Event)).Inc()
	m.ended(e.Event, "retried")
}

// Snoozed implements pawl.OnSnoozed.
func (m *Metrics) Snoozed(_ context.Context, e pawl.RetryEvent) { m.ended(e.Event, "snoozed") }

// Released implements pawl.OnReleased.
func (m *Metrics) Released(_ context.Context, e pawl.Event) { m.ended(e, "released") }

// Dead implements pawl.OnDead.
func (m *Metrics) Dead(_ context.Context, e pawl.DeadEvent) {
	m.deaths.WithLabelValues(e.Job.Queue, kind(e.Event), string(e.Reason)).Inc()
	m.ended(e.Event, "dead")
}

// Discarded implements pawl.OnDiscarded.
func (m *Metrics) Discarded(_ context.Context, e pawl.Event) { m.ended(e, "discarded") }

// Cancelled implements pawl.OnCancelled.
func (m *Metrics) Cancelled(_ context.Context, e pawl.Event) { m.ended(e, "cancelled") }

// Crashed implements pawl.OnCrashed.
func (m *Metrics) Crashed(_ context.Context, e pawl.Event) {
	m.crashes.WithLabelValues(e.Job.Queue, kind(e)).Inc()
}

// LeaseLost implements pawl.OnLeaseLost.
func (m *Metrics) LeaseLost(_ context.Context, e pawl.Event) {
	m.losses.WithLabelValues(e.Job.Queue, kind(e)).Inc()
}

// ended counts a run, unless there was none.
func (m *Metrics) ended(e pawl.Event, outcome string) {
	if !e.Ran {
		return
	}
	m.runs.WithLabelValues(e.Job.Queue, kind(e), outcome).Inc()
	m.took.WithLabelValues(e.Job.Queue, kind(e)).Observe(e.Took.Seconds())
}

// kind is the value of the label: of the kinds that this process handles there are as many
// as it has handlers, of the others as many as a producer likes. Only UTF-8 can be a label.
func kind(e pawl.Event) string {
	if !e.Handled {
		return "other"
	}
	return strings.ToValidUTF8(e.Job.Kind, "\uFFFD")
}
