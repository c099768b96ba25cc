package pawlprom_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
	"github.com/pawlq/pawl/pawlprom"
)

// faster is how many times as fast time passes for the rules in a drill: an hour is a
// minute. Numbers of jobs stay as they are.
const faster = 60

// hurried is a file with the rules of alerts.yml for a drill.
func hurried(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("alerts.yml")
	require.NoError(t, err)
	n := 0
	quick := regexp.MustCompile(`(for: |\[)(\d+[mh])`).ReplaceAllStringFunc(string(text), func(s string) string {
		n++
		at := strings.IndexAny(s, "0123456789")
		d, err := time.ParseDuration(s[at:])
		require.NoError(t, err)
		return s[:at] + fmt.Sprintf("%dms", (d/faster).Milliseconds())
	})
	require.Greater(t, n, 10)
	require.Contains(t, quick, "> 300\n")
	quick = strings.Replace(quick, "> 300\n", "> "+strconv.Itoa(300/faster)+"\n", 1)
	file := filepath.Join(t.TempDir(), "rules.yml")
	require.NoError(t, os.WriteFile(file, []byte(quick), 0o600))
	return file
}

// drill is a Redis, a worker, an endpoint of metrics, and a Prometheus that looks at it.
type drill struct {
	t      *testing.T
	redis  *redistest.Server
	rdb    *redis.Client
	client *pawl.Client
	queue  *pawl.Queue
	reg    *prometheus.Registry
	prom   *prom
	absent atomic.Bool // the endpoint
	stop   func()      // the worker
}

func newDrill(t *testing.T) *drill {
	t.Helper()
	demand(t, "prometheus")
	d := &drill{t: t, redis: redistest.Start(t)}
	reg := prometheus.NewRegistry()
	m, err := pawlprom.NewMetrics(reg)
	require.NoError(t, err)
	d.reg, d.rdb = reg, d.redis.Client(t)
	d.client = newClient(t, d.rdb, m)
	d.queue = d.client.Queue("mail")
	require.NoError(t, reg.Register(pawlprom.SetTimes(pawlprom.NewCollector(d.client), every*3/4, every)))
	metrics := promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.absent.Load() {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		metrics.ServeHTTP(w, r)
	}))
	t.Cleanup(endpoint.Close)
	d.prom = startPrometheus(t, strings.TrimPrefix(endpoint.URL, "http://"), hurried(t))
	return d
}

// serve starts the worker of this process.
func (d *drill) serve() {
	d.t.Helper()
	w := newWorker(d.t, d.client, pawl.WorkerConfig{VisibilityTimeout: 2 * time.Second, DrainTimeout: time.Second}, "mail")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stopped := false
	d.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil && !errors.As(err, new(*pawl.DrainError)) {
			d.t.Error(err)
		}
	}
	d.t.Cleanup(d.stop)
}

func (d *drill) fires(names ...string) { d.t.Helper(); d.await(true, names) }

func (d *drill) clears(names ...string) { d.t.Helper(); d.await(false, names) }

func (d *drill) await(want bool, names []string) {
	d.t.Helper()
	for _, name := range names {
		began := time.Now()
		redistest.EventuallyWithin(d.t, 2*time.Minute, fmt.Sprintf("%s fires: %v", name, want), func(ctx context.Context) bool {
			firing, err := d.prom.firing(ctx)
			return err == nil && firing[name] == want
		})
		d.t.Logf("%s fires: %v, after %v", name, want, time.Since(began).Round(time.Millisecond))
	}
}

// quiet waits until no alert fires.
func (d *drill) quiet() {
	d.t.Helper()
	redistest.EventuallyWithin(d.t, 2*time.Minute, "no alert fires", func(ctx context.Context) bool {
		firing, err := d.prom.firing(ctx)
		return err == nil && len(firing) == 0
	})
}

// flood enqueues n notes ten times a second, until the returned function is called.
func (d *drill) flood(n int, does string) (end func()) {
	ctx, cancel := context.WithCancel(d.t.Context())
	done := make(chan struct{})
	notes := make([]note, n)
	for i := range notes {
		notes[i].Does = does
	}
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if _, err := d.queue.EnqueueMany(context.WithoutCancel(ctx), pawl.Items(notes)); err != nil {
					d.t.Error(err)
					return
				}
			}
		}
	}()
	return func() { cancel(); <-done }
}

// Things break one after another, each alert is seen to fire and to clear, and then the
// panels of the dashboard are not empty.
func TestEachAlertFiresAndClears(t *testing.T) {
	t.Parallel()
	d := newDrill(t)
	ctx, began := t.Context(), time.Now()
	require.NoError(t, d.queue.Canary(ctx, time.Second))
	d.serve()
	redistest.Eventually(t, "the queue has been scraped", func(context.Context) bool {
		return d.prom.series(t, `pawl_queue_canary_age_seconds and on (queue) pawl_queue_workers == 1`, began) > 0
	})
	d.quiet()

	// A kind of job fails.
	put(t, d.queue, 10, "die")
	d.fires("PawlDeadLettersAboveFiveAnHour")
	end := d.flood(2, "fail")
	d.fires("PawlRetryBurst")
	end()
	d.clears("PawlRetryBurst")

	// All workers stop.
	d.stop()
	end = d.flood(20, "")
	outage := []string{"PawlNoWorkers", "PawlCanarySilent", "PawlOldestReadyJobAboveItsLimit", "PawlBacklogGrowingForTenMinutes"}
	d.fires(outage...)
	end()
	d.serve()
	d.clears(outage...)

	// A worker is killed.
	d.stop()
	kill := startChild(t, d.redis.Addr())
	put(t, d.queue, 5, "hang")
	redistest.Eventually(t, "its jobs run", func(ctx context.Context) bool {
		s, err := d.queue.Stats(ctx)
		return err == nil && s.Running >= 5
	})
	kill()
	d.serve()
	d.fires("PawlWorkersCrash")
	d.clears("PawlWorkersCrash")

	// Redis is reconfigured, then it freezes.
	require.NoError(t, d.rdb.ConfigSet(ctx, "maxmemory-policy", "allkeys-lru").Err())
	d.fires("PawlRedisEvictsKeys")
	require.NoError(t, d.rdb.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err())
	d.clears("PawlRedisEvictsKeys")
	put(t, d.queue, 1, "hang")
	redistest.Eventually(t, "a job runs that will lose its lease", func(ctx context.Context) bool {
		s, err := d.queue.Stats(ctx)
		return err == nil && s.Running > 0 && s.Ready == 0
	})
	d.redis.Pause()
	d.fires("PawlRedisUnreachable")
	redistest.Eventually(t, "it has", func(context.Context) bool {
		return values(t, d.reg, "pawl_job_lease_losses_total")["note mail"] > 0
	})
	d.redis.Resume()
	d.clears("PawlRedisUnreachable")

	// The endpoint goes.
	d.absent.Store(true)
	d.fires("PawlNotWatched")
	d.absent.Store(false)
	d.clears("PawlNotWatched")

	d.clears("PawlDeadLettersAboveFiveAnHour") // an hour is over
	d.quiet()
	requirePanels(t, d.prom, began)
}
