package main

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// latency is how long a handler took, each time.
type latency struct {
	mu   sync.Mutex
	took []time.Duration
}

func (l *latency) measure(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		h.ServeHTTP(w, r)
		took := time.Since(start)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.took = append(l.took, took)
	})
}

// percentiles returns, for each p of 0 to 100, the time that p in a hundred
// calls did not exceed.
func (l *latency) percentiles(ps ...int) []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	sorted := slices.Sorted(slices.Values(l.took))
	times := make([]time.Duration, len(ps))
	for i, p := range ps {
		if len(sorted) > 0 {
			times[i] = sorted[max(0, (len(sorted)*p+99)/100-1)]
		}
	}
	return times
}
