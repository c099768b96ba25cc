package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// outcomes is what a handler can end with, and what must come of it.
var outcomes = map[string]struct {
	handler func(context.Context, *pawl.Job[note]) error
	event   string
	reason  pawl.DeadReason
	text    string
	failed  int64
}{
	"nil is done":            {func(context.Context, *pawl.Job[note]) error { return nil }, "done", "", "", 0},
	"an error retries":       {func(context.Context, *pawl.Job[note]) error { return errors.New("x") }, "retry", "", "x", 1},
	"Permanent dies at once": {func(context.Context, *pawl.Job[note]) error { return pawl.Permanent(errors.New("bad card")) }, "dead", pawl.ReasonPermanent, "bad card", 1},
	"a wrapped Permanent dies": {func(context.Context, *pawl.Job[note]) error {
		return fmt.Errorf("charge: %w", pawl.Permanent(errors.New("bad")))
	}, "dead", pawl.ReasonPermanent, "charge: bad", 1},
	"RetryAfter retries":       {func(context.Context, *pawl.Job[note]) error { return pawl.RetryAfter(time.Minute, errors.New("503")) }, "retry", "", "503", 1},
	"Snooze spends no attempt": {func(context.Context, *pawl.Job[note]) error { return pawl.Snooze(time.Minute) }, "snoozed", "", "", 0},
	"Discard drops":            {func(context.Context, *pawl.Job[note]) error { return pawl.Discard(errors.New("old")) }, "discarded", "", "old", 0},
	"a panic is an error":      {func(context.Context, *pawl.Job[note]) error { panic("boom") }, "retry", "", "boom", 1},
	"a runtime error is an error": {func(_ context.Context, job *pawl.Job[note]) error {
		var none []int
		return errors.New(fmt.Sprint(none[job.Attempt]))
	}, "retry", "", "index out of range", 1},
	"Goexit is an error": {func(context.Context, *pawl.Job[note]) error { runtime.Goexit(); return nil }, "retry", "", "Goexit", 1},
}

// W6: of panics and runtime.Goexit, among others.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for name, want := range outcomes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				q := e.Queue("mail")
				job, err := q.Enqueue(t.Context(), note{1})
				require.NoError(t, err)
				w := e.Worker("mail", pawl.WorkerConfig{})
				pawl.Handle(w, want.handler)
				got := e.Run(w, want.event, 1)[0]
				require.Equal(t, job.ID, got.Job.ID)
				if want.text != "" {
					require.ErrorContains(t, got.Err, want.text)
				}
				s, err := q.Stats(t.Context())
				require.NoError(t, err)
				require.Equal(t, want.failed, s.Total.Failed)
				info, err := q.Get(t.Context(), job.ID)
				switch want.event {
				case "dead":
					require.NoError(t, err)
					dead, err := q.Dead().Get(t.Context(), job.ID)
					require.NoError(t, err)
					require.Equal(t, want.reason, dead.Reason)
					require.Contains(t, dead.Error, want.text)
					require.Equal(t, []byte(`{"n":1}`), dead.Payload)
				case "retry", "snoozed":
					require.NoError(t, err)
					require.Equal(t, pawl.StateDelayed, info.State)
					require.EqualValues(t, want.failed, info.Attempt)
				default:
					require.ErrorIs(t, err, pawl.ErrNotFound)
				}
			})
		})
	}
}

func TestAPanicLeavesItsStackInThePostMortem(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		job, err := q.Enqueue(t.Context(), note{1}, pawl.MaxAttempts(1))
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{Name: "host:1"})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { panicHere(); return nil })
		ev := e.Run(w, "dead", 1)[0]
		var p *pawl.PanicError
		require.ErrorAs(t, ev.Err, &p)
		dead, err := q.Dead().Get(t.Context(), job.ID)
		require.NoError(t, err)
		require.Contains(t, dead.Stack, "panicHere")
		require.Equal(t, "host:1", dead.Worker)
		require.Equal(t, pawl.ReasonExhausted, dead.Reason)
		require.WithinDuration(t, time.Now(), dead.DiedAt, time.Second)
		require.WithinDuration(t, time.Now(), dead.FirstFailedAt, time.Second)
	})
}

func panicHere() { panic("here") }

func TestArgumentsThatDoNotDecodeAreDeadAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		job, err := q.EnqueueRaw(t.Context(), "note", []byte(`{"n":"three"}`))
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Run(w, "dead", 1)
		dead, err := q.Dead().Get(t.Context(), job.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.ReasonUndecodable, dead.Reason)
		require.Equal(t, []byte(`{"n":"three"}`), dead.Payload)
	})
}

func TestRetryAfterAndSnoozeWaitAsLongAsTheySay(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{time.Millisecond, 500 * time.Millisecond, 90 * time.Second} {
		for name, outcome := range map[string]error{
			"RetryAfter": pawl.RetryAfter(wait, errors.New("503")), "Snooze": pawl.Snooze(wait)} {
			t.Run(fmt.Sprint(name, " ", wait), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, e *env) {
					_, err := e.Queue("mail").Enqueue(t.Context(), note{1})
					require.NoError(t, err)
					w := e.Worker("mail", pawl.WorkerConfig{})
					var ends, starts []time.Time
					pawl.Handle(w, func(context.Context, *pawl.Job[note]) error {
						starts = append(starts, time.Now())
						defer func() { ends = append(ends, time.Now()) }()
						if len(starts) == 1 {
							return outcome
						}
						return nil
					})
					e.Run(w, "done", 1)
					waited := starts[1].Sub(ends[0])
					require.GreaterOrEqual(t, waited, wait)
					require.Less(t, waited, wait+5*time.Millisecond)
				})
			})
		}
	}
}

func TestARetryFuncSeesTheErrorAndMayGiveUp(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		job, err := q.Enqueue(t.Context(), note{1})
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{})
		boom := errors.New("boom")
		var failures []int
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return boom },
			pawl.RetryFunc(func(f pawl.Failure) time.Duration {
				failures = append(failures, f.Attempt)
				if !errors.Is(f.Err, boom) || f.Attempt == 3 {
					return -1
				}
				return time.Second
			}))
		e.Run(w, "dead", 1)
		require.Equal(t, []int{1, 2, 3}, failures)
		dead, err := q.Dead().Get(t.Context(), job.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.ReasonPermanent, dead.Reason)
	})
}

func TestARetryFuncThatPanicsBuriesTheJobOnly(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		_, err := e.Queue("mail").Enqueue(t.Context(), note{1})
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return errors.New("x") },
			pawl.RetryFunc(func(pawl.Failure) time.Duration { panic("in policy") }))
		ev := e.Run(w, "dead", 1)[0]
		require.ErrorContains(t, ev.Err, "in policy")
	})
}
