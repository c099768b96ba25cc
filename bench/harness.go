package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// harness runs workloads on systems.
type harness struct {
	systems   []*system
	workloads []workload
	rounds    int
	short     bool
	progress  io.Writer
	// save, if set, is given the report after each workload: all of them take hours.
	save func(*report) error
	// earlier, if set, is the report of a run that this one goes on with.
	earlier *report
}

// systems are all there are, in the order of the columns.
func systems() []*system {
	return []*system{pawlSystem(), rawSystem(), asynqSystem(), asynqBest(), riverSystem(), bullmqSystem()}
}

func systemNamed(name string) *system {
	for _, s := range systems() {
		if s.name == name {
			return s
		}
	}
	return nil
}

// run measures everything. What fails is in the report; if ctx ends, what was
// measured by then.
func (h *harness) run(ctx context.Context) (*report, error) {
	redis, err := redisVersion(ctx)
	if err != nil {
		return nil, err
	}
	r := &report{
		Started: time.Now(), Short: h.short, Rounds: h.rounds, Machine: machine(),
		Versions: map[string]string{"Go": strings.TrimPrefix(runtime.Version(), "go"), "Redis": redis},
	}
	dir, err := os.MkdirTemp("", "pawl-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ready, cleanup := h.prepare(ctx, dir, r)
	defer cleanup()
	var before float64
	if h.earlier != nil {
		if err := r.goOn(h.earlier); err != nil {
			return nil, err
		}
		before = r.Took
	}
	begun := time.Now()
	for i := range h.workloads {
		w := &h.workloads[i]
		if r.has(w.name) {
			continue
		}
		h.say("%d/%d %s\n", i+1, len(h.workloads), w.title)
		h.measure(ctx, w, ready, r)
		r.Took = before + time.Since(begun).Seconds()
		r.order()
		if err := h.saved(r); err != nil {
			return r, err
		}
		if err := ctx.Err(); err != nil {
			return r, err
		}
	}
	return r, nil
}

// prepare returns the systems that can be measured here.
func (h *harness) prepare(ctx context.Context, dir string, r *report) (ready []*system, cleanup func()) {
	var cleanups []func()
	for _, s := range h.systems {
		if s.prepare != nil {
			h.say("preparing %s\n", s.name)
			done, err := s.prepare(ctx, dir)
			if err != nil {
				r.LeftOut = append(r.LeftOut, fmt.Sprintf("%s: %v", s.name, err))
				h.say("left out: %s: %v\n", s.name, err)
				continue
			}
			if done != nil {
				cleanups = append(cleanups, done)
			}
		}
		ready = append(ready, s)
		maps.Copy(r.Versions, s.versions())
		r.Systems = append(r.Systems, reportedSystem{Name: s.name, Settings: s.settings})
	}
	return ready, func() {
		for _, done := range slices.Backward(cleanups) {
			done()
		}
	}
}

// measure has the systems take turns within each round, so that noise of the
// machine hits all alike.
func (h *harness) measure(ctx context.Context, w *workload, ready []*system, r *report) {
	type measured struct {
		sys    *system
		n      int
		values [][]float64 // by metric
		err    error
	}
	var all []*measured
	for _, s := range ready {
		if s.meets(w.needs) {
			m := &measured{sys: s, values: make([][]float64, len(w.metrics))}
			m.n, m.err = h.size(ctx, w, s)
			all = append(all, m)
		}
	}
	rounds := h.rounds
	if w.once {
		rounds = 1
	}
	for round := range rounds {
		for i := range all {
			m := all[(i+round)%len(all)] // none is always first
			if m.err != nil || ctx.Err() != nil {
				continue
			}
			var values []float64
			if values, m.err = measure(ctx, m.sys, w, m.n, h.short); m.err != nil {
				h.say("  %s FAILED: %v\n", m.sys.name, m.err)
				continue
			}
			h.say("  %s%s\n", m.sys.name, spell(w.metrics, values))
			for k, v := range values {
				m.values[k] = append(m.values[k], v)
			}
		}
	}
	if ctx.Err() != nil {
		return // half a workload would spoil what goes on with this run
	}
	for k, metric := range w.metrics {
		for _, m := range all {
			res := result{
				Workload: w.name, Title: w.title, Metric: metric.name, Unit: metric.unit, More: metric.more,
				System: m.sys.name, N: m.n, Rounds: m.values[k],
			}
			if m.err != nil {
				res.Failed = m.err.Error()
			} else {
				res.Median = median(m.values[k])
			}
			r.Results = append(r.Results, res)
		}
	}
}

const (
	pilotPart = 50              // of N; the pilot run warms the machine up, too
	aim       = 8 * time.Second // of a run whose N is lowered
)

// size lowers the N of a system that would take longer than the workload is worth:
// a pilot run tells. Where the metric is no rate, N is as it is.
func (h *harness) size(ctx context.Context, w *workload, s *system) (int, error) {
	if h.short {
		return w.short, nil
	}
	if !w.metrics[0].more {
		return w.n, nil
	}
	values, err := measure(ctx, s, w, w.n/pilotPart, false)
	if err != nil {
		return w.n / pilotPart, fmt.Errorf("pilot: %w", err)
	}
	return scale(w.n, slices.Min(values), w.longest), nil
}

// scale is the N for a system of this rate.
func scale(n int, rate float64, longest time.Duration) int {
	if float64(n)/rate <= longest.Seconds() {
		return n
	}
	return roundDown(max(1, int(rate*aim.Seconds())))
}

func spell(metrics []metric, values []float64) string {
	var text strings.Builder
	for k, v := range values {
		fmt.Fprintf(&text, "  %s %s", number(v), strings.TrimSpace(metrics[k].unit+" "+metrics[k].name))
	}
	return text.String()
}

func (h *harness) saved(r *report) error {
	if h.save == nil {
		return nil
	}
	return h.save(r)
}

// say tells how far it is; that nobody may listen is no reason to stop.
func (h *harness) say(format string, args ...any) {
	_, _ = fmt.Fprintf(h.progress, format, args...)
}
