package pawl_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// D3. Many schedules with large arguments, that are due in one moment on a real server: one
// job each.
func TestManyLargeSchedulesAreDueAtOnce(t *testing.T) {
	t.Parallel()
	e := newEnv(t, redistest.Start(t).Client(t), nil)
	q, ctx := e.Queue("q"), within(t, time.Minute)
	payload := []byte(strings.Repeat("x", 100<<10))
	const many = 300
	list := make([]pawl.Schedule, many)
	for i := range list {
		list[i] = pawl.Schedule{ID: fmt.Sprint("s", i), When: pawl.Cron("0 0 1 1 *"), Args: pawl.Raw{Name: "large", Payload: payload}}
	}
	begun := time.Now()
	require.NoError(t, q.Schedule(ctx, list...))
	measured(t, "D3", "many schedules of 100 KiB were registered", time.Since(begun))
	begun = time.Now()
	require.NoError(t, q.Schedule(ctx, list...))
	measured(t, "D3", "and registered again", time.Since(begun))
	at := "pawl:{q}:schedules:at"
	states := e.Redis.HGetAll(ctx, "pawl:{q}:schedules:state").Val()
	due := time.Now().UnixMilli()
	pipe := e.Redis.Pipeline()
	for id, state := range states {
		words := strings.Fields(state)
		words[2] = fmt.Sprint(due)
		pipe.HSet(ctx, "pawl:{q}:schedules:state", id, strings.Join(words, " "))
		pipe.ZIncrBy(ctx, at, float64(due)-e.Redis.ZScore(ctx, at, id).Val(), id)
	}
	_, err := pipe.Exec(ctx)
	require.NoError(t, err)
	for range 3 {
		c := e.NewClient(pawl.Config{})
		w, err := pawl.NewWorker(c, pawl.WorkerConfig{Queues: pawl.Queues("q")})
		require.NoError(t, err)
		w.HandleRaw("large", func(context.Context, *pawl.RawJob) error { return nil })
		e.Start(w)
	}
	begun = time.Now()
	redistest.Eventually(t, "all were fired and done", func(ctx context.Context) bool {
		s, err := q.Stats(ctx)
		return err == nil && s.Total.Done >= many
	})
	measured(t, "D3", "as many jobs were fired and done", time.Since(begun))
	s, err := q.Stats(ctx)
	require.NoError(t, err)
	require.EqualValues(t, many, s.Total.Enqueued)
	require.NoError(t, q.SyncSchedules(ctx, nil))
}

// C2. While keys of its slot are on two masters a queue's schedules stand still; each time
// gives its one job afterwards.
func TestSchedulesGoOnWhereTheirSlotGoes(t *testing.T) {
	t.Parallel()
	s := onCluster(t, 3, 0)
	q, ctx := s.Queue("q"), within(t, time.Minute)
	var seen ticks
	for range 2 {
		w, err := pawl.NewWorker(s.Other(), pawl.WorkerConfig{Queues: pawl.Queues("q"), VisibilityTimeout: 5 * time.Second})
		require.NoError(t, err)
		pawl.Handle(w, seen.handle)
		s.Start(w)
	}
	require.NoError(t, q.Schedule(ctx, secondly(pawl.MissedAll)))
	skip := secondly(pawl.MissedOnce)
	skip.ID, skip.Overlap, skip.Args = "skip", pawl.OverlapSkip, pawl.Raw{Name: "other", Payload: []byte("{}")}
	require.NoError(t, q.Schedule(ctx, skip), "whose jobs wait")
	seen.await(t, 2)
	source, target := s.Cluster.MasterOf(tag), s.Cluster.OtherMaster(tag)
	for _, to := range []*redistest.Server{target, source} {
		s.Cluster.Migrate(tag, to, func(int) { <-time.After(100 * time.Millisecond) })
		seen.await(t, len(seen.all())+3)
	}
	require.NoError(t, q.SyncSchedules(ctx, nil))
	seen.mu.Lock() // one whose lease was answered to nobody runs again later
	slices.SortFunc(seen.in, time.Time.Compare)
	seen.mu.Unlock()
	seen.eachOnce(t)
	require.Empty(t, s.Cluster.Keys(target, tag))
}
