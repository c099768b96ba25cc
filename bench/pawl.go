package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
)

// pawlBatch is what pawl puts into one script.
const pawlBatch = 500

func pawlSystem() *system {
	return &system{
		name:     "pawl",
		settings: "defaults; bulk: 4 callers of EnqueueMany with 500 jobs each",
		can:      []need{needsBulk, needsQueue, needsRedis},
		versions: func() map[string]string { return map[string]string{"pawl": pawlVersion()} },
		store:    redisStore,
		open:     openPawl,
		spawn:    spawnSelf("pawl"),
	}
}

type pawlSession struct {
	rdb    *redis.Client
	client *pawl.Client
	queue  *pawl.Queue
}

func openPawl(_ context.Context, at address) (session, error) {
	rdb := redisClient(at.Redis)
	client, err := pawl.New(rdb, pawl.Config{})
	if err != nil {
		return nil, err
	}
	return &pawlSession{rdb: rdb, client: client, queue: client.Queue(queueName)}, nil
}

func (s *pawlSession) enqueue(ctx context.Context, l load) error {
	options := func(due int64) []pawl.Option {
		if due == 0 {
			return nil
		}
		return []pawl.Option{pawl.At(time.UnixMicro(due))}
	}
	return l.send(ctx, sender{
		one: func(ctx context.Context, p parcel, due int64) error {
			_, err := s.queue.Enqueue(ctx, p, options(due)...)
			return err
		},
		many: func(ctx context.Context, ps []parcel, due int64) error {
			_, err := s.queue.EnqueueMany(ctx, pawl.Items(ps, options(due)...))
			return err
		},
		batch: pawlBatch,
	})
}

func (s *pawlSession) work(ctx context.Context, w work) (worker, error) {
	pw, err := pawl.NewWorker(s.client, pawl.WorkerConfig{
		Queues:      pawl.Queues(queueName),
		Concurrency: w.Slots,
		Backoff:     pawl.Backoff{Steps: []time.Duration{retryAfter}, Jitter: pawl.JitterNone},
	})
	if err != nil {
		return nil, err
	}
	t := newTally(w)
	pawl.Handle(pw, func(_ context.Context, job *pawl.Job[parcel]) error { return t.run(job.Args) })
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		err := pw.Run(ctx)
		t.stopped(err)
		ended <- err
	}()
	return &local{t, func(context.Context) error { cancel(); return <-ended }}, nil
}

func (s *pawlSession) state(ctx context.Context) (state, error) {
	stats, err := s.queue.Stats(ctx)
	return state{
		Done: int(stats.Total.Done),
		Left: int(stats.Ready + stats.Delayed + stats.Running + stats.Dead),
	}, err
}

func (s *pawlSession) close(context.Context) error { return s.rdb.Close() }
