package main

import (
	"context"
	"fmt"
	"time"
)

// drainSlots are of the drains that say nothing else.
const drainSlots = 100

func enqueueWorkloads() []workload {
	var all []workload
	for _, callers := range []int{1, 16, 64} {
		all = append(all, workload{
			name: fmt.Sprintf("enqueue-%d", callers), title: fmt.Sprintf("enqueue, callers: %d", callers),
			metrics: rate, do: enqueueBy(callers),
		})
	}
	return append(all, workload{
		name: "enqueue-bulk", title: "enqueue in bulk", needs: []need{needsBulk}, metrics: rate, do: enqueueBy(0),
	})
}

func enqueueBy(callers int) func(context.Context, *run) ([]float64, error) {
	return func(ctx context.Context, r *run) ([]float64, error) {
		took, err := r.enqueued(ctx, callers, payload)
		if err != nil {
			return nil, err
		}
		_, _, err = r.drain(ctx, work{Slots: drainSlots})
		return ratePerSecond(r.n, took), err
	}
}

func (r *run) enqueued(ctx context.Context, callers, bytes int) (time.Duration, error) {
	start := time.Now()
	err := r.enqueue(ctx, load{N: r.n, Bytes: bytes, Callers: callers})
	return time.Since(start), err
}

func drainWorkloads() []workload {
	var all []workload
	for _, slots := range []int{1, 10, 100, 500} {
		all = append(all, workload{
			name: fmt.Sprintf("drain-%d", slots), title: fmt.Sprintf("drain, slots: %d", slots),
			metrics: rate, do: drainBy(slots),
		})
	}
	both := []metric{{name: "enqueue, callers: 16", unit: perSecond, more: true}, {name: "drain, slots: 100", unit: perSecond, more: true}}
	return append(all,
		workload{
			name: "both", title: "enqueue (callers: 16) and drain (slots: 100) at the same time", needs: []need{needsQueue}, metrics: rate, do: bothAtOnce,
		},
		workload{
			name: "backlog", title: "drain a backlog of 1,000,000, slots: 100", n: 1_000_000, short: 10_000, longest: 4 * time.Minute,
			metrics: rate, do: drainBy(drainSlots),
		},
		workload{
			name: "large", title: "payloads of 10 KB", n: 20_000, short: 500, metrics: both, do: bothInTurn(10_000),
		},
		workload{
			name: "aof", title: "AOF everysec", needs: []need{needsRedis}, redis: aofEverysec, metrics: both, do: bothInTurn(payload),
		},
		workload{
			name: "processes", title: "drain by two processes, slots: 50 each", needs: []need{needsQueue}, metrics: rate, do: drainByProcesses,
		},
	)
}

func drainBy(slots int) func(context.Context, *run) ([]float64, error) {
	return func(ctx context.Context, r *run) ([]float64, error) {
		if err := r.fill(ctx, payload); err != nil {
			return nil, err
		}
		took, _, err := r.drain(ctx, work{Slots: slots})
		return ratePerSecond(r.n, took), err
	}
}

func bothInTurn(bytes int) func(context.Context, *run) ([]float64, error) {
	return func(ctx context.Context, r *run) ([]float64, error) {
		enqueue, err := r.enqueued(ctx, 16, bytes)
		if err != nil {
			return nil, err
		}
		drain, _, err := r.drain(ctx, work{Slots: drainSlots})
		return append(ratePerSecond(r.n, enqueue), ratePerSecond(r.n, drain)...), err
	}
}

func bothAtOnce(ctx context.Context, r *run) ([]float64, error) {
	w, err := r.work(ctx, work{Slots: drainSlots, N: r.n})
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if _, err := r.enqueued(ctx, 16, payload); err != nil {
		return nil, err
	}
	took, _, err := r.finish(ctx, start, w)
	return ratePerSecond(r.n, took), err
}

// drainByProcesses starts both processes before the clock.
func drainByProcesses(ctx context.Context, r *run) (values []float64, err error) {
	const processes = 2
	var sessions []session
	defer func() {
		for _, s := range sessions {
			if closing := s.close(ctx); err == nil {
				err = closing
			}
		}
	}()
	for range processes {
		s, err := r.sys.spawn(ctx, r.store.at)
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, s)
	}
	if err := r.fill(ctx, payload); err != nil {
		return nil, err
	}
	start := time.Now()
	var workers []worker
	for _, s := range sessions {
		w, err := s.work(ctx, work{Slots: drainSlots / processes, N: r.n})
		if err != nil {
			return nil, err
		}
		workers = append(workers, w)
	}
	if err := r.acknowledged(ctx, r.n, sessions...); err != nil {
		return nil, err
	}
	took := time.Since(start)
	var outcomes []outcome
	for _, w := range workers {
		o, err := w.stop(ctx)
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, o)
	}
	return ratePerSecond(r.n, took), check(r.n, outcomes...)
}
