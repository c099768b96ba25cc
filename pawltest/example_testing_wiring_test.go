package pawltest_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
	"github.com/pawlq/pawl/pawltest"
)

// region queues

func TestAnOrderEndsWithAReceipt(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		shop, err := NewShop(env.Client, paid)
		require.NoError(t, err)
		require.NoError(t, shop.Order(t.Context(), 7))

		env.Drain(shop.Payments)
		pawltest.RequireEnqueued(env, "emails", Receipt{Order: 7}) // of another worker
		require.Len(t, env.Drain(shop.Emails).Runs, 1)
	})
}

// endregion

// region started

func TestTheWholeShopAtWork(t *testing.T) {
	t.Parallel()
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		shop, err := NewShop(env.Client, paid)
		require.NoError(t, err)
		env.Start(shop.Payments)
		env.Start(shop.Emails)
		for order := range 20 {
			require.NoError(t, shop.Order(t.Context(), order+1))
		}
		env.Advance(2 * time.Minute)
		stats, err := env.Client.Queue("emails").Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 20, stats.Total.Done)
	})
}

// endregion

// region parallel

func TestManyOrders(t *testing.T) {
	t.Parallel()
	for _, orders := range []int{1, 10, 100} {
		t.Run(fmt.Sprint(orders), func(t *testing.T) {
			t.Parallel() // outside the bubble
			pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
				shop, err := NewShop(env.Client, paid)
				require.NoError(t, err)
				for order := range orders {
					require.NoError(t, shop.Order(t.Context(), order+1))
				}
				require.Len(t, env.Drain(shop.Payments).Runs, orders)
			})
		})
	}
}

// endregion

// region config

func TestTheTenantTravelsWithTheJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type tenantKey struct{}
		var log bytes.Buffer
		env := pawltest.New(t, pawl.Config{
			Namespace: "shop",
			Logger:    slog.New(slog.NewTextHandler(&log, nil)),
			Inject: func(ctx context.Context, h pawl.Headers) {
				if tenant, ok := ctx.Value(tenantKey{}).(string); ok {
					h["tenant"] = tenant
				}
			},
		})
		shop, err := NewShop(env.Client, paid)
		require.NoError(t, err)

		require.NoError(t, shop.Order(context.WithValue(t.Context(), tenantKey{}, "acme"), 7))
		pawltest.RequireEnqueued(env, "payments", Charge{Order: 7}, pawl.Header{Key: "tenant", Value: "acme"})
		env.Drain(shop.Payments)
		require.NotContains(t, log.String(), "level=ERROR")
	})
}

// endregion

// region http

func TestAChargeOverHTTP(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)

	env := pawltest.New(t, pawl.Config{}) // no bubble: a network, and the real clock
	w, err := pawl.NewWorker(env.Client, pawl.WorkerConfig{
		Queues:  pawl.Queues("payments"),
		Backoff: pawl.Backoff{Base: time.Millisecond}, // since a retry has to be waited for
	})
	require.NoError(t, err)
	pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[Charge]) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, nil)
		if err != nil {
			return pawl.Permanent(err)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("gateway: %s", resp.Status)
		}
		_ = resp.Body.Close()
		return err
	})
	_, err = env.Client.Queue("payments").Enqueue(t.Context(), Charge{Order: 7})
	require.NoError(t, err)
	report := env.Drain(w)
	require.Len(t, report.Runs, 2)
	require.ErrorContains(t, report.Runs[0].Err, "503")
}

// endregion

// redisURL starts a server. That of the page reads the environment.
func redisURL(t *testing.T) string {
	t.Helper()
	return "redis://" + redistest.Start(t).Addr()
}

// region real

// onRealRedis is a client of a Redis that other tests use too: it has a
// namespace of its own, which is gone when the test ends.
func onRealRedis(t *testing.T, url string) *pawl.Client {
	t.Helper()
	opts, err := redis.ParseURL(url)
	require.NoError(t, err)
	rdb := redis.NewClient(opts)
	namespace := "test:" + rand.Text()
	t.Cleanup(func() {
		ctx := context.Background() // that of the test has ended
		keys := rdb.Scan(ctx, 0, namespace+":*", 1000).Iterator()
		for keys.Next(ctx) {
			require.NoError(t, rdb.Del(ctx, keys.Val()).Err())
		}
		require.NoError(t, keys.Err())
		require.NoError(t, rdb.Close())
	})
	client, err := pawl.New(rdb, pawl.Config{Namespace: namespace})
	require.NoError(t, err)
	return client
}

func TestAChargeOnARealRedis(t *testing.T) {
	t.Parallel()
	client := onRealRedis(t, redisURL(t))
	receipts := make(chan int, 1)
	shop, err := NewShop(client, func(_ context.Context, order int, _ string) error {
		receipts <- order
		return nil
	})
	require.NoError(t, err)

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- shop.Payments.Run(ctx) }()
	_, err = client.Queue("payments").Enqueue(ctx, Charge{Order: 7}) // now: a minute is long here
	require.NoError(t, err)
	require.Equal(t, 7, <-receipts) // a signal, never a time
	stop()
	require.NoError(t, <-ended) // by now the charge is acknowledged

	found, err := client.Queue("payments").Check(t.Context())
	require.NoError(t, err)
	require.Empty(t, found)
}

// endregion
