package main

import (
	"context"
	"time"
)

// workload is one thing that every system does.
type workload struct {
	name  string
	title string
	n     int // jobs
	short int // jobs with -short
	// longest is what a run may take before its N is lowered; see harness.size.
	longest time.Duration
	// once: it is a count, which a second round would only repeat.
	once    bool
	needs   []need
	redis   []string // arguments of the server
	metrics []metric
	// do gives a value for each metric.
	do func(ctx context.Context, r *run) ([]float64, error)
}

// metric is one row of the table.
type metric struct {
	name string // "" where the workload's title says all
	unit string
	more bool // more is better
}

const (
	payload   = 100 // bytes
	perSecond = "jobs/s"
	millis    = "ms"
)

const (
	usualN     = 100_000
	usualShort = 2_000
	usualLimit = 30 * time.Second
)

var rate = []metric{{unit: perSecond, more: true}}

// workloads are all, in the order of the table.
func workloads() []workload {
	all := slicesOf(enqueueWorkloads(), drainWorkloads(), latencyWorkloads(), faultWorkloads(), costWorkloads())
	for i := range all {
		w := &all[i]
		if w.n == 0 {
			w.n, w.short = usualN, usualShort
		}
		if w.longest == 0 {
			w.longest = usualLimit
		}
	}
	return all
}

func slicesOf(parts ...[]workload) []workload {
	var all []workload
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}
