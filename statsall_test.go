package pawl_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

func TestStatsOfManyQueuesAreThoseOfEach(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		all, err := e.Client.Stats(ctx)
		require.NoError(t, err)
		require.Empty(t, all)
		var names []string
		for i := range 250 {
			name := fmt.Sprintf("q%03d", i)
			names = append(names, name)
			fillWith(t, e, name, 1+i%3, pawl.Delay(time.Hour))
		}
		all, err = e.Client.Stats(ctx)
		require.NoError(t, err)
		require.Len(t, all, len(names))
		some, err := e.Client.Stats(ctx, "q007", "never", "q007")
		require.NoError(t, err)
		require.Equal(t, map[string]pawl.Stats{"q007": all["q007"], "never": {}}, some)
		for i, name := range names {
			one, err := e.Client.Queue(name).Stats(ctx)
			require.NoError(t, err)
			require.EqualValues(t, 1+i%3, one.Delayed)
			require.Equal(t, one, all[name])
		}
		require.NoError(t, e.Redis.SAdd(ctx, "pawl:queues", "no name of ours").Err())
		all, err = e.Client.Stats(ctx)
		require.NoError(t, err)
		require.Len(t, all, len(names))
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, err = e.Client.Stats(over, "q007")
		require.ErrorIs(t, err, context.Canceled)
		_, err = e.Client.Stats(over, "q007", "a b")
		require.ErrorIs(t, err, pawl.ErrName)
		var none *pawl.Client
		_, err = none.Stats(ctx)
		require.ErrorIs(t, err, pawl.ErrInvalid)
	})
}

func TestStatsOfManyQueuesHaveWhatCouldBeLookedAt(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		for _, name := range []string{"a", "b", "c"} {
			put(t, e.Queue(name), 1)
		}
		meta := e.Redis.HGetAll(t.Context(), "pawl:{b}:meta").Val()
		require.NoError(t, e.Redis.Del(t.Context(), "pawl:{b}:meta").Err())
		require.NoError(t, e.Redis.SAdd(t.Context(), "pawl:{b}:meta", "no part of the layout is a set").Err())
		all, err := e.Client.Stats(t.Context())
		require.ErrorContains(t, err, "stats of 1 queues of 3, b first: WRONGTYPE")
		require.Len(t, all, 2)
		require.EqualValues(t, 1, all["a"].Ready)
		require.EqualValues(t, 1, all["c"].Ready)
		require.NoError(t, e.Redis.Del(t.Context(), "pawl:{b}:meta").Err())
		require.NoError(t, e.Redis.HSet(t.Context(), "pawl:{b}:meta", meta).Err())
	})
}

// The masters that are left answer for their queues, and the others' are missing.
func TestStatsOfManyQueuesOfAClusterThatLacksAMaster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	rdb := cluster.Client(t)
	require.NoError(t, rdb.ConfigSet(t.Context(), "cluster-require-full-coverage", "no").Err())
	for _, node := range cluster.Nodes {
		require.NoError(t, node.Client(t).ConfigSet(t.Context(), "cluster-require-full-coverage", "no").Err())
	}
	client, err := pawl.New(rdb, pawl.Config{})
	require.NoError(t, err)
	lost := cluster.MasterOf("pawl:{q0}:meta")
	var names []string
	left := 0
	for i := range 150 {
		name := fmt.Sprintf("q%d", i)
		names = append(names, name)
		if cluster.MasterOf("pawl:{"+name+"}:meta") != lost {
			left++
		}
	}
	all, err := client.Stats(t.Context(), names...)
	require.NoError(t, err)
	require.Len(t, all, len(names))

	lost.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	all, err = client.Stats(ctx, names...)
	require.ErrorContains(t, err, fmt.Sprintf("stats of %d queues of 150", 150-left))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Len(t, all, left)
}

func TestStatsOfManyQueuesEndWithTheirContext(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	client, err := pawl.New(proxy.Client(t), pawl.Config{})
	require.NoError(t, err)
	put(t, client.Queue("a"), 1)
	ask := func(limit time.Duration, names ...string) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		began := time.Now()
		found, err := client.Stats(ctx, names...)
		require.Less(t, time.Since(began), limit+2*time.Second)
		require.Equal(t, err == nil, len(found) > 0)
		return err
	}
	proxy.Blackhole(true)
	require.ErrorIs(t, ask(100*time.Millisecond, "a", "b"), context.DeadlineExceeded)
	require.ErrorIs(t, ask(100*time.Millisecond), context.DeadlineExceeded)
	proxy.Blackhole(false)
	proxy.CutAll()
	require.NoError(t, ask(10*time.Second), "it asks again over new connections")
	s.Kill()
	require.Error(t, ask(100*time.Millisecond, "a"))
	s.Restart()
	require.NoError(t, ask(10*time.Second, "a"))
}

// A cluster of which no node ever answered is asked no further when the time is over: not
// once for each of a thousand queues, in the background of each scrape.
func TestStatsOfManyQueuesLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	var dials atomic.Int64
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{"127.0.0.1:1"}, MaxRedirects: -1, DialerRetries: 1,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			dials.Add(1)
			<-time.After(20 * time.Millisecond)
			return nil, os.ErrDeadlineExceeded
		},
	})
	defer func() { require.NoError(t, rdb.Close()) }()
	client, err := pawl.New(rdb, pawl.Config{})
	require.NoError(t, err)
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("q%03d", i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = client.Stats(ctx, names...)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	last := int64(-1)
	require.Eventually(t, func() bool {
		before := last
		last = dials.Load()
		return last > 0 && last == before
	}, 10*time.Second, time.Second, "it dials still")
}

func TestStatsCountTheWorkersOfAQueue(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		stats := func() pawl.Stats {
			s, err := e.Queue("mail").Stats(t.Context())
			require.NoError(t, err)
			return s
		}
		require.Zero(t, stats().Workers)
		serve := func(queues ...string) (*pawl.Worker, func() error) {
			w := e.Worker("", pawl.WorkerConfig{Queues: pawl.Queues(queues...)})
			pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
			return w, e.Start(w)
		}
		_, stop := serve("mail", "other")
		serve("mail")
		serve("other")
		e.Pass(time.Second)
		require.EqualValues(t, 2, stats().Workers)
		require.NoError(t, stop())
		require.EqualValues(t, 1, stats().Workers, "one that stops is not counted")
		e.Pass(time.Hour)
		require.EqualValues(t, 1, stats().Workers)
		// One that died has told nobody.
		gone := redis.Z{Score: float64(time.Now().UnixMilli()), Member: "gone"}
		require.NoError(t, e.Redis.ZAdd(t.Context(), "pawl:{mail}:workers", gone).Err())
		require.EqualValues(t, 2, stats().Workers)
		e.Pass(time.Minute)
		require.EqualValues(t, 1, stats().Workers)
	})
}

func TestStatsTellTheAgeOfTheCanary(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		want := func(every, age time.Duration) {
			t.Helper()
			s, err := q.Stats(ctx)
			require.NoError(t, err)
			require.Equal(t, every, s.CanaryEvery)
			require.InDelta(t, age, s.CanaryAge, float64(every/2))
		}
		want(0, 0)
		require.NoError(t, q.Canary(ctx, time.Minute))
		want(time.Minute, 0)
		e.Pass(time.Hour)
		want(time.Minute, time.Hour) // since it was asked for: no worker has come
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		stop := e.Start(w)
		e.Pass(10 * time.Minute)
		want(time.Minute, 30*time.Second)
		require.NoError(t, stop())
		e.Pass(10 * time.Minute)
		want(time.Minute, 10*time.Minute)
		require.NoError(t, q.Canary(ctx, 0))
		want(0, 0) // one that is not wanted is not late
		require.NoError(t, q.Canary(ctx, time.Hour))
		want(time.Hour, 0) // one that is wanted anew has its time
		require.NoError(t, q.Canary(ctx, 2*time.Hour))
		e.Pass(3 * time.Hour)
		want(2*time.Hour, 3*time.Hour) // a new period does not begin anew
		require.NoError(t, e.Redis.HDel(ctx, "pawl:{mail}:schedules:state", "pawl:canary").Err())
		want(2*time.Hour, 3*time.Hour+10*time.Minute)            // since the last one
		const byHand = "\x01\x13cron @hourly in UTC\x00\x00\x00" // which has no period
		require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:schedules", "pawl:canary", byHand).Err())
		want(0, 0)
		for _, text := range []string{"", "\x01\x05every", "\x02newer"} {
			require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:schedules", "pawl:canary", text).Err())
			want(0, 0)
		}
		require.NoError(t, q.Canary(ctx, 0))
	})
}

// What an event says of the handler: whether there is one, and whether it was called.
func TestEventsTellWhetherAHandlerRan(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		told := func(name string, handled, ran bool) {
			t.Helper()
			events := e.Log.Wait(t, name, 1)
			last := events[len(events)-1]
			require.Equal(t, [2]bool{handled, ran}, [2]bool{last.Handled, last.Ran}, "handled and ran, of %s", name)
		}
		put(t, q, 1)
		w := e.Worker("mail", pawl.WorkerConfig{UnknownKindGrace: time.Minute})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Start(w)
		told("started", true, false)
		told("done", true, true)
		_, err := q.EnqueueRaw(ctx, "made up", nil)
		require.NoError(t, err)
		told("snoozed", false, false)
		told("dead", false, false)
		require.EqualValues(t, pawl.ReasonUnhandled, e.Log.dead[0].Reason)

		failing := e.Worker("sms", pawl.WorkerConfig{MaxAttempts: 2})
		pawl.Handle(failing, func(context.Context, *pawl.Job[note]) error { return context.Canceled })
		e.Start(failing)
		put(t, e.Queue("sms"), 1)
		told("retry", true, true)
		e.Log.Wait(t, "dead", 2)
		told("dead", true, true)
		require.NoError(t, e.Queue("sms").Pause(ctx, time.Hour))
		put(t, e.Queue("sms"), 1, pawl.ExpireIn(time.Minute))
		e.Log.Wait(t, "dead", 3)
		told("dead", true, false)
	})
}
