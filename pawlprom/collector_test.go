package pawlprom_test

import (
	"context"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlprom"
	"github.com/pawlq/pawl/pawltest"
)

const wholeScrape = `
# HELP pawl_doctor_ok Whether a setting of the server is right (1) or would hurt (0); no series where it cannot be told.
# TYPE pawl_doctor_ok gauge
pawl_doctor_ok{check="pool"} 1
# HELP pawl_queue_canary_age_seconds For how long no canary has gone through the queue.
# TYPE pawl_queue_canary_age_seconds gauge
pawl_queue_canary_age_seconds{queue="mail"} 90
# HELP pawl_queue_canary_period_seconds How often a canary is sent through the queue.
# TYPE pawl_queue_canary_period_seconds gauge
pawl_queue_canary_period_seconds{queue="mail"} 60
# HELP pawl_queue_events_total What happened in the queue, in all processes together, as Redis counts it.
# TYPE pawl_queue_events_total counter
pawl_queue_events_total{event="cancelled",queue="mail"} 0
pawl_queue_events_total{event="crashed",queue="mail"} 0
pawl_queue_events_total{event="dead",queue="mail"} 2
pawl_queue_events_total{event="discarded",queue="mail"} 0
pawl_queue_events_total{event="done",queue="mail"} 1
pawl_queue_events_total{event="dropped",queue="mail"} 0
pawl_queue_events_total{event="duplicate",queue="mail"} 0
pawl_queue_events_total{event="enqueued",queue="mail"} 10
pawl_queue_events_total{event="expired",queue="mail"} 0
pawl_queue_events_total{event="failed",queue="mail"} 2
pawl_queue_events_total{event="healed",queue="mail"} 0
pawl_queue_events_total{event="lost",queue="mail"} 0
pawl_queue_events_total{event="purged",queue="mail"} 0
pawl_queue_events_total{event="redriven",queue="mail"} 0
pawl_queue_events_total{event="released",queue="mail"} 0
pawl_queue_events_total{event="retried",queue="mail"} 0
pawl_queue_events_total{event="skipped",queue="mail"} 0
pawl_queue_events_total{event="snoozed",queue="mail"} 0
pawl_queue_events_total{event="started",queue="mail"} 3
# HELP pawl_queue_jobs Jobs of a queue by state. What waits is ready, delayed and parked; done is what is over and kept.
# TYPE pawl_queue_jobs gauge
pawl_queue_jobs{queue="mail",state="dead"} 2
pawl_queue_jobs{queue="mail",state="delayed"} 4
pawl_queue_jobs{queue="mail",state="done"} 1
pawl_queue_jobs{queue="mail",state="parked"} 0
pawl_queue_jobs{queue="mail",state="ready"} 3
pawl_queue_jobs{queue="mail",state="running"} 0
# HELP pawl_queue_oldest_ready_seconds Age of the oldest job that could run now, since it could; 0 if none is ready.
# TYPE pawl_queue_oldest_ready_seconds gauge
pawl_queue_oldest_ready_seconds{queue="mail"} 90
# HELP pawl_queue_paused Whether the queue is paused.
# TYPE pawl_queue_paused gauge
pawl_queue_paused{queue="mail"} 1
# HELP pawl_queue_workers Workers that serve the queue and were heard of within the last minute.
# TYPE pawl_queue_workers gauge
pawl_queue_workers{queue="mail"} 0
# HELP pawl_redis_up Whether Redis has answered all that this scrape asked.
# TYPE pawl_redis_up gauge
pawl_redis_up 1
`

func TestAScrapeHasAllThatIsKnownOfAQueue(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		q := env.Client.Queue("mail")
		put(t, q, 2, "die")
		put(t, q, 1, "", pawl.Retain(time.Hour))
		env.Drain(newWorker(t, env.Client, pawl.WorkerConfig{}, "mail"))
		put(t, q, 3, "")
		put(t, q, 4, "", pawl.Delay(time.Hour))
		require.NoError(t, q.Canary(t.Context(), time.Minute))
		require.NoError(t, q.Pause(t.Context(), time.Hour))
		env.Advance(90 * time.Second)
		reg := registry(t, pawlprom.NewCollector(env.Client))
		require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(wholeScrape)))
		requireLint(t, reg)

		require.NoError(t, q.Resume(t.Context()))
		env.Start(newWorker(t, env.Client, pawl.WorkerConfig{}, "mail", "sms"))
		env.Start(newWorker(t, env.Client, pawl.WorkerConfig{}, "sms"))
		env.Advance(10 * time.Minute)
		require.Equal(t, map[string]float64{"mail": 1, "sms": 2}, values(t, reg, "pawl_queue_workers"))
		require.Equal(t, map[string]float64{"mail": 0, "sms": 0}, values(t, reg, "pawl_queue_paused"))
		require.Equal(t, map[string]float64{"mail": 0, "sms": 0}, values(t, reg, "pawl_queue_oldest_ready_seconds"))
		require.Less(t, values(t, reg, "pawl_queue_canary_age_seconds")["mail"], 61.0)
		require.NotContains(t, values(t, reg, "pawl_queue_canary_age_seconds"), "sms", "it has none")
	})
}

func TestACollectorScrapesWhatItIsTold(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		for _, name := range []string{"a", "b", "c"} {
			put(t, env.Client.Queue(name), 1, "")
		}
		queues := func(names ...string) map[string]float64 {
			return values(t, registry(t, pawlprom.NewCollector(env.Client, names...)), "pawl_queue_paused")
		}
		require.Equal(t, map[string]float64{"a": 0, "b": 0, "c": 0}, queues())
		require.Equal(t, map[string]float64{"a": 0, "never": 0}, queues("a", "never", "a"), "each once")
	})
}

func TestWrongArgumentsAreAnErrorOfRegister(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	rdb := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
		t.Error("it talks to Redis")
		return nil, net.ErrClosed
	}})
	client := newClient(t, rdb)
	require.ErrorIs(t, reg.Register(pawlprom.NewCollector(nil)), pawl.ErrInvalid)
	require.ErrorIs(t, reg.Register(pawlprom.NewCollector(&pawl.Client{})), pawl.ErrInvalid)
	require.ErrorIs(t, reg.Register(pawlprom.NewCollector(client, "good", "no good")), pawl.ErrName)
	require.NoError(t, reg.Register(pawlprom.NewCollector(client, "good")))
	require.NoError(t, rdb.Close())
	_, err := pawlprom.NewMetrics(nil)
	require.ErrorIs(t, err, pawl.ErrInvalid)

	// One that is gathered without a registry says what is wrong, too.
	metrics := make(chan prometheus.Metric, 1)
	pawlprom.NewCollector(nil).Collect(metrics)
	require.ErrorIs(t, (<-metrics).Write(nil), pawl.ErrInvalid)
}

// Every counter of pawl is an event.
func TestEventsAreTheCountersOfPawl(t *testing.T) {
	t.Parallel()
	var names []string
	for field := range reflect.TypeFor[pawl.Counters]().Fields() {
		names = append(names, strings.ToLower(field.Name))
	}
	events := pawlprom.Events()
	slices.Sort(names)
	slices.Sort(events)
	require.Equal(t, names, events)
}
