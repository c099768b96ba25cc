package pawlprom

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlq/pawl"
)

const (
	// scrapeLimit is how long a scrape waits for Redis. It is below 5 s, the shortest
	// scrape_timeout in common use: one that is late would not tell that Redis is away.
	scrapeLimit = 4 * time.Second
	// doctorEvery is how old what Doctor said may be. It costs some round trips, and an
	// entry in the server's ACL LOG where it is refused one.
	doctorEvery = 10 * time.Minute
)

var (
	jobsDesc     = desc("queue_jobs", "Jobs of a queue by state. What waits is ready, delayed and parked; done is what is over and kept.", "queue", "state")
	oldestDesc   = desc("queue_oldest_ready_seconds", "Age of the oldest job that could run now, since it could; 0 if none is ready.", "queue")
	canaryDesc   = desc("queue_canary_age_seconds", "For how long no canary has gone through the queue.", "queue")
	periodDesc   = desc("queue_canary_period_seconds", "How often a canary is sent through the queue.", "queue")
	pausedDesc   = desc("queue_paused", "Whether the queue is paused.", "queue")
	workersDesc  = desc("queue_workers", "Workers that serve the queue and were heard of within the last minute.", "queue")
	eventsDesc   = desc("queue_events_total", "What happened in the queue, in all processes together, as Redis counts it.", "queue", "event")
	doctorDesc   = desc("doctor_ok", "Whether a setting of the server is right (1) or would hurt (0); no series where it cannot be told.", "check")
	upDesc       = desc("redis_up", "Whether Redis has answered all that this scrape asked.")
	descriptions = []*prometheus.Desc{jobsDesc, oldestDesc, canaryDesc, periodDesc, pausedDesc, workersDesc, eventsDesc, doctorDesc, upDesc}
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("pawl_"+name, help, labels, nil)
}

// NewCollector scrapes queues, O(log n) each in its number of jobs, by one round trip for
// each: run it in one process of a namespace. With no names it scrapes all that there are,
// of which there are as many as producers make up names: give names where you would not
// trust them with the number of your series. It does nothing before the first scrape, and
// needs no worker beside it.
//
// A scrape ends within 4 s, whatever becomes of Redis. What could not be had by then is
// left out, and pawl_redis_up is 0; a queue of which a key was damaged by hand counts as
// one that could not be had. Scrapes at the same time share one look. The findings of
// pawl.Client.Doctor are asked for again once they are 10 minutes old.
//
// A nil client and a name that is not valid are errors of Register.
func NewCollector(c *pawl.Client, queues ...string) prometheus.Collector {
	return &collector{client: c, queues: slices.Clone(queues), limit: scrapeLimit, doctorEvery: doctorEvery, err: check(c, queues)}
}

// check asks for what is wrong without a word to Redis.
func check(c *pawl.Client, queues []string) error {
	if c == nil {
		return fmt.Errorf("pawlprom: %w: the client is nil: make one with pawl.New", pawl.ErrInvalid)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Stats(over, queues...); errors.Is(err, pawl.ErrName) || errors.Is(err, pawl.ErrInvalid) {
		return fmt.Errorf("pawlprom: %w", err)
	}
	return nil
}

type collector struct {
	client      *pawl.Client
	queues      []string
	limit       time.Duration
	doctorEvery time.Duration
	err         error // what is wrong with the arguments

	mu   sync.Mutex
	look *look // under way; nil if none is

	// Of the look under way; there is one at a time.
	findings []pawl.Finding
	askedAt  time.Time
}

// look is what Redis told at one time.
type look struct {
	done     chan struct{}
	stats    map[string]pawl.Stats
	findings []pawl.Finding
	err      error // why it is not all
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	if c.err != nil {
		ch <- prometheus.NewInvalidDesc(c.err)
		return
	}
	for _, d := range descriptions {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	if c.err != nil {
		ch <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(c.err), c.err)
		return
	}
	l := c.join()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for queue, s := range l.stats {
		for state, n := range map[pawl.State]int64{pawl.StateReady: s.Ready, pawl.StateDelayed: s.Delayed, pawl.StateRunning: s.Running,
			pawl.StateParked: s.Parked, pawl.StateDead: s.Dead, pawl.StateDone: s.Done} {
			gauge(jobsDesc, float64(n), queue, string(state))
		}
		gauge(oldestDesc, s.OldestReady.Seconds(), queue)
		if s.CanaryEvery > 0 {
			gauge(canaryDesc, s.CanaryAge.Seconds(), queue)
			gauge(periodDesc, s.CanaryEvery.Seconds(), queue)
		}
		gauge(pausedDesc, truth(s.Paused), queue)
		gauge(workersDesc, float64(s.Workers), queue)
		for _, e := range events {
			ch <- prometheus.MustNewConstMetric(eventsDesc, prometheus.CounterValue, float64(e.count(&s.Total)), queue, e.name)
		}
	}
	for _, f := range l.findings {
		if !f.Unknown {
			gauge(doctorDesc, truth(f.OK), f.Check)
		}
	}
	gauge(upDesc, truth(l.err == nil))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// join waits for the look that is under way, or begins one. So scrapes do not pile up
// where Redis is slow, however many ask.
func (c *collector) join() *look {
	c.mu.Lock()
	l := c.look
	if l == nil {
		l = &look{done: make(chan struct{})}
		c.look = l
		go c.run(l)
	}
	c.mu.Unlock()
	<-l.done
	return l
}

func (c *collector) run(l *look) {
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	defer cancel()
	var asked sync.WaitGroup
	if time.Since(c.askedAt) >= c.doctorEvery {
		asked.Go(func() {
			// One that fails is tried again by the next scrape.
			if found, err := c.client.Doctor(ctx); err == nil {
				c.findings, c.askedAt = found, time.Now()
			}
		})
	}
	l.stats, l.err = c.client.Stats(ctx, c.queues...)
	asked.Wait()
	l.findings = c.findings
	c.mu.Lock()
	c.look = nil
	c.mu.Unlock()
	close(l.done)
}
