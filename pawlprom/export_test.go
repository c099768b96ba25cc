package pawlprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// SetTimes has a collector give up, and ask Doctor, after other times.
func SetTimes(c prometheus.Collector, limit, doctor time.Duration) prometheus.Collector {
	own := c.(*collector)
	own.limit, own.doctorEvery = limit, doctor
	return c
}

// Events are the values of the label event.
func Events() (names []string) {
	for _, e := range events {
		names = append(names, e.name)
	}
	return names
}
