package main

import "context"

func faultWorkloads() []workload {
	return []workload{{
		name: "retries", title: "drain, 10% of jobs fail once, retried after 100 ms, slots: 100", needs: []need{needsQueue}, metrics: rate,
		do: func(ctx context.Context, r *run) ([]float64, error) {
			if err := r.enqueue(ctx, load{N: r.n, Bytes: payload, Retry: true}); err != nil {
				return nil, err
			}
			took, _, err := r.drain(ctx, work{Slots: drainSlots, FailEvery: 10})
			return ratePerSecond(r.n, took), err
		},
	}}
}
