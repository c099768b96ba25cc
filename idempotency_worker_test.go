package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/testhook"
)

func TestAJobIsSkippedIfOneWasDoneUnderItsKey(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("pay")
		var ran []int
		w := e.Worker("pay", pawl.WorkerConfig{Concurrency: 1})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error { ran = append(ran, job.Args.N); return nil })
		pawl.Handle(w, func(context.Context, *pawl.Job[billing]) error { ran = append(ran, -1); return nil })
		stop := e.Start(w)
		put(t, q, 1, once(7))
		e.Log.Wait(t, "done", 1)
		skipped := put(t, q, 2, once(7), pawl.MaxAttempts(1), pawl.MaxCrashes(1))
		e.Log.Wait(t, "skipped", 1)
		_, err := q.Enqueue(t.Context(), billing{7}, once(7)) // keys are the queue's, whatever the kind
		require.NoError(t, err)
		e.Log.Wait(t, "skipped", 2)
		put(t, q, 3, once(8))
		put(t, q, 4)
		e.Log.Wait(t, "done", 3)
		require.NoError(t, stop())

		require.Equal(t, []int{1, 3, 4}, ran)
		event := e.Log.Of("skipped")[0]
		require.Equal(t, skipped, event.Job.ID)
		require.NoError(t, event.Err)
		require.Len(t, e.Log.Of("started"), 3, "a handler was called, or is said to have been")
		_, err = q.Get(t.Context(), skipped)
		require.ErrorIs(t, err, pawl.ErrNotFound, "it is over")
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, pawl.Counters{Enqueued: 5, Started: 5, Done: 5, Skipped: 2}, s.Total)
	})
}

func TestAKeyIsFreeAfterItsWindow(t *testing.T) {
	t.Parallel()
	for window, key := range map[time.Duration]pawl.Idempotency{24 * time.Hour: {Key: "k"}, time.Minute: {Key: "k", Window: time.Minute}} {
		bubble(t, func(t *testing.T, e *env) {
			q := e.Queue("pay")
			run := func(event string, n int) time.Time {
				w := e.Worker("pay", pawl.WorkerConfig{}) // none beside it: a worker that idles for a day is slow to watch
				pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
				put(t, q, n, key)
				e.Run(w, event, n)
				return time.Now()
			}
			done := run("done", 1)
			e.Pass(time.Until(done.Add(window)) - time.Second)
			run("skipped", 1)
			e.Pass(time.Until(done.Add(window)) + time.Millisecond)
			run("done", 2)
			require.Len(t, e.Log.Of("skipped"), 1)
		})
	}
}

// A run that does not end as done gives the key up, whatever its end, and its
// retry is skipped if another job was done meanwhile.
func TestAKeyIsFreeAtEachEndThatIsNotDone(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		err   error
		event string
		opts  []pawl.Option
		then  string // what becomes of the first job, an hour later
	}{
		"retried":   {errors.New("x"), "retry", []pawl.Option{pawl.Backoff{Base: time.Hour, Jitter: pawl.JitterNone}}, "skipped"},
		"snoozed":   {pawl.Snooze(time.Hour), "snoozed", nil, "skipped"},
		"dead":      {pawl.Permanent(errors.New("x")), "dead", nil, ""},
		"at once":   {errors.New("x"), "dead", []pawl.Option{pawl.MaxAttempts(1), pawl.MaxCrashes(1)}, ""},
		"discarded": {pawl.Discard(errors.New("x")), "discarded", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				q := e.Queue("pay")
				w := e.Worker("pay", pawl.WorkerConfig{})
				pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
					if job.Args.N == 1 {
						return end.err
					}
					return nil
				})
				e.Start(w)
				first := put(t, q, 1, append(end.opts, once(7))...)
				e.Log.Wait(t, end.event, 1)
				put(t, q, 2, once(7))
				e.Log.Wait(t, "done", 1)
				e.Pass(2 * time.Hour)
				if end.then != "" {
					require.Equal(t, first, e.Log.Wait(t, end.then, 1)[0].Job.ID)
				}
				require.Len(t, e.Log.Of("started"), 2)
				if name == "dead" {
					report, err := q.Dead().Redrive(t.Context(), first)
					require.NoError(t, err)
					require.Equal(t, 1, report.Moved)
					require.Equal(t, first, e.Log.Wait(t, "skipped", 1)[0].Job.ID)
				}
			})
		})
	}
}

func TestAJobWhoseKeyIsInUseWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	for name, failing := range map[string]bool{"and is skipped once the other is done": false, "and runs once the other has failed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				q := e.Queue("pay")
				var at, most atomic.Int64
				w := e.Worker("pay", pawl.WorkerConfig{VisibilityTimeout: 10 * time.Second})
				pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
					most.Store(max(most.Load(), at.Add(1)))
					defer at.Add(-1)
					<-time.After(time.Minute)
					if failing && job.Args.N == 1 {
						return pawl.Permanent(errors.New("declined"))
					}
					return nil
				})
				put(t, q, 1, once(7))
				e.Start(w)
				e.Log.Wait(t, "started", 1)
				began := time.Now()
				second := put(t, q, 2, once(7), pawl.MaxAttempts(1), pawl.MaxCrashes(1), pawl.Unique{Key: "u", Until: pawl.UntilStarted})
				other := put(t, q, 3) // nobody waits behind it
				e.Log.Wait(t, "started", 2)
				require.Less(t, time.Since(began), time.Second)
				e.Pass(30 * time.Second)
				held, err := q.Enqueue(t.Context(), note{4}, pawl.Unique{Key: "u"})
				require.NoError(t, err)
				require.Equal(t, second, held.ID, "it has not started")
				require.Zero(t, get(t, q, second).Crashes)
				require.Zero(t, get(t, q, second).Attempt)

				if failing {
					done := e.Log.Wait(t, "done", 2)
					require.ElementsMatch(t, []pawl.ID{second, other}, []pawl.ID{done[0].Job.ID, done[1].Job.ID})
					require.Equal(t, 1, done[1].Job.Attempt)
				} else {
					require.Equal(t, second, e.Log.Wait(t, "skipped", 1)[0].Job.ID)
				}
				ended := e.Log.Of("dead")
				if !failing {
					ended = e.Log.Of("done")
				}
				require.NotEmpty(t, ended)
				require.EqualValues(t, 2, most.Load(), "the other key's and one of this")
				waits := e.Log.Of("snoozed")
				require.Greater(t, len(waits), 5, "it comes soon after the end of a short run")
				require.Less(t, len(waits), 30, "and does not ask all the time")
				require.ErrorContains(t, waits[0].Err, `runs under the idempotency key "charge:7"`)
			})
		})
	}
}

func TestACrashedHoldersNextRunTakesTheKeyOver(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("pay")
		first := put(t, q, 1, once(7))
		crashing := e.Worker("pay", pawl.WorkerConfig{VisibilityTimeout: 10 * time.Second})
		pawl.Handle(crashing, untilCancelled)
		e.Start(crashing)
		e.Log.Wait(t, "started", 1)
		testhook.Abandon(crashing)
		second := put(t, q, 2, once(7))
		w := e.Worker("pay", pawl.WorkerConfig{VisibilityTimeout: 10 * time.Second})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Start(w)
		require.Equal(t, first, e.Log.Wait(t, "done", 1)[0].Job.ID)
		require.Equal(t, second, e.Log.Wait(t, "skipped", 1)[0].Job.ID)
		require.Len(t, e.Log.Of("crashed"), 1)
	})
}

// At most once: it is buried unrun after a crash, and so gives the key up.
func TestAJobThatMayCrashOnceGivesItsKeyUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("pay")
		first := put(t, q, 1, once(7), pawl.MaxAttempts(1), pawl.MaxCrashes(1))
		crashing := e.Worker("pay", pawl.WorkerConfig{VisibilityTimeout: 10 * time.Second})
		pawl.Handle(crashing, untilCancelled)
		e.Start(crashing)
		e.Log.Wait(t, "started", 1)
		testhook.Abandon(crashing)
		w := e.Worker("pay", pawl.WorkerConfig{VisibilityTimeout: 10 * time.Second})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		second := put(t, q, 2, once(7))
		e.Start(w)
		require.Equal(t, first, e.Log.Wait(t, "dead", 1)[0].Job.ID)
		require.Equal(t, second, e.Log.Wait(t, "done", 1)[0].Job.ID)
		require.EqualValues(t, 1, e.Redis.Exists(t.Context(), "pawl:{pay}:idem:charge:7").Val(), "for its window")
	})
}

func TestACancelledJobGivesItsKeyUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("pay")
		w := e.Worker("pay", pawl.WorkerConfig{VisibilityTimeout: 10 * time.Second})
		pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
			if job.Args.N == 1 {
				return untilCancelled(ctx, job)
			}
			return nil
		})
		first := put(t, q, 1, once(7))
		e.Start(w)
		e.Log.Wait(t, "started", 1)
		second := put(t, q, 2, once(7))
		e.Log.Wait(t, "snoozed", 1)
		require.NoError(t, q.Cancel(t.Context(), first))
		require.Equal(t, second, e.Log.Wait(t, "done", 1)[0].Job.ID)
	})
}

// What waits with a key that was used can be cancelled, purged and deleted.
func TestAJobThatWaitsForItsRetryTakesItsMarkAlong(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(ctx context.Context, q *pawl.Queue, id pawl.ID) error{
		"cancelled": func(ctx context.Context, q *pawl.Queue, id pawl.ID) error { return q.Cancel(ctx, id) },
		"purged": func(ctx context.Context, q *pawl.Queue, _ pawl.ID) error {
			n, err := q.Purge(ctx, pawl.StateDelayed, pawl.Filter{})
			if err == nil && n != 1 {
				err = fmt.Errorf("%d purged", n)
			}
			return err
		},
		"destroyed": func(ctx context.Context, q *pawl.Queue, _ pawl.ID) error { return q.Destroy(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contract(t, func(t *testing.T, e *env) {
				q := e.Queue("pay")
				w := e.Worker("pay", pawl.WorkerConfig{})
				pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return pawl.Snooze(time.Hour) })
				id := put(t, q, 1, once(7), pawl.Unique{Key: "u"})
				e.Run(w, "snoozed", 1)
				require.NoError(t, end(t.Context(), q, id))
				require.Zero(t, e.Redis.Exists(t.Context(), "pawl:{pay}:idem:charge:7", "pawl:{pay}:unique:u").Val())
			})
		})
	}
}

// The timeout is the handler's: a claim that took long has not used it up.
func TestATimeoutBeginsWithTheHandler(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		w := e.Worker("pay", pawl.WorkerConfig{Timeout: time.Minute})
		pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
			end, ok := ctx.Deadline()
			if !ok || time.Until(end) != time.Minute {
				return fmt.Errorf("%v left", time.Until(end))
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		put(t, e.Queue("pay"), 1, once(7), pawl.MaxAttempts(1))
		require.ErrorIs(t, e.Run(w, "dead", 1)[0].Err, pawl.ErrTimeout)
		require.Equal(t, time.Minute, e.Log.Of("dead")[0].Took)
	})
}

// A list that somebody made by hand holds nobody up.
func TestAKeyOfAWrongTypePreventsNothing(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		key := "pawl:{pay}:idem:charge:7"
		require.NoError(t, e.Redis.RPush(t.Context(), key, "x").Err())
		put(t, e.Queue("pay"), 1, once(7))
		put(t, e.Queue("pay"), 2, once(7))
		w := e.Worker("pay", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Run(w, "done", 2)
		found, err := e.Queue("pay").Check(t.Context())
		require.NoError(t, err)
		require.Equal(t, []pawl.Violation{{Key: key, Text: "is of a wrong type"}}, found)
		require.NoError(t, e.Redis.Del(t.Context(), key).Err())
	})
}
