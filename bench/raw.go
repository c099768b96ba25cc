package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// rawBatch is how many jobs one bare command moves.
const rawBatch = 100

// rawSystem is the floor: what a stream costs by bare commands, without scripts,
// fences, retries or answers to lost replies. What it does is no queue.
func rawSystem() *system {
	return &system{
		name:     "raw",
		settings: "no queue but the floor: XADD; XRANGE, ZADD, HSET, then ZREM, HDEL, XDEL, for as many jobs at once as there are slots, at most 100",
		can:      []need{needsBulk, needsRedis},
		versions: func() map[string]string {
			return map[string]string{"go-redis": moduleVersion("github.com/redis/go-redis/v9")}
		},
		store: redisStore,
		open: func(_ context.Context, at address) (session, error) {
			return &rawSession{rdb: redisClient(at.Redis)}, nil
		},
	}
}

const (
	rawStream = queueName + ":stream"
	rawLeases = queueName + ":leases"
	rawRuns   = queueName + ":runs"
)

type rawSession struct {
	rdb  *redis.Client
	done atomic.Int64
}

func (s *rawSession) enqueue(ctx context.Context, l load) error {
	add := func(p parcel) *redis.XAddArgs {
		return &redis.XAddArgs{Stream: rawStream, Values: []any{"p", p.encode()}}
	}
	return l.send(ctx, sender{
		one: func(ctx context.Context, p parcel, _ int64) error { return s.rdb.XAdd(ctx, add(p)).Err() },
		many: func(ctx context.Context, ps []parcel, _ int64) error {
			_, err := s.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for _, p := range ps {
					pipe.XAdd(ctx, add(p))
				}
				return nil
			})
			return err
		},
		batch: rawBatch,
	})
}

func (s *rawSession) work(ctx context.Context, w work) (worker, error) {
	t := newTally(w)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		err := s.drain(ctx, t, int64(min(w.Slots, rawBatch)))
		t.stopped(err)
		ended <- err
	}()
	return &local{t, func(context.Context) error {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}}, nil
}

// drain takes two round trips a batch: one settles the batch before and reads the
// next, one leases it.
func (s *rawSession) drain(ctx context.Context, t *tally, batch int64) error {
	var ids []string // that have run
	after := "-"
	for {
		var deleted *redis.IntCmd
		var next *redis.XMessageSliceCmd
		_, err := s.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			if len(ids) > 0 {
				pipe.ZRem(ctx, rawLeases, words(ids)...)
				pipe.HDel(ctx, rawRuns, ids...)
				deleted = pipe.XDel(ctx, rawStream, ids...)
			}
			next = pipe.XRangeN(ctx, rawStream, after, "+", batch)
			return nil
		})
		if err != nil {
			return err
		}
		if deleted != nil {
			s.done.Add(deleted.Val())
		}
		jobs := next.Val()
		if ids = ids[:0]; len(jobs) == 0 {
			if len(t.tries) > 0 && s.done.Load() >= int64(len(t.tries)) {
				<-ctx.Done()
				return ctx.Err()
			}
			continue
		}
		leases, runs := make([]redis.Z, len(jobs)), make([]any, 0, 2*len(jobs))
		deadline := float64(now()/1000 + 30_000)
		for i, job := range jobs {
			ids = append(ids, job.ID)
			leases[i] = redis.Z{Score: deadline, Member: job.ID}
			runs = append(runs, job.ID, "token")
		}
		if _, err := s.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.ZAdd(ctx, rawLeases, leases...)
			pipe.HSet(ctx, rawRuns, runs...)
			return nil
		}); err != nil {
			return err
		}
		for _, job := range jobs {
			var p parcel
			if err := json.Unmarshal([]byte(job.Values["p"].(string)), &p); err != nil {
				return err
			}
			if err := t.run(p); err != nil {
				return err
			}
		}
		after = "(" + ids[len(ids)-1]
	}
}

func words(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}

func (s *rawSession) state(ctx context.Context) (state, error) {
	waiting, err := s.rdb.XLen(ctx, rawStream).Result()
	if err != nil {
		return state{}, err
	}
	leased, err := s.rdb.ZCard(ctx, rawLeases).Result()
	return state{Done: int(s.done.Load()), Left: int(max(waiting, leased))}, err
}

func (s *rawSession) close(context.Context) error { return s.rdb.Close() }
