package pawl_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// listed is all that a list yields, and fails the test at an error.
func listed(t *testing.T, list iter.Seq2[pawl.JobInfo, error]) (infos []pawl.JobInfo) {
	t.Helper()
	seen := map[pawl.ID]bool{}
	for info, err := range list {
		require.NoError(t, err)
		require.False(t, seen[info.ID], "%s is listed twice", info.ID)
		seen[info.ID] = true
		infos = append(infos, info)
	}
	return infos
}

func idsOf(infos []pawl.JobInfo) (ids []pawl.ID) {
	for _, info := range infos {
		ids = append(ids, info.ID)
	}
	return ids
}

// untilCancelled is a handler that runs until its context ends.
func untilCancelled(ctx context.Context, _ *pawl.Job[note]) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func put(t *testing.T, q *pawl.Queue, n int, opts ...pawl.Option) pawl.ID {
	t.Helper()
	job, err := q.Enqueue(t.Context(), note{n}, opts...)
	require.NoError(t, err)
	return job.ID
}

func TestListOfReadyJobsIsInTheOrderOfTheirSources(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		given := put(t, q, 0)
		w := e.Worker("q", pawl.WorkerConfig{DrainTimeout: time.Millisecond})
		pawl.Handle(w, untilCancelled)
		stop := e.Start(w)
		e.Log.Wait(t, "started", 1)
		require.Error(t, stop(), "it is given back")
		soon := []pawl.ID{put(t, q, 1, pawl.Delay(time.Millisecond)), put(t, q, 2, pawl.Delay(20*time.Millisecond))}
		var fresh []pawl.ID
		for n := range 3 {
			fresh = append(fresh, put(t, q, n))
		}
		low, high := put(t, q, 3, pawl.Priority(1)), put(t, q, 4, pawl.Priority(9))
		again := put(t, q, 5, pawl.Priority(9))
		later := put(t, q, 6, pawl.Delay(time.Hour))
		<-time.After(50 * time.Millisecond)

		want := slices.Concat([]pawl.ID{given}, soon, []pawl.ID{high, again, low}, fresh)
		got := listed(t, q.List(t.Context(), pawl.StateReady, pawl.Filter{}))
		require.Equal(t, want, idsOf(got))
		for _, info := range got {
			require.Equal(t, pawl.StateReady, info.State)
			require.Zero(t, info.LeaseUntil)
			single, err := q.Get(t.Context(), info.ID)
			require.NoError(t, err)
			require.Equal(t, single.RawJob.Payload, info.Payload)
			require.Equal(t, single.Priority, info.Priority)
			require.Equal(t, single.DueAt, info.DueAt)
			require.Equal(t, single.Attempt, info.Attempt)
		}
		require.Equal(t, []pawl.ID{later}, idsOf(listed(t, q.List(t.Context(), pawl.StateDelayed, pawl.Filter{}))))
		require.Empty(t, listed(t, q.List(t.Context(), pawl.StateRunning, pawl.Filter{})))
		require.Empty(t, listed(t, q.List(t.Context(), pawl.StateDead, pawl.Filter{})))
	})
}

func TestListFilters(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		tenant := func(v string) pawl.Option { return pawl.Header{Key: "tenant", Value: v} }
		first := put(t, q, 1, tenant("a"))
		<-time.After(5 * time.Millisecond)
		second := put(t, q, 2, tenant("b"))
		<-time.After(5 * time.Millisecond)
		raw, err := q.EnqueueRaw(t.Context(), "other", []byte("{}"), tenant("a"))
		require.NoError(t, err)
		info, err := q.Get(t.Context(), second)
		require.NoError(t, err)
		at := info.EnqueuedAt
		for _, tc := range []struct {
			filter pawl.Filter
			want   []pawl.ID
		}{
			{pawl.Filter{}, []pawl.ID{first, second, raw.ID}},
			{pawl.Filter{Kind: "note"}, []pawl.ID{first, second}},
			{pawl.Filter{Kind: "none"}, nil},
			{pawl.Filter{Header: pawl.Header{Key: "tenant", Value: "a"}}, []pawl.ID{first, raw.ID}},
			{pawl.Filter{Header: pawl.Header{Key: "tenant"}}, nil},
			{pawl.Filter{Header: pawl.Header{Key: "none", Value: ""}}, nil},
			{pawl.Filter{Since: at}, []pawl.ID{second, raw.ID}},
			{pawl.Filter{Until: at}, []pawl.ID{first}},
			{pawl.Filter{Since: at, Until: at.Add(time.Microsecond)}, []pawl.ID{second}},
			{pawl.Filter{Since: at, Until: at}, nil},
			{pawl.Filter{Limit: 2}, []pawl.ID{first, second}},
			{pawl.Filter{Limit: -1}, []pawl.ID{first, second, raw.ID}},
			{pawl.Filter{Kind: "other", Header: pawl.Header{Key: "tenant", Value: "a"}, Limit: 9}, []pawl.ID{raw.ID}},
		} {
			require.Equal(t, tc.want, idsOf(listed(t, q.List(t.Context(), pawl.StateReady, tc.filter))), "%+v", tc.filter)
		}
		n := 0
		for _, err := range q.List(t.Context(), pawl.StateReady, pawl.Filter{}) {
			require.NoError(t, err)
			if n++; n == 2 {
				break
			}
		}
		require.Equal(t, 2, n)
	})
}

func TestControlOfAQueueThatIsNone(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		calls := map[string]func(*pawl.Queue) error{
			"list": func(q *pawl.Queue) error {
				n := 0
				for _, err := range q.List(ctx, pawl.StateReady, pawl.Filter{}) {
					require.Error(t, err)
					if n++; err != nil {
						return err
					}
				}
				return nil
			},
			"purge":   func(q *pawl.Queue) error { _, err := q.Purge(ctx, pawl.StateDead, pawl.Filter{}); return err },
			"pause":   func(q *pawl.Queue) error { return q.Pause(ctx, time.Hour) },
			"resume":  func(q *pawl.Queue) error { return q.Resume(ctx) },
			"destroy": func(q *pawl.Queue) error { return q.Destroy(ctx) },
		}
		for name, call := range calls {
			require.ErrorIs(t, call(e.Client.Queue("never")), pawl.ErrNotFound, name)
			require.ErrorIs(t, call(e.Client.Queue("a b")), pawl.ErrName, name)
		}
		_, err := e.Client.Queue("a b").Minutes(ctx, time.Time{}, time.Time{})
		require.ErrorIs(t, err, pawl.ErrName)
		require.ErrorIs(t, e.Client.Queue("a b").RunNow(ctx, pawl.ID{1}), pawl.ErrName)
		keys, err := e.Redis.Keys(ctx, "*never*").Result()
		require.NoError(t, err)
		for _, key := range keys {
			require.Contains(t, key, ":lane:", "nothing was made")
		}
		put(t, e.Queue("q"), 1)
		for _, state := range []pawl.State{"", "cancelled", "Ready"} {
			for _, err := range e.Queue("q").List(ctx, state, pawl.Filter{}) {
				require.ErrorIs(t, err, pawl.ErrInvalid)
			}
			_, err := e.Queue("q").Purge(ctx, state, pawl.Filter{})
			require.ErrorIs(t, err, pawl.ErrInvalid)
		}
		_, err = e.Queue("q").Purge(ctx, pawl.StateRunning, pawl.Filter{})
		require.ErrorIs(t, err, pawl.ErrInvalid)
	})
}

// Three thousand jobs of one millisecond are listed once each and in order,
// although those at the end of each page are cancelled before the next.
func TestListOfOneMillisecondGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		const n = 3000
		at := time.Now().Add(time.Hour)
		_, err := q.EnqueueMany(t.Context(), pawl.Items(make([]note, n), pawl.At(at)))
		require.NoError(t, err)
		var last pawl.ID
		count := 0
		var page []pawl.ID
		for info, err := range q.List(t.Context(), pawl.StateDelayed, pawl.Filter{}) {
			require.NoError(t, err)
			require.Less(t, last.String(), info.ID.String(), "in order, and so once")
			last = info.ID
			page = append(page, last)
			if count++; count%500 == 0 {
				for _, id := range page[len(page)-3:] {
					require.NoError(t, q.Cancel(t.Context(), id))
				}
				page = nil
			}
		}
		require.Equal(t, n, count)
	})
}

func TestListOfRunningJobsNamesTheirWorkers(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		fill(t, e, 30, "q")
		for _, name := range []string{"one", "two", "three"} {
			w := e.Worker("q", pawl.WorkerConfig{Name: name, Concurrency: 10, VisibilityTimeout: 9 * time.Second})
			pawl.Handle(w, untilCancelled)
			e.Start(w)
		}
		began := time.Now()
		e.Log.Wait(t, "started", 30)
		e.Pass(time.Minute)
		now := time.Now()
		names := map[string]int{}
		var last pawl.ID
		for info, err := range q.List(t.Context(), pawl.StateRunning, pawl.Filter{}) {
			require.NoError(t, err)
			require.Less(t, last.String(), info.ID.String())
			last = info.ID
			names[info.Worker]++
			require.Equal(t, pawl.StateRunning, info.State)
			require.Equal(t, 1, info.Attempt)
			require.WithinDuration(t, began, info.StartedAt, 5*time.Second)
			require.True(t, info.LeaseUntil.After(now), "%v", info.LeaseUntil)
			require.WithinDuration(t, now, info.LeaseUntil, 10*time.Second)
			single, err := q.Get(t.Context(), info.ID)
			require.NoError(t, err)
			require.Equal(t, info.Worker, single.Worker)
			require.Equal(t, info.StartedAt, single.StartedAt)
			<-time.After(time.Second) // leases are renewed
		}
		require.Equal(t, map[string]int{"one": 10, "two": 10, "three": 10}, names)
	})
}

func TestCorruptAndForeignRecordsAreListedAndPurged(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ctx, q := t.Context(), e.Queue("q")
		good := put(t, q, 1)
		for _, id := range []string{"1-1", "2-2", "1750000000000000-9223372036854775808"} {
			// Of another shape than a record; two have ids that are no job's.
			require.NoError(t, e.Redis.XAdd(ctx, &redis.XAddArgs{Stream: "pawl:{other}:jobs", ID: id, Values: []string{"a", id}}).Err())
		}
		other := e.Client.Queue("other")
		payloads := map[string]bool{}
		for info, err := range other.List(ctx, pawl.StateReady, pawl.Filter{}) {
			require.NoError(t, err)
			payloads[string(info.Payload)] = true
			require.Empty(t, info.Kind)
		}
		require.Len(t, payloads, 3)
		require.NoError(t, e.Redis.HSet(ctx, "pawl:{q}:held", "946000000000001-9223372036854775808", "\xffraw").Err())
		require.NoError(t, e.Redis.ZAdd(ctx, "pawl:{q}:prio", redis.Z{Score: 5, Member: "946000000000001-9223372036854775808"}).Err())
		infos := listed(t, q.List(ctx, pawl.StateReady, pawl.Filter{}))
		require.Len(t, infos, 2)
		require.Equal(t, "\xffraw", string(infos[0].Payload))
		require.Equal(t, good, infos[1].ID)
		n, err := q.Purge(ctx, pawl.StateReady, pawl.Filter{})
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		n, err = other.Purge(ctx, pawl.StateReady, pawl.Filter{})
		require.NoError(t, err)
		require.EqualValues(t, 3, n, "by their ids in Redis")
	})
}

// Jobs come, go and change their state while the lists are walked.
func TestListsGoOnWhileTheQueueIsAtWork(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		fill(t, e, 1, "q")
		w := e.Worker("q", pawl.WorkerConfig{Concurrency: 20, Backoff: pawl.Backoff{Base: time.Millisecond}})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			switch {
			case job.Args.N%7 == 0 && job.Attempt < 3:
				return errors.New("again")
			case job.Args.N%11 == 0:
				return pawl.Permanent(errors.New("no"))
			}
			return nil
		})
		e.Start(w)
		walked := make(chan error, 1)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			for ctx.Err() == nil {
				for _, s := range []pawl.State{pawl.StateReady, pawl.StateDelayed, pawl.StateRunning, pawl.StateDead} {
					seen := map[pawl.ID]bool{}
					for info, err := range q.List(context.Background(), s, pawl.Filter{}) {
						if err == nil && seen[info.ID] {
							err = errors.New(info.ID.String() + " twice")
						}
						if err != nil {
							walked <- err
							return
						}
						seen[info.ID] = true
					}
				}
			}
			walked <- nil
		}()
		const rounds, n = 20, 200
		for range rounds {
			fill(t, e, n, "q")
		}
		e.Log.Wait(t, "dead", 1)
		for len(e.Log.Of("done"))+len(e.Log.Of("dead")) < 1+rounds*n {
			<-time.After(10 * time.Millisecond)
		}
		cancel()
		require.NoError(t, <-walked)
	})
}

func TestListEndsWithItsContext(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		put(t, e.Queue("q"), 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		n := 0
		for _, err := range e.Queue("q").List(ctx, pawl.StateReady, pawl.Filter{}) {
			require.ErrorIs(t, err, context.Canceled)
			require.True(t, strings.HasPrefix(err.Error(), "pawl: list q: "), err)
			n++
		}
		require.Equal(t, 1, n)
	})
}
