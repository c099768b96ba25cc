package pawlprom_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlprom"
	"github.com/pawlq/pawl/pawltest"
)

// measured is an Env whose client has Metrics, in virtual time.
func measured(t *testing.T, fn func(t *testing.T, env *pawltest.Env, reg *prometheus.Registry)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		m, err := pawlprom.NewMetrics(reg)
		require.NoError(t, err)
		fn(t, pawltest.New(t, pawl.Config{Hooks: []pawl.Hook{m}}), reg)
	})
}

func TestEachRunIsCountedByItsOutcome(t *testing.T) {
	t.Parallel()
	measured(t, func(t *testing.T, env *pawltest.Env, reg *prometheus.Registry) {
		q := env.Client.Queue("mail")
		w := newWorker(t, env.Client, pawl.WorkerConfig{}, "mail")
		put(t, q, 1, "snooze")
		env.DrainReady(w)
		_, err := q.Purge(t.Context(), pawl.StateDelayed, pawl.Filter{})
		require.NoError(t, err)
		for _, does := range []string{"", "", "die", "discard"} {
			put(t, q, 1, does)
		}
		put(t, q, 1, "fail", pawl.MaxAttempts(3))
		env.Drain(w)
		require.Equal(t, map[string]float64{"note done mail": 2, "note dead mail": 2, "note discarded mail": 1,
			"note snoozed mail": 1, "note retried mail": 2}, values(t, reg, "pawl_job_runs_total"))
		require.Equal(t, map[string]float64{"note mail": 2}, values(t, reg, "pawl_job_retries_total"))
		require.Equal(t, map[string]float64{"note mail permanent": 1, "note mail exhausted": 1}, values(t, reg, "pawl_job_deaths_total"))
		require.Equal(t, map[string]float64{"note mail": 8}, values(t, reg, "pawl_job_run_seconds"))
		require.Equal(t, map[string]float64{"note mail": 8}, values(t, reg, "pawl_job_wait_seconds"))
		requireLint(t, reg)
	})
}

func TestRunsThatAreCutShortAreCounted(t *testing.T) {
	t.Parallel()
	measured(t, func(t *testing.T, env *pawltest.Env, reg *prometheus.Registry) {
		q, ctx := env.Client.Queue("mail"), t.Context()
		job, err := q.Enqueue(ctx, note{"hang"})
		require.NoError(t, err)
		run, stop := context.WithCancel(ctx)
		w := newWorker(t, env.Client, pawl.WorkerConfig{DrainTimeout: time.Second}, "mail")
		ended := make(chan error, 1)
		go func() { ended <- w.Run(run) }()
		env.Advance(time.Second)
		require.NoError(t, q.Cancel(ctx, job.ID))
		env.Advance(time.Minute)
		put(t, q, 1, "hang")
		env.Advance(time.Second)
		stop()
		require.Error(t, <-ended, "one job was released")
		require.Equal(t, map[string]float64{"note cancelled mail": 1, "note released mail": 1}, values(t, reg, "pawl_job_runs_total"))
	})
}

// A job that is ended or put back unrun is no run.
func TestWhatWasNotRunIsNoRun(t *testing.T) {
	t.Parallel()
	measured(t, func(t *testing.T, env *pawltest.Env, reg *prometheus.Registry) {
		q := env.Client.Queue("mail")
		put(t, q, 3, "", pawl.ExpireIn(time.Minute))
		require.NoError(t, q.Pause(t.Context(), time.Hour))
		for i := range 200 {
			_, err := q.EnqueueRaw(t.Context(), fmt.Sprintf("made up %d", i), nil)
			require.NoError(t, err)
		}
		env.Drain(newWorker(t, env.Client, pawl.WorkerConfig{UnknownKindGrace: time.Minute}, "mail"))
		require.Empty(t, values(t, reg, "pawl_job_runs_total"))
		require.Empty(t, values(t, reg, "pawl_job_run_seconds"))
		require.Empty(t, values(t, reg, "pawl_job_wait_seconds"))
		require.Equal(t, map[string]float64{"note mail expired": 3, "other mail unhandled": 200}, values(t, reg, "pawl_job_deaths_total"))
	})
}

func TestACrashIsCountedByItsKindFromTheFirstEventOn(t *testing.T) {
	t.Parallel()
	measured(t, func(t *testing.T, env *pawltest.Env, reg *prometheus.Registry) {
		put(t, env.Client.Queue("mail"), 2, "hang")
		doomed := newWorker(t, env.Client, pawl.WorkerConfig{}, "mail")
		env.Start(doomed)
		env.Advance(time.Second)
		env.Crash(doomed)

		// Another process, which has heard of nothing yet.
		other := prometheus.NewPedanticRegistry()
		m, err := pawlprom.NewMetrics(other)
		require.NoError(t, err)
		w := newWorker(t, newClient(t, env.Redis, m), pawl.WorkerConfig{DrainTimeout: time.Second}, "mail")
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		env.Advance(time.Minute)
		require.Equal(t, map[string]float64{"note mail": 2}, values(t, other, "pawl_job_crashes_total"))
		require.Empty(t, values(t, reg, "pawl_job_crashes_total"))
		stop()
		require.NoError(t, <-ended)
	})
}

func TestTheHistogramsAreInSeconds(t *testing.T) {
	t.Parallel()
	measured(t, func(t *testing.T, env *pawltest.Env, reg *prometheus.Registry) {
		w, err := pawl.NewWorker(env.Client, pawl.WorkerConfig{Queues: pawl.Queues("mail")})
		require.NoError(t, err)
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error {
			<-time.After(40 * time.Second)
			return nil
		})
		put(t, env.Client.Queue("mail"), 1, "")
		env.Advance(7 * time.Second)
		env.Drain(w)
		families, err := reg.Gather()
		require.NoError(t, err)
		took := map[string]float64{}
		for _, f := range families {
			if h := f.GetMetric()[0].GetHistogram(); h != nil {
				require.InDelta(t, 0.001, h.GetBucket()[0].GetUpperBound(), 0)
				require.InDelta(t, 3600, h.GetBucket()[len(h.GetBucket())-1].GetUpperBound(), 0)
				took[f.GetName()] = h.GetSampleSum()
			}
		}
		require.InDelta(t, 40, took["pawl_job_run_seconds"], 0.5)
		require.InDelta(t, 7, took["pawl_job_wait_seconds"], 0.5)
	})
}

func TestLabelsAreUTF8(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	m, err := pawlprom.NewMetrics(reg)
	require.NoError(t, err)
	e := pawl.Event{Job: &pawl.RawJob{Queue: "mail", Kind: "caf\xe9\xff!"}, Handled: true, Ran: true, Err: errors.New("no")}
	m.Done(t.Context(), e)
	m.LeaseLost(t.Context(), e)
	require.Equal(t, map[string]float64{"caf\uFFFD! done mail": 1}, values(t, reg, "pawl_job_runs_total"))
	require.Equal(t, map[string]float64{"caf\uFFFD! mail": 1}, values(t, reg, "pawl_job_lease_losses_total"))
}

func TestASecondMetricsIsRefusedAndLeavesNothing(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	taken := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "pawl_job_wait_seconds",
		Help: "Time from when a job was due to the start of its run."}, []string{"queue", "kind"})
	require.NoError(t, reg.Register(taken))
	_, err := pawlprom.NewMetrics(reg)
	require.ErrorContains(t, err, "pawlprom: register metrics")
	require.True(t, reg.Unregister(taken))
	_, err = pawlprom.NewMetrics(reg)
	require.NoError(t, err, "the first one left nothing behind")
	_, err = pawlprom.NewMetrics(reg)
	require.ErrorAs(t, err, &prometheus.AlreadyRegisteredError{})
}

type another struct{ prometheus.Registerer }

// A nil pointer in the interface is as little a registerer as nil.
func TestANilRegistererIsAnError(t *testing.T) {
	t.Parallel()
	for _, reg := range []prometheus.Registerer{nil, (*prometheus.Registry)(nil), (*another)(nil)} {
		m, err := pawlprom.NewMetrics(reg)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, "the registerer is nil")
		require.Nil(t, m)
	}
	_, err := pawlprom.NewMetrics(another{prometheus.NewRegistry()})
	require.NoError(t, err, "one that is no pointer")
}
