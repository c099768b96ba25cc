package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl/internal/redistest"
)

// startTimeout bounds the start of a server.
const startTimeout = 20 * time.Second

// redisSettings are of every run but those that ask for more.
var redisSettings = []string{"--save", "", "--appendonly", "no"}

// aofEverysec is what such a run adds.
var aofEverysec = []string{"--appendonly", "yes", "--appendfsync", "everysec"}

// redisServer is a redis-server process of one run, with nothing on disk unless
// args said so.
type redisServer struct {
	addr string
	rdb  *redis.Client // of the harness, for INFO
	stop func()
}

func startRedis(ctx context.Context, args ...string) (*redisServer, error) {
	dir, err := os.MkdirTemp("", "pawl-bench-redis-")
	if err != nil {
		return nil, err
	}
	port := freePort()
	all := append([]string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir, "--loglevel", "warning"}, redisSettings...)
	cmd := exec.Command("redis-server", append(all, args...)...)
	exited, err := redistest.StartTied(cmd)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	s := &redisServer{addr: addr, rdb: redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1})}
	s.stop = func() {
		_ = s.rdb.Close()
		_ = cmd.Process.Kill()
		<-exited
		_ = os.RemoveAll(dir)
	}
	err = until(ctx, startTimeout, exited, func(ctx context.Context) bool { return s.rdb.Ping(ctx).Err() == nil })
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("redis-server: %w", err)
	}
	return s, nil
}

// redisStore starts a server for one run.
func redisStore(ctx context.Context, args ...string) (*store, error) {
	s, err := startRedis(ctx, args...)
	if err != nil {
		return nil, err
	}
	return &store{at: address{Redis: s.addr}, redis: s, close: s.stop}, nil
}

// redisClient is what every system in Go gets.
func redisClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: 100})
}

// until polls a server that starts until it is up, or has ended.
func until(ctx context.Context, limit time.Duration, exited <-chan struct{}, up func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !up(ctx) {
		select {
		case <-exited:
			return errors.New("ended at its start")
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// freePort picks one below those that kernels give to outgoing connections.
func freePort() int {
	for {
		port := 12000 + rand.IntN(10000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			_ = l.Close()
			return port
		}
	}
}

// usage is what a server has done so far.
type usage struct {
	CPU      time.Duration // of the server's process
	Commands int           // those inside of scripts too
	// Trips are answers that the server has written: one for a pipeline or a
	// script, however long.
	Trips int
	// Memory is what data takes up, without the buffers of connections.
	Memory int
}

// usage costs a command and a round trip itself.
func (s *redisServer) usage(ctx context.Context) (usage, error) {
	text, err := s.rdb.Info(ctx).Result()
	if err != nil {
		return usage{}, err
	}
	return parseUsage(text)
}

func parseUsage(info string) (usage, error) {
	fields := map[string]float64{}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			fields[name] = number
		}
	}
	for _, name := range []string{
		"used_cpu_user", "used_cpu_sys", "total_commands_processed", "total_writes_processed", "used_memory", "mem_clients_normal",
	} {
		if _, ok := fields[name]; !ok {
			return usage{}, fmt.Errorf("INFO has no %s", name)
		}
	}
	return usage{
		CPU:      time.Duration((fields["used_cpu_user"] + fields["used_cpu_sys"]) * float64(time.Second)),
		Commands: int(fields["total_commands_processed"]),
		Trips:    int(fields["total_writes_processed"]),
		Memory:   int(fields["used_memory"] - fields["mem_clients_normal"]),
	}, nil
}

func (u usage) minus(v usage) usage {
	return usage{CPU: u.CPU - v.CPU, Commands: u.Commands - v.Commands, Trips: u.Trips - v.Trips, Memory: u.Memory - v.Memory}
}

// kept is how many keys there are, and what they take up.
func (s *redisServer) kept(ctx context.Context) (keys, bytes int, err error) {
	walk := s.rdb.Scan(ctx, 0, "", 1000).Iterator()
	for walk.Next(ctx) {
		size, err := s.rdb.MemoryUsage(ctx, walk.Val(), 0).Result()
		switch {
		case errors.Is(err, redis.Nil): // it has expired since
		case err != nil:
			return 0, 0, err
		default:
			keys, bytes = keys+1, bytes+int(size)
		}
	}
	return keys, bytes, walk.Err()
}
