package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
)

// finalState reads what is left of the queues, as if they were one: a job's id is
// never that of another queue's.
func finalState(ctx context.Context, queues []*pawl.Queue, rdb *redis.Client) (s State, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if s.Stats, err = allStats(ctx, queues); err != nil {
		return s, err
	}
	for _, q := range queues {
		if err := s.add(ctx, q, rdb); err != nil {
			return s, err
		}
	}
	return s, nil
}

// allStats is the sum of what is in the queues.
func allStats(ctx context.Context, queues []*pawl.Queue) (sum pawl.Stats, err error) {
	for _, q := range queues {
		s, err := q.Stats(ctx)
		if err != nil {
			return sum, err
		}
		sum.Ready += s.Ready
		sum.Delayed += s.Delayed
		sum.Running += s.Running
		sum.Parked += s.Parked
		sum.Dead += s.Dead
		addCounters(&sum.Total, s.Total)
	}
	return sum, nil
}

func addCounters(sum *pawl.Counters, more pawl.Counters) {
	total, n := reflect.ValueOf(sum).Elem(), reflect.ValueOf(more)
	for i := range n.NumField() {
		total.Field(i).SetInt(total.Field(i).Int() + n.Field(i).Int())
	}
}

func (s *State) add(ctx context.Context, q *pawl.Queue, rdb *redis.Client) error {
	stats, err := q.Stats(ctx)
	if err != nil {
		return err
	}
	for _, state := range []pawl.State{pawl.StateReady, pawl.StateDelayed, pawl.StateRunning, pawl.StateParked} {
		for job, err := range q.List(ctx, state, pawl.Filter{}) {
			if err != nil {
				return err
			}
			s.Live = append(s.Live, job.ID.String())
		}
	}
	for job, err := range q.Dead().List(ctx, pawl.DeadFilter{}) {
		if err != nil && !errors.Is(err, pawl.ErrNotFound) {
			return err
		}
		if err != nil {
			break
		}
		var task Task
		_ = json.Unmarshal(job.Payload, &task) // what cannot be read has no ref, and is found so
		s.Dead = append(s.Dead, Tombstone{Job: job.ID.String(), Ref: task.Ref, Reason: string(job.Reason), Error: job.Error,
			Attempt: job.Attempt, MaxAttempts: job.MaxAttempts, Crashes: job.Crashes, Redrives: job.Redrives, DiedAt: job.DiedAt.UnixMilli()})
	}
	problems, err := q.Check(ctx)
	if err != nil {
		return err
	}
	for _, p := range problems {
		s.Problems = append(s.Problems, p.String())
	}
	keys, err := leftover(ctx, q, rdb, stats)
	s.Leftover = append(s.Leftover, keys...)
	return err
}

// leftover is the keys that a queue without jobs must not have: docs/storage.md
// says which it keeps. A queue with jobs is not asked.
func leftover(ctx context.Context, q *pawl.Queue, rdb *redis.Client, s pawl.Stats) (keys []string, err error) {
	if s.Depth()+s.Running > 0 {
		return nil, nil
	}
	prefix := "pawl:{" + q.Name() + "}:"
	keeps := []string{"jobs", "dead", "dead:index", "meta", "minutes", "wake", "workers", "workers:info"}
	for iter := rdb.Scan(ctx, 0, prefix+"*", 1000).Iterator(); ; {
		if !iter.Next(ctx) {
			return keys, iter.Err()
		}
		name := strings.TrimPrefix(iter.Val(), prefix)
		if slices.Contains(keeps, name) {
			continue
		}
		family, _, _ := strings.Cut(name, ":")
		ttl, err := rdb.PTTL(ctx, iter.Val()).Result()
		if err != nil {
			return keys, err
		}
		if slices.Contains([]string{"lane", "stop", "unique", "idem"}, family) && ttl != -1 {
			continue
		}
		keys = append(keys, iter.Val())
	}
}
