package main

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// asynqSystem is asynq with one server, as its documentation shows it.
func asynqSystem() *system {
	s := asynqWith("asynq", "one server, defaults (looks for work each second, for due jobs each 5 s)", 1, asynq.Config{})
	s.slow = true // it sleeps for a second before it ends
	return s
}

// asynqBest is its best setting: its one loop that fetches is what bounds a server.
func asynqBest() *system {
	return asynqWith("asynq-4", "four servers in one process, that share the slots; TaskCheckInterval 10 ms, DelayedTaskCheckInterval 100 ms", 4,
		asynq.Config{TaskCheckInterval: 10 * time.Millisecond, DelayedTaskCheckInterval: 100 * time.Millisecond})
}

func asynqWith(name, settings string, servers int, cfg asynq.Config) *system {
	cfg.Queues = map[string]int{queueName: 1}
	cfg.LogLevel = asynq.FatalLevel
	cfg.RetryDelayFunc = func(int, error, *asynq.Task) time.Duration { return retryAfter }
	return &system{
		name:     name,
		settings: settings,
		can:      []need{needsQueue, needsRedis},
		versions: func() map[string]string { return map[string]string{"asynq": moduleVersion("github.com/hibiken/asynq")} },
		store:    redisStore,
		open: func(_ context.Context, at address) (session, error) {
			rdb := redisClient(at.Redis)
			return &asynqSession{
				rdb: rdb, client: asynq.NewClientFromRedisClient(rdb), inspector: asynq.NewInspectorFromRedisClient(rdb),
				servers: servers, cfg: cfg,
			}, nil
		},
		spawn: spawnSelf(name),
	}
}

type asynqSession struct {
	rdb       *redis.Client
	client    *asynq.Client
	inspector *asynq.Inspector
	servers   int
	cfg       asynq.Config
	running   []*asynq.Server
}

func (s *asynqSession) enqueue(ctx context.Context, l load) error {
	return l.send(ctx, sender{one: func(ctx context.Context, p parcel, due int64) error {
		options := []asynq.Option{asynq.Queue(queueName)}
		if due != 0 {
			options = append(options, asynq.ProcessAt(time.UnixMicro(due)))
		}
		_, err := s.client.EnqueueContext(ctx, asynq.NewTask(p.Kind(), p.encode()), options...)
		return err
	}})
}

func (s *asynqSession) work(_ context.Context, w work) (worker, error) {
	t := newTally(w)
	handler := asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		var p parcel
		if err := json.Unmarshal(task.Payload(), &p); err != nil {
			return err
		}
		return t.run(p)
	})
	for _, share := range split(w.Slots, s.servers) {
		cfg := s.cfg
		cfg.Concurrency = share
		server := asynq.NewServerFromRedisClient(s.rdb, cfg)
		if err := server.Start(handler); err != nil {
			return nil, err
		}
		s.running = append(s.running, server)
	}
	return &local{t, func(context.Context) error { s.shutdown(); return nil }}, nil
}

func (s *asynqSession) shutdown() {
	var all sync.WaitGroup
	for _, server := range s.running {
		all.Go(server.Shutdown)
	}
	all.Wait()
}

func (s *asynqSession) state(context.Context) (state, error) {
	q, err := s.inspector.GetQueueInfo(queueName)
	if err != nil {
		return state{}, err
	}
	return state{Done: q.ProcessedTotal - q.FailedTotal, Left: q.Size}, nil
}

// close ends servers too that a failed run has left.
func (s *asynqSession) close(context.Context) error {
	s.shutdown()
	return s.rdb.Close()
}
