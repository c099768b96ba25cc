// Package exampleredis gives the examples a Redis to run on, so that they need
// nothing but Go.
package exampleredis

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Env names the variable that makes the examples use a Redis that runs already,
// such as redis://localhost:6379/0.
const Env = "REDIS_URL"

// expireEvery is by how much a key of the embedded Redis may outlive its TTL.
const expireEvery = 200 * time.Millisecond

// cleanupTimeout bounds cleanup; it has a context of its own, since the one of
// the program has often ended by then.
const cleanupTimeout = 5 * time.Second

// Open connects to the Redis of REDIS_URL, or starts one in this process that
// lasts until cleanup. The namespace is new and this caller's alone, so that an
// example disturbs nobody on a shared Redis; cleanup removes all its keys, and
// says so on standard error where it cannot. After an error there is nothing to
// clean up.
func Open(ctx context.Context) (rdb *redis.Client, namespace string, cleanup func(), err error) {
	return open(ctx, os.Getenv(Env))
}

func open(ctx context.Context, url string) (rdb *redis.Client, namespace string, cleanup func(), err error) {
	stop := func() {}
	if url == "" {
		if url, stop, err = embedded(); err != nil {
			return nil, "", nil, err
		}
	}
	if rdb, err = dial(ctx, url); err != nil {
		stop()
		return nil, "", nil, err
	}
	namespace = "pawl-example-" + strings.ToLower(rand.Text()[:10])
	cleanup = func() {
		if err := clean(rdb, namespace); err != nil {
			log.Printf("example: keys of %s may be left: %v", namespace, err)
		}
		_ = rdb.Close()
		stop()
	}
	return rdb, namespace, cleanup, nil
}

// URL is where another process finds the Redis that Open gave this one.
func URL(rdb *redis.Client) string {
	if url := os.Getenv(Env); url != "" {
		return url
	}
	return "redis://" + rdb.Options().Addr
}

// embedded starts a Redis in this process, on a free port of the loopback
// interface, where child processes can reach it too.
func embedded() (url string, stop func(), err error) {
	m := miniredis.NewMiniRedis()
	if err := m.StartAddr("127.0.0.1:0"); err != nil {
		return "", nil, fmt.Errorf("start an embedded Redis: %w", err)
	}
	stopClock := expire(m)
	return "redis://" + m.Addr(), func() { stopClock(); m.Close() }, nil
}

// expire makes keys expire, which miniredis, made for tests, does not by itself.
// Its ClockTTL does it too, but sorts all keys for each command of a script: an
// example with 10,000 jobs would take minutes.
func expire(m *miniredis.Miniredis) (stop func()) {
	tick := time.NewTicker(expireEvery)
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for last := time.Now(); ; {
			select {
			case now := <-tick.C:
				m.FastForward(now.Sub(last))
				last = now
			case <-stopped:
				return
			}
		}
	}()
	return func() { tick.Stop(); close(stopped); <-ended }
}

func dial(ctx context.Context, url string) (*redis.Client, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Env, err)
	}
	rdb := redis.NewClient(opts)
	if err := rdb.Ping(ctx).Err(); err != nil {
		_ = rdb.Close()
		return nil, fmt.Errorf("connect to the Redis of %s: %w", Env, err)
	}
	return rdb, nil
}

// clean removes every key of the namespace.
func clean(rdb *redis.Client, namespace string) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	for cursor := uint64(0); ; {
		keys, next, err := rdb.Scan(ctx, cursor, namespace+":*", 1000).Result()
		if err != nil {
			return err
		}
		if len(keys) > 0 {
			if err := rdb.Unlink(ctx, keys...).Err(); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
