package pawl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// WorkerInfo is a worker as its heartbeats show it. Times are the server's.
type WorkerInfo struct {
	Name        string // WorkerConfig.Name; host:pid unless configured
	Host        string
	PID         int
	Build       string   // module version and VCS revision of its program
	Queues      []string // that it serves, sorted; of this namespace
	Concurrency int
	Running     int // jobs, at its last beat
	StartedAt   time.Time
	SeenAt      time.Time // its last beat; they come every 10 s
	Draining    bool      // it stops, and leases no more
}

// Queues lists the queues of the namespace that have ever had a job or a worker
// and were not destroyed, sorted. A queue is added to the list by the first job
// that a process enqueues, and by each heartbeat of a worker.
func (c *Client) Queues(ctx context.Context) ([]string, error) {
	names, err := await(ctx, c.rdb, func(ctx context.Context) ([]string, error) {
		return c.rdb.SMembers(ctx, queuesKey(c.namespace)).Result()
	})
	if err != nil {
		return nil, fmt.Errorf("pawl: list queues: %w", err)
	}
	slices.Sort(names)
	return names, nil
}

// Workers lists the workers of the namespace that have been heard of within the
// last minute, by name. One that stops takes itself off; one that dies is listed
// for another minute, its SeenAt standing still. Each queue costs a round trip,
// and shows 2000 workers at most.
func (c *Client) Workers(ctx context.Context) ([]WorkerInfo, error) {
	names, err := c.Queues(ctx)
	if err != nil {
		return nil, err
	}
	byTag := map[string]*WorkerInfo{}
	for _, name := range names {
		if err := c.queue(name).workers(ctx, byTag); err != nil {
			return nil, fmt.Errorf("pawl: list workers of %s: %w", name, err)
		}
	}
	workers := make([]WorkerInfo, 0, len(byTag))
	for _, w := range byTag {
		slices.Sort(w.Queues)
		workers = append(workers, *w)
	}
	slices.SortFunc(workers, func(a, b WorkerInfo) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.StartedAt.Compare(b.StartedAt))
	})
	return workers, nil
}

// workers adds those of one queue.
func (q *queueState) workers(ctx context.Context, byTag map[string]*WorkerInfo) error {
	if q.err != nil {
		return nil // not a name of ours: somebody else's member
	}
	parts, err := q.read(ctx, scriptWorkers, []string{q.keys.workers, q.keys.info})
	if err != nil {
		return err
	}
	for i := 0; i+2 < len(parts); i += 3 {
		tag, _ := parts[i].(string)
		beat, _ := parts[i+1].(string)
		said, _ := parts[i+2].(string)
		ms, _ := strconv.ParseInt(beat, 10, 64)
		w := byTag[tag]
		if w == nil {
			w = &WorkerInfo{}
			byTag[tag] = w
		}
		w.Queues = append(w.Queues, q.name)
		if seen := time.UnixMilli(ms); seen.After(w.SeenAt) {
			w.SeenAt = seen
			var s selfPortrait
			if json.Unmarshal([]byte(said), &s) == nil {
				s.onto(w)
			}
		}
	}
	return nil
}

// selfPortrait is what a worker says of itself with each beat.
type selfPortrait struct {
	Name        string `json:"name"`
	Host        string `json:"host"`
	PID         int    `json:"pid"`
	Build       string `json:"build"`
	Concurrency int    `json:"concurrency"`
	Running     int    `json:"running"`
	Started     int64  `json:"started"` // ms
	Draining    bool   `json:"draining,omitempty"`
}

func (s *selfPortrait) onto(w *WorkerInfo) {
	w.Name, w.Host, w.PID, w.Build = s.Name, s.Host, s.PID, s.Build
	w.Concurrency, w.Running, w.Draining = s.Concurrency, s.Running, s.Draining
	w.StartedAt = time.UnixMilli(s.Started)
}

// workerMemory is for how long a worker counts as alive after its last beat, here
// and in lua/workers.lua.
const workerMemory = time.Minute

// tagLength is how much of a token's nonce names the worker; the rest is of the
// call.
const tagLength = 8

// workerTag is the worker's part of a lease's token, "<us>-<tag><nonce>".
func workerTag(token string) string {
	_, nonce, _ := strings.Cut(token, "-")
	return nonce[:min(len(nonce), tagLength)]
}

// nameWorkers puts the names of workers in the place of their tags, "" for those
// that had not been heard of for a minute at the server's now.
func (q *queueState) nameWorkers(ctx context.Context, now time.Time, infos []*JobInfo) error {
	var tags []string
	for _, info := range infos {
		if info.Worker != "" {
			tags = append(tags, info.Worker)
		}
	}
	if len(tags) == 0 {
		return nil
	}
	slices.Sort(tags)
	tags = slices.Compact(tags)
	type answer struct {
		beats []float64
		said  []any
	}
	got, err := await(ctx, q.client.rdb, func(ctx context.Context) (answer, error) {
		pipe := q.client.rdb.Pipeline()
		beats, said := pipe.ZMScore(ctx, q.keys.workers, tags...), pipe.HMGet(ctx, q.keys.info, tags...)
		_, err := pipe.Exec(ctx)
		return answer{beats.Val(), said.Val()}, err
	})
	if err != nil {
		return err
	}
	if len(got.said) != len(tags) || len(got.beats) != len(tags) {
		return fmt.Errorf("HMGET answered %d of %d fields", len(got.said), len(tags))
	}
	names := map[string]string{}
	for i, v := range got.said {
		text, _ := v.(string)
		var s selfPortrait
		if got.beats[i] > float64(now.Add(-workerMemory).UnixMilli()) && json.Unmarshal([]byte(text), &s) == nil {
			names[tags[i]] = s.Name
		}
	}
	for _, info := range infos {
		info.Worker = names[info.Worker]
	}
	return nil
}

// The list is written to once in a while, not once and for all: the queue may be
// destroyed, and used again.
const (
	listEvery    = time.Minute
	listPatience = 100 * time.Millisecond
	listAgain    = time.Second // after an error
)

// enlist puts the queue on the list, if it has not been for a while. It waits for
// the answer, since a program may end after its first enqueue, but not for long.
func (q *queueState) enlist() {
	now, at := time.Now().UnixMilli(), q.listAt.Load()
	if now < at || !q.listAt.CompareAndSwap(at, now+listEvery.Milliseconds()) {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if q.client.rdb.SAdd(context.Background(), queuesKey(q.client.namespace), q.name).Err() != nil {
			q.listAt.Store(now + listAgain.Milliseconds())
		}
	}()
	within(done, listPatience)
}
