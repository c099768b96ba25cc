package pawlprom_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
	"github.com/pawlq/pawl/pawlprom"
)

// scrape is what a scrape has, and how long it took.
func scrape(t testing.TB, reg prometheus.Gatherer) (names map[string]int, took time.Duration) {
	t.Helper()
	began := time.Now()
	families, err := reg.Gather()
	took = time.Since(began)
	require.NoError(t, err)
	names = map[string]int{}
	for _, f := range families {
		names[f.GetName()] = len(f.GetMetric())
	}
	return names, took
}

func up(t testing.TB, reg prometheus.Gatherer) bool { return values(t, reg, "pawl_redis_up")[""] == 1 }

func TestAScrapeWithRedisAwayAnswersInTime(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	client := newClient(t, proxy.Client(t))
	put(t, client.Queue("mail"), 1, "")
	all := registry(t, pawlprom.NewCollector(client))
	named := registry(t, pawlprom.NewCollector(client, "mail"))
	inTime := func(what string) {
		t.Helper()
		var scrapes sync.WaitGroup
		for range 20 { // they do not wait for each other
			for _, reg := range []prometheus.Gatherer{all, named} {
				scrapes.Go(func() {
					began := time.Now()
					_, err := reg.Gather()
					if took := time.Since(began); err != nil || took > 6*time.Second {
						t.Errorf("%s: a scrape took %v, %v", what, took, err)
					}
				})
			}
		}
		scrapes.Wait()
		for _, reg := range []prometheus.Gatherer{all, named} {
			names, _ := scrape(t, reg)
			require.Zero(t, names["pawl_queue_jobs"], what)
			require.Equal(t, 1, names["pawl_redis_up"], what)
			require.False(t, up(t, reg), what)
		}
	}
	proxy.Blackhole(true)
	inTime("it does not answer")
	proxy.Blackhole(false)
	s.Kill()
	proxy.CutAll()
	inTime("it refuses connections")
	s.Restart()
	for _, reg := range []prometheus.Gatherer{all, named} {
		redistest.Eventually(t, "it is back", func(context.Context) bool { return up(t, reg) })
	}
}

// What can be had is had: a queue with a damaged key takes nothing from the others.
func TestAScrapeIsPartialOnError(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	client := newClient(t, rdb)
	for _, name := range []string{"a", "b", "c"} {
		put(t, client.Queue(name), 1, "")
	}
	reg := registry(t, pawlprom.NewCollector(client))
	require.True(t, up(t, reg))
	require.NoError(t, rdb.Del(t.Context(), "pawl:{b}:meta").Err())
	require.NoError(t, rdb.SAdd(t.Context(), "pawl:{b}:meta", "no part of the layout is a set").Err())
	require.False(t, up(t, reg))
	require.Equal(t, map[string]float64{"a": 0, "c": 0}, values(t, reg, "pawl_queue_paused"))
}

func TestWhatDoctorMayNotSeeHasNoSeries(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	s.SetUser(t, "app", "on", ">secret", "~pawl:*", "&pawl:*", "+@all", "-@dangerous")
	ok := func(rdb *redis.Client) map[string]float64 {
		return values(t, registry(t, pawlprom.NewCollector(newClient(t, rdb))), "pawl_doctor_ok")
	}
	whole := ok(s.Client(t))
	require.Zero(t, whole["maxmemory-policy"])
	require.Contains(t, whole, "maxmemory-policy")
	require.InDelta(t, 1, whole["version"], 0)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), Username: "app", Password: "secret"})
	t.Cleanup(func() { _ = rdb.Close() })
	require.Equal(t, map[string]float64{"pool": 1, "rights": 1}, ok(rdb))
}

// scaleEnv names the number of jobs of TestAScrapeCostsTheSameHoweverManyJobsThereAre;
// make it 1000000 where there is time and memory.
const scaleEnv = "PAWL_SCALE"

func TestAScrapeCostsTheSameHoweverManyJobsThereAre(t *testing.T) {
	t.Parallel()
	jobs, err := strconv.Atoi(os.Getenv(scaleEnv))
	if err != nil {
		jobs = 20_000
	}
	const queues = 1000
	s := redistest.Start(t)
	rdb := s.Client(t)
	client := newClient(t, rdb)
	fill := func(n int) {
		names := make(chan string, queues)
		for i := range queues {
			names <- fmt.Sprintf("queue-%d", i)
		}
		close(names)
		var producers sync.WaitGroup
		for range 4 {
			producers.Go(func() {
				for name := range names {
					for left := n; left > 0; left -= 500 {
						if _, err := client.Queue(name).EnqueueMany(t.Context(), pawl.Items(make([]note, min(left, 500)))); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		producers.Wait()
	}
	reg := registry(t, pawlprom.SetTimes(pawlprom.NewCollector(client), time.Minute, time.Hour))
	cost := func() (calls map[string]int, took time.Duration) {
		require.NoError(t, rdb.ConfigResetStat(t.Context()).Err())
		names, took := scrape(t, reg)
		require.Equal(t, queues*6, names["pawl_queue_jobs"])
		return callsOf(rdb.Info(t.Context(), "commandstats").Val()), took
	}
	fill(1)
	scrape(t, reg) // Doctor is asked, and the script is cached
	few, _ := cost()
	fill(jobs/queues - 1)
	many, took := cost()
	t.Logf("%d jobs in %d queues: %v", jobs, queues, took)
	require.Equal(t, few, many, "calls of each command")
	require.Equal(t, queues, many["evalsha"])
	for name, n := range many {
		require.LessOrEqual(t, n, 12*queues, name)
	}
	for _, name := range []string{"keys", "scan", "hscan", "sscan", "zscan", "lrange"} {
		require.NotContains(t, many, name)
	}
}

// callsOf is how often each command was called, of lines as
// "cmdstat_get:calls=12,usec=…", but that which resets them.
func callsOf(info string) map[string]int {
	calls := map[string]int{}
	for _, m := range regexp.MustCompile(`cmdstat_(\S+?):calls=(\d+),`).FindAllStringSubmatch(info, -1) {
		if n, err := strconv.Atoi(m[2]); err == nil && m[1] != "config|resetstat" {
			calls[m[1]] = n
		}
	}
	return calls
}
