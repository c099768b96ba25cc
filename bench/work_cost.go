package main

import (
	"context"
	"slices"
	"time"
)

var costs = []metric{
	{name: "Redis CPU, enqueue", unit: "µs"}, {name: "Redis CPU, drain", unit: "µs"},
	{name: "commands, enqueue", unit: "a job"}, {name: "commands, drain", unit: "a job"},
	{name: "round trips, enqueue", unit: "a job"}, {name: "round trips, drain", unit: "a job"},
}

func costWorkloads() []workload {
	return []workload{
		{
			name: "memory", title: "memory of Redis", once: true, needs: []need{needsRedis}, do: memory,
			metrics: []metric{
				{name: "a waiting job", unit: "bytes"}, {name: "left after the drain", unit: "keys"}, {name: "left after the drain", unit: "bytes"},
			},
		},
		{
			name: "cost", title: "a job in batches", needs: []need{needsRedis}, metrics: costs,
			do: func(ctx context.Context, r *run) ([]float64, error) { return r.cost(ctx, 0, drainSlots) },
		},
		{
			name: "cost-10", title: "a job, callers and slots: 10", n: 50_000, short: 500, needs: []need{needsRedis}, metrics: costs,
			do: func(ctx context.Context, r *run) ([]float64, error) { return r.cost(ctx, 10, 10) },
		},
		{
			name: "cost-1", title: "a job, callers and slots: 1", n: 20_000, short: 200, needs: []need{needsRedis},
			metrics: append(slices.Clone(costs), metric{name: "Redis CPU, a bare PING", unit: "µs"}), do: costOfOne,
		},
		{
			name: "quiescent", title: "commands of Redis when idle, slots: 10", n: 10, short: 10, once: true, needs: []need{needsQueue, needsRedis},
			metrics: []metric{{unit: "a minute"}}, do: idleCommands,
		},
	}
}

func memory(ctx context.Context, r *run) ([]float64, error) {
	server := r.store.redis
	before, err := server.usage(ctx)
	if err != nil {
		return nil, err
	}
	oldKeys, oldBytes, err := server.kept(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.fill(ctx, payload); err != nil {
		return nil, err
	}
	// What connections take up, which is not meant, is reckoned each second.
	if !r.short {
		if err := wait(ctx, 3*time.Second); err != nil {
			return nil, err
		}
	}
	full, err := server.usage(ctx)
	if err != nil {
		return nil, err
	}
	if _, _, err := r.drain(ctx, work{Slots: drainSlots}); err != nil {
		return nil, err
	}
	keys, bytes, err := server.kept(ctx)
	return []float64{
		float64(full.minus(before).Memory) / float64(r.n), float64(keys - oldKeys), float64(bytes - oldBytes),
	}, err
}

// cost is what the server does for a job that some callers enqueue, or none in bulk,
// and some slots run.
func (r *run) cost(ctx context.Context, callers, slots int) ([]float64, error) {
	enqueue, err := r.spent(ctx, func() error {
		return r.enqueue(ctx, load{N: r.n, Bytes: payload, Callers: callers})
	})
	if err != nil {
		return nil, err
	}
	drain, err := r.spent(ctx, func() error {
		_, _, err := r.drain(ctx, work{Slots: slots})
		return err
	})
	each := func(total float64) float64 { return total / float64(r.n) }
	return []float64{
		each(float64(enqueue.CPU.Microseconds())), each(float64(drain.CPU.Microseconds())),
		each(float64(enqueue.Commands)), each(float64(drain.Commands)),
		each(float64(enqueue.Trips)), each(float64(drain.Trips)),
	}, err
}

// costOfOne has a measure beside it that is the machine's and not the system's.
func costOfOne(ctx context.Context, r *run) ([]float64, error) {
	values, err := r.cost(ctx, 1, 1)
	if err != nil {
		return nil, err
	}
	pings, err := r.spent(ctx, func() error {
		for range r.n {
			if err := r.store.redis.rdb.Ping(ctx).Err(); err != nil {
				return err
			}
		}
		return nil
	})
	return append(values, float64(pings.CPU.Microseconds())/float64(r.n)), err
}

// spent is what the server did for it.
func (r *run) spent(ctx context.Context, do func() error) (usage, error) {
	before, err := r.store.redis.usage(ctx)
	if err != nil {
		return usage{}, err
	}
	if err := do(); err != nil {
		return usage{}, err
	}
	after, err := r.store.redis.usage(ctx)
	return after.minus(before), err
}

// idleCommands counts once a worker has had work and some time to calm down.
func idleCommands(ctx context.Context, r *run) ([]float64, error) {
	calm, watch := 15*time.Second, time.Minute
	if r.short {
		calm, watch = 500*time.Millisecond, 2*time.Second
	}
	w, err := r.work(ctx, work{Slots: 10, N: r.n})
	if err != nil {
		return nil, err
	}
	if err := r.enqueue(ctx, load{N: r.n, Bytes: payload, Callers: 1}); err != nil {
		return nil, err
	}
	if err := w.wait(ctx, r.n); err != nil {
		return nil, err
	}
	if err := wait(ctx, calm); err != nil {
		return nil, err
	}
	used, err := r.spent(ctx, func() error { return wait(ctx, watch) })
	if err != nil {
		return nil, err
	}
	_, _, err = r.finish(ctx, time.Now(), w)
	const own = 1 // the INFO of usage
	return []float64{float64(used.Commands-own) / watch.Minutes()}, err
}
