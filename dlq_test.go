package pawl_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/record"
)

// die enqueues n jobs with opts and has them die; it returns their ids.
func die(t *testing.T, e *env, n int, opts ...pawl.Option) (ids []pawl.ID) {
	t.Helper()
	opts = append(opts, pawl.MaxAttempts(1))
	for i := range n {
		job, err := e.Queue("mail").Enqueue(t.Context(), note{i}, opts...)
		require.NoError(t, err)
		ids = append(ids, job.ID)
	}
	w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 1})
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error { return fmt.Errorf("failure %d", job.Args.N) })
	before := len(e.Log.Of("dead"))
	e.Run(w, "dead", before+n)
	return ids
}

func TestThePostMortemSaysWhatHappened(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		start := time.Now()
		job, err := q.Enqueue(t.Context(), note{7}, pawl.MaxAttempts(7), pawl.Header{Key: "tenant", Value: "a"},
			pawl.Unique{Key: "k"}, pawl.Backoff{Steps: []time.Duration{time.Minute}, Jitter: pawl.JitterNone})
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{Name: "web-1:7"})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			<-time.After(time.Second)
			return fmt.Errorf("attempt %d", job.Attempt)
		})
		e.Run(w, "dead", 1)
		var listed []pawl.DeadJob
		for d, err := range q.Dead().List(t.Context(), pawl.DeadFilter{}) {
			require.NoError(t, err)
			listed = append(listed, d)
		}
		require.Len(t, listed, 1)
		d, err := q.Dead().Get(t.Context(), job.ID)
		require.NoError(t, err)
		require.Equal(t, listed[0], d)
		require.Equal(t, job.ID, d.ID)
		require.Equal(t, "mail", d.Queue)
		require.Equal(t, "note", d.Kind)
		require.Equal(t, `{"n":7}`, string(d.Payload))
		require.Equal(t, pawl.Headers{"tenant": "a"}, d.Headers)
		require.Equal(t, pawl.ReasonExhausted, d.Reason)
		require.Equal(t, "attempt 7", d.Error)
		require.Equal(t, "web-1:7", d.Worker)
		require.Equal(t, "k", d.Unique)
		require.Equal(t, 7, d.Attempt)
		require.NotEmpty(t, d.Position)
		require.WithinDuration(t, start.Add(time.Second), d.FirstFailedAt, 100*time.Millisecond)
		require.WithinDuration(t, start.Add(6*61*time.Second+time.Second), d.DiedAt, time.Second)
		require.Len(t, d.Errors, 5)
		for i, a := range d.Errors {
			require.Equal(t, i+3, a.Attempt)
			require.Equal(t, fmt.Sprintf("attempt %d", i+3), a.Error)
			require.Equal(t, time.Second, a.Took)
			require.WithinDuration(t, start.Add(time.Duration(i+2)*61*time.Second), a.At, 2*time.Second)
		}
	})
}

func TestRedriveGivesFreshAttemptsAndKeepsIdAndHistory(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		ids := die(t, e, 3)
		n, err := q.Dead().Len(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, n)
		report, err := q.Dead().Redrive(t.Context(), ids[0], ids[2], pawl.ID{})
		require.ErrorIs(t, err, pawl.ErrNotFound, "one of them is no id")
		require.Equal(t, pawl.RedriveReport{Matched: 2, Moved: 2}, report)
		report, err = q.Dead().Redrive(t.Context(), ids[0])
		require.ErrorIs(t, err, pawl.ErrNotFound, "it is not dead any more")
		require.Zero(t, report.Moved)

		seen := make(chan pawl.RawJob, 3)
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error { seen <- job.RawJob; return nil })
		e.Run(w, "done", 2)
		job := <-seen
		require.Equal(t, 1, job.Attempt)
		require.Equal(t, 1, job.Redrives)
		require.Contains(t, []pawl.ID{ids[0], ids[2]}, job.ID)
		require.Equal(t, job.ID.String(), job.IdempotencyKey())
		require.Contains(t, job.LastError, "failure")
		n, err = q.Dead().Len(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
	})
}

func TestARedriveTakesItsUniqueKeyOrNamesTheHolder(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		ids := die(t, e, 1, pawl.Unique{Key: "k"})
		holder, err := q.Enqueue(t.Context(), note{9}, pawl.Unique{Key: "k"})
		require.NoError(t, err)
		require.False(t, holder.Duplicate, "death frees the key")
		report, err := q.Dead().Redrive(t.Context(), ids[0])
		require.NoError(t, err)
		require.Equal(t, []pawl.RefusedRedrive{{ID: ids[0], Holder: holder.ID}}, report.Refused)
		require.Zero(t, report.Moved)
		require.NoError(t, q.Cancel(t.Context(), holder.ID))
		report, err = q.Dead().Redrive(t.Context(), ids[0])
		require.NoError(t, err)
		require.Equal(t, 1, report.Moved)
		again, err := q.Enqueue(t.Context(), note{9}, pawl.Unique{Key: "k"})
		require.NoError(t, err)
		require.True(t, again.Duplicate)
		require.Equal(t, ids[0], again.ID)
	})
}

func TestListFiltersAndPages(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		die(t, e, 70)
		e.Pass(time.Hour)
		middle := time.Now()
		e.Pass(time.Minute)
		last := die(t, e, 70)
		list := func(f pawl.DeadFilter) (ids []pawl.ID) {
			for d, err := range q.Dead().List(t.Context(), f) {
				require.NoError(t, err)
				ids = append(ids, d.ID)
			}
			return ids
		}
		require.Len(t, list(pawl.DeadFilter{}), 140)
		require.Equal(t, last, list(pawl.DeadFilter{Since: middle}))
		require.Len(t, list(pawl.DeadFilter{Until: middle, Kind: "note", Reason: pawl.ReasonExhausted}), 70)
		require.Len(t, list(pawl.DeadFilter{Error: "failure 69"}), 2)
		require.Equal(t, last[69:], list(pawl.DeadFilter{Error: "failure 69", Since: middle, Limit: 5}))
		require.Len(t, list(pawl.DeadFilter{Limit: 65}), 65)
		require.Empty(t, list(pawl.DeadFilter{Kind: "other"}))
		require.Empty(t, list(pawl.DeadFilter{Reason: pawl.ReasonCrashed}))
	})
}

func TestDeleteRemovesForGood(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		ids := die(t, e, 4)
		n, err := q.Dead().Delete(t.Context(), ids[1], ids[1], pawl.ID{}, ids[3])
		require.NoError(t, err)
		require.Equal(t, 2, n)
		var left []pawl.ID
		for d, err := range q.Dead().List(t.Context(), pawl.DeadFilter{}) {
			require.NoError(t, err)
			left = append(left, d.ID)
		}
		require.Equal(t, []pawl.ID{ids[0], ids[2]}, left)
		_, err = q.Dead().Get(t.Context(), ids[1])
		require.ErrorIs(t, err, pawl.ErrNotFound)
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Total.Purged)
		require.EqualValues(t, 2, s.Dead)
	})
}

func TestACorruptRecordIsBuriedWithItsBytesAndTheLoopGoesOn(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		ctx := t.Context()
		require.NoError(t, e.Redis.Do(ctx, "XADD", "pawl:{mail}:jobs", "5-5", "foreign", "entry", "two", "fields").Err())
		job, err := q.Enqueue(ctx, note{1})
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		stop := e.Start(w)
		e.Log.Wait(t, "dead", 1)
		require.Equal(t, job.ID, e.Log.Wait(t, "done", 1)[0].Job.ID)
		require.NoError(t, stop())
		for d, err := range q.Dead().List(ctx, pawl.DeadFilter{}) {
			require.NoError(t, err)
			require.Equal(t, pawl.ReasonCorrupt, d.Reason)
			require.Contains(t, string(d.Payload), "foreign")
			require.EqualValues(t, 7, d.ID.Version())
			n, err := q.Dead().Delete(ctx, d.ID)
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
	})
}

// No producer of this package makes such a job: its end would be refused in its middle by
// Redis, which has no room for so many words, and what follows be added each time.
func TestARecordThatTooManyFollowIsBuried(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		next := record.Record{Kind: "note", Payload: []byte("{}"), LongHead: true}
		foreign := record.Record{Kind: "note", Payload: []byte("{}")}
		for range 5000 {
			foreign.Then = append(foreign.Then, record.Then{How: "d 60000", Record: next.Append(nil)})
		}
		require.NoError(t, e.Redis.Do(ctx, "XADD", "pawl:{mail}:jobs", "5-9223372036854775808", "r", foreign.Append(nil)).Err())
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Start(w)
		e.Log.Wait(t, "dead", 1)
		for d, err := range q.Dead().List(ctx, pawl.DeadFilter{}) {
			require.NoError(t, err)
			require.Equal(t, pawl.ReasonCorrupt, d.Reason)
			require.Contains(t, d.Error, "5000 jobs follow it")
		}
		stats, err := q.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, stats.Delayed)
	})
}

func TestStatsTellsTheOldestReadyJob(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		_, err := q.Enqueue(t.Context(), note{1}, pawl.Delay(time.Hour))
		require.NoError(t, err)
		e.Pass(30 * time.Minute)
		_, err = q.Enqueue(t.Context(), note{2}, pawl.Priority(2))
		require.NoError(t, err)
		e.Pass(10 * time.Minute)
		_, err = q.Enqueue(t.Context(), note{3})
		require.NoError(t, err)
		e.Pass(25 * time.Minute)
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, s.Ready)
		require.Zero(t, s.Delayed)
		require.InDelta(t, 35*time.Minute, s.OldestReady, float64(time.Second), "the prioritised one")
		require.EqualValues(t, 3, s.Depth())
	})
}

func TestCheckFindsWhatWasBrokenByHand(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Client.Queue("mail") // not e.Queue: it is broken on purpose
		for name, breakIt := range map[string][]any{
			"a place without a record": {"ZADD", "pawl:{mail}:prio", "1", "1795981211327661-9223372036854775809"},
			"two states":               {"ZADD", "pawl:{mail}:prio", "1", "ID"},
			"a lease without a run":    {"ZADD", "pawl:{mail}:leases", "1", "ID"},
			"a run without a lease":    {"HSET", "pawl:{mail}:runs", "ID", "t|0||"},
			"a foreign key":            {"SET", "pawl:{mail}:thing", "1"},
			"a lane for ever":          {"SET", "pawl:{mail}:lane:x", "1 a"},
			"a key without a job":      {"SET", "pawl:{mail}:unique:x", "1795981211327661-9223372036854775809 d 0"},
			"a lost state":             {"ZREM", "pawl:{mail}:due", "ID"},
		} {
			ctx := t.Context()
			e.Mini.FlushAll()
			_, err := q.Enqueue(ctx, note{1}, pawl.Delay(time.Hour))
			require.NoError(t, err)
			found, err := q.Check(ctx)
			require.NoError(t, err)
			require.Empty(t, found)
			for i, word := range breakIt {
				if word == "ID" {
					breakIt[i] = e.Redis.ZRange(ctx, "pawl:{mail}:due", 0, 0).Val()[0]
				}
			}
			require.NoError(t, e.Redis.Do(ctx, breakIt...).Err())
			found, err = q.Check(ctx)
			require.NoError(t, err)
			require.NotEmpty(t, found, name)
			require.NotEmpty(t, found[0].String())
		}
	})
}
