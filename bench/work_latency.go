package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func latencyWorkloads() []workload {
	return []workload{
		{
			name: "idle", title: "idle worker, a job each 50 ms, slots: 10", n: 200, short: 20, needs: []need{needsQueue},
			metrics: []metric{{name: "p50", unit: millis}, {name: "p99", unit: millis}, {name: "max", unit: millis}},
			do:      paced(50*time.Millisecond, 10, 50, 99, 100),
		},
		{
			name: "quiet", title: "one job after 10 s of quiet, slots: 10", n: 2, short: 2, needs: []need{needsQueue},
			metrics: []metric{{unit: millis}}, do: afterQuiet,
		},
		{
			name: "load", title: "2,000 jobs/s in an open loop, slots: 10", n: 40_000, short: 1_500, needs: []need{needsQueue},
			metrics: []metric{{name: "p50", unit: millis}, {name: "p99", unit: millis}, {name: "p99.9", unit: millis}},
			do:      paced(time.Second/2000, 10, 50, 99, 99.9),
		},
		{
			name: "due", title: "20,000 jobs due at one instant, slots: 100", n: 20_000, short: 500, needs: []need{needsQueue},
			metrics: []metric{{name: "first late", unit: millis}, {name: "last late", unit: millis}, {name: "early", unit: "jobs"}},
			do:      dueAtOnce,
		},
	}
}

// leadPart of the jobs come first and are not measured: connections are opened and
// scripts loaded by then.
const leadPart = 20

// paced gives percentiles of the time from an enqueue to the start of the job.
func paced(every time.Duration, slots int, percents ...float64) func(context.Context, *run) ([]float64, error) {
	return func(ctx context.Context, r *run) ([]float64, error) {
		w, err := r.work(ctx, work{Slots: slots, N: r.n, Late: true})
		if err != nil {
			return nil, err
		}
		if err := r.enqueue(ctx, load{N: r.n, Bytes: payload, Every: every}); err != nil {
			return nil, err
		}
		_, o, err := r.finish(ctx, time.Now(), w)
		if err != nil {
			return nil, err
		}
		var values []float64
		for _, percent := range percents {
			values = append(values, percentile(o.Late[r.n/leadPart:], percent)/1000)
		}
		return values, nil
	}
}

func afterQuiet(ctx context.Context, r *run) ([]float64, error) {
	quiet := 10 * time.Second
	if r.short {
		quiet = time.Second
	}
	w, err := r.work(ctx, work{Slots: 10, N: r.n, Late: true})
	if err != nil {
		return nil, err
	}
	one := load{N: 1, Bytes: payload, Callers: 1}
	if err := r.enqueue(ctx, one); err != nil {
		return nil, err
	}
	if err := errors.Join(w.wait(ctx, 1), wait(ctx, quiet)); err != nil {
		return nil, err
	}
	one.First = 1
	if err := r.enqueue(ctx, one); err != nil {
		return nil, err
	}
	_, o, err := r.finish(ctx, time.Now(), w)
	if err != nil {
		return nil, err
	}
	return []float64{float64(o.Late[1]) / 1000}, nil
}

// dueAtOnce has the worker wait while the jobs are enqueued: it must not run any.
func dueAtOnce(ctx context.Context, r *run) ([]float64, error) {
	ahead := 8 * time.Second
	if r.short {
		ahead = 2 * time.Second
	}
	w, err := r.work(ctx, work{Slots: drainSlots, N: r.n, Late: true})
	if err != nil {
		return nil, err
	}
	// A whole second, for those that know no other.
	due := time.Now().Add(ahead + time.Second).Truncate(time.Second)
	if err := r.enqueue(ctx, load{N: r.n, Bytes: payload, Due: due.UnixMicro()}); err != nil {
		return nil, err
	}
	if late := time.Since(due); late > 0 {
		return nil, fmt.Errorf("the last job was enqueued %v after it was due", late)
	}
	_, o, err := r.finish(ctx, due, w)
	if err != nil {
		return nil, err
	}
	early := 0
	for _, late := range o.Late {
		if late < 0 {
			early++
		}
	}
	if early > 0 && r.sys.name == "pawl" {
		return nil, fmt.Errorf("%d jobs ran early", early)
	}
	return []float64{percentile(o.Late, 0) / 1000, percentile(o.Late, 100) / 1000, float64(early)}, nil
}
