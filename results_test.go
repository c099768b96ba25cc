package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// receipt is a result.
type receipt struct {
	Number int `json:"number"`
}

const retained = pawl.Retain(time.Hour)

// billed is a handler whose result is the number of the note, times ten.
func billed(_ context.Context, job *pawl.Job[note]) (receipt, error) {
	return receipt{10 * job.Args.N}, nil
}

func TestAJobWithRetainIsFoundWithItsResultOnceItIsDone(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ctx, q := t.Context(), e.Queue("bill")
		var ids []pawl.ID
		for n := range 5 {
			ids = append(ids, put(t, q, n, retained, pawl.Header{Key: "n", Value: fmt.Sprint(n)}))
		}
		plain := put(t, q, 9)
		w := e.Worker("bill", pawl.WorkerConfig{})
		pawl.HandleResult(w, billed)
		e.Run(w, "done", 6)

		for n, id := range ids {
			info := get(t, q, id)
			require.Equal(t, pawl.StateDone, info.State)
			require.JSONEq(t, fmt.Sprintf(`{"number":%d}`, 10*n), string(info.Result))
			require.JSONEq(t, fmt.Sprintf(`{"n":%d}`, n), string(info.Payload))
			require.False(t, info.DoneAt.Before(info.EnqueuedAt.Truncate(time.Millisecond)), "%v %v", info.DoneAt, info.EnqueuedAt)
			require.Zero(t, info.StartedAt)
		}
		_, err := q.Get(ctx, plain)
		require.ErrorIs(t, err, pawl.ErrNotFound)
		s, err := q.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 5, s.Done)
		require.EqualValues(t, 6, s.Total.Done)
		require.Zero(t, s.Depth())

		var listed []pawl.ID
		for info, err := range q.List(ctx, pawl.StateDone, pawl.Filter{}) {
			require.NoError(t, err)
			listed = append(listed, info.ID)
		}
		require.ElementsMatch(t, ids, listed)
		n, err := q.Purge(ctx, pawl.StateDone, pawl.Filter{Header: pawl.Header{Key: "n", Value: "3"}})
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
		_, err = q.Get(ctx, ids[3])
		require.ErrorIs(t, err, pawl.ErrNotFound)
		n, err = q.Purge(ctx, pawl.StateDone, pawl.Filter{})
		require.NoError(t, err)
		require.EqualValues(t, 4, n)
		s, err = q.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, s.Done)
		require.Zero(t, s.Total.Purged, "they were counted as done")
	})
}

// Every way in which a job with Retain ends, and what is found of it.
func TestEveryEndOfAJobWithRetainIsFound(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ctx, q := t.Context(), e.Queue("q")
		ends := map[string]pawl.ID{}
		w := e.Worker("q", pawl.WorkerConfig{Concurrency: 10, VisibilityTimeout: time.Second})
		waits := make(chan struct{})
		pawl.HandleResult(w, func(ctx context.Context, job *pawl.Job[note]) (receipt, error) {
			job.SetResult("of a run that did not succeed")
			switch job.Args.N {
			case 2:
				return receipt{}, pawl.Discard(errors.New("paid already"))
			case 3:
				<-ctx.Done()
				return receipt{}, context.Cause(ctx)
			case 4:
				<-waits
				return receipt{}, errors.New("again")
			case 6:
				return receipt{}, pawl.Permanent(errors.New("no"))
			}
			return receipt{job.Args.N}, nil
		})
		e.Start(w)
		ends["done"] = put(t, q, 1, retained, once(7))
		e.Log.Wait(t, "done", 1)
		ends["skipped"] = put(t, q, 1, retained, once(7))
		e.Log.Wait(t, "skipped", 1)
		ends["discarded"] = put(t, q, 2, retained)
		e.Log.Wait(t, "discarded", 1)
		ends["cancelled while it ran"] = put(t, q, 3, retained)
		e.Log.Wait(t, "started", 3)
		require.NoError(t, q.Cancel(ctx, ends["cancelled while it ran"]))
		ends["cancelled while it waited"] = put(t, q, 1, retained, pawl.Delay(time.Hour))
		require.NoError(t, q.Cancel(ctx, ends["cancelled while it waited"]))
		ends["superseded"] = push(t, q, 4, retained).ID
		e.Log.Wait(t, "started", 4)
		push(t, q, 1)
		close(waits)
		e.Log.Wait(t, "discarded", 2)
		ends["dead"] = put(t, q, 6, retained)
		e.Log.Wait(t, "dead", 1)
		ends["purged"] = put(t, q, 1, retained, pawl.Delay(time.Hour))
		_, err := q.Purge(ctx, pawl.StateDelayed, pawl.Filter{})
		require.NoError(t, err)
		require.Eventually(t, func() bool { s, err := q.Stats(ctx); return err == nil && s.Running == 0 && s.Ready == 0 }, time.Minute, 10*time.Millisecond)

		for name, want := range map[string]struct {
			state  pawl.State
			result string
		}{
			"done":                      {pawl.StateDone, `{"number":1}`},
			"skipped":                   {pawl.StateDone, ""},
			"discarded":                 {pawl.StateDiscarded, ""},
			"cancelled while it ran":    {pawl.StateCancelled, ""},
			"cancelled while it waited": {pawl.StateCancelled, ""},
			"superseded":                {pawl.StateDiscarded, ""},
			"dead":                      {pawl.StateDead, ""},
		} {
			info := get(t, q, ends[name])
			require.Equal(t, want.state, info.State, name)
			require.Equal(t, want.result, string(info.Result), name)
			require.Equal(t, name == "dead", info.DoneAt.IsZero(), name)
		}
		_, err = q.Get(ctx, ends["purged"])
		require.ErrorIs(t, err, pawl.ErrNotFound)
		s, err := q.Stats(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 6, s.Done)
	})
}

// What is over and kept cannot be cancelled or moved, and is not dead. No call changes it.
func TestAJobThatIsOverIsRefusedByWhatWouldChangeIt(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ctx, q := t.Context(), e.Queue("q")
		id := put(t, q, 1, retained, pawl.Unique{Key: "k"})
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.HandleResult(w, billed)
		e.Run(w, "done", 1)
		before := layout(t, e, "q")
		require.ErrorIs(t, q.Cancel(ctx, id), pawl.ErrState)
		require.ErrorIs(t, q.RunNow(ctx, id), pawl.ErrState)
		require.ErrorIs(t, q.Reschedule(ctx, id, time.Now().Add(time.Hour)), pawl.ErrState)
		_, err := q.Dead().Redrive(ctx, id)
		require.ErrorIs(t, err, pawl.ErrNotFound)
		require.Equal(t, before, layout(t, e, "q"))
		for _, s := range []pawl.State{pawl.StateCancelled, pawl.StateDiscarded} {
			_, err := q.Purge(ctx, s, pawl.Filter{})
			require.ErrorIs(t, err, pawl.ErrInvalid, "StateDone is all of them")
		}
		again := put(t, q, 2, retained, pawl.Unique{Key: "k"})
		require.NotEqual(t, id, again, "its key is free")
	})
}

func TestAJobIsKeptForItsTimeByTheServersClock(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		ctx, q := t.Context(), e.Queue("q")
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.HandleResult(w, billed)
		stop := e.Start(w)
		id := put(t, q, 1, pawl.Retain(time.Minute))
		e.Log.Wait(t, "done", 1)
		info := get(t, q, id)
		require.WithinDuration(t, time.Now(), info.DoneAt, time.Second)
		require.NoError(t, stop())
		e.Pass(time.Until(info.DoneAt.Add(time.Minute)) - 2*time.Millisecond)
		require.Equal(t, info, get(t, q, id))
		e.Pass(2 * time.Millisecond)
		_, err := q.Get(ctx, id)
		require.ErrorIs(t, err, pawl.ErrNotFound, "though nobody has removed it yet")
		for job, err := range q.List(ctx, pawl.StateDone, pawl.Filter{}) {
			require.NoError(t, err)
			require.Fail(t, "it is over", job.ID)
		}
		s, err := q.Stats(ctx)
		require.NoError(t, err)
		require.Zero(t, s.Done)
		require.EqualValues(t, 1, e.Redis.HLen(ctx, "pawl:{q}:done").Val())

		other := e.Worker("q", pawl.WorkerConfig{})
		pawl.HandleResult(other, billed)
		idle := e.Start(other)
		e.Pass(2 * time.Minute)
		require.Zero(t, e.Redis.Exists(ctx, "pawl:{q}:done", "pawl:{q}:done:at").Val(), "an idle worker lets it go")
		require.NoError(t, idle())
	})
}

// countingCodec is the default one, and counts what it encodes.
type countingCodec struct{ encoded atomic.Int64 }

func (c *countingCodec) Encode(_ string, v any) ([]byte, error) {
	c.encoded.Add(1)
	return json.Marshal(v)
}
func (c *countingCodec) Decode(_ string, data []byte, v any) error { return json.Unmarshal(data, v) }

func TestAResultThatNobodyKeepsIsNotEvenEncoded(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		codec := &countingCodec{}
		e.Client = e.NewClient(pawl.Config{Codec: codec})
		q := e.Queue("q")
		put(t, q, 1)
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			job.SetResult(func() {}) // which no codec could
			return nil
		})
		e.Run(w, "done", 1)
		require.EqualValues(t, 1, codec.encoded.Load(), "its arguments")
		require.Zero(t, e.Redis.Exists(t.Context(), "pawl:{q}:done", "pawl:{q}:done:at").Val())
	})
}

type stubborn struct{}

func (stubborn) MarshalJSON() ([]byte, error) { panic("never") }

// A result that nobody could ever see is the failure of its job.
func TestAResultThatCannotBeStoredEndsTheJobForGood(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		const most = 1000
		e.Client = e.NewClient(pawl.Config{MaxPayload: most})
		q := e.Queue("q")
		results := []any{func() {}, strings.Repeat("x", most-1), stubborn{}, strings.Repeat("x", most-2), nil, ""}
		var ids []pawl.ID
		for n := range results {
			ids = append(ids, put(t, q, n, retained))
		}
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			job.SetResult("an earlier one")
			job.SetResult(results[job.Args.N])
			return nil
		})
		stop := e.Start(w)
		e.Log.Wait(t, "dead", 3)
		e.Log.Wait(t, "done", 3)
		require.NoError(t, stop())
		for n, says := range []string{"does not encode", "too large", "never"} {
			dead, err := q.Dead().Get(t.Context(), ids[n])
			require.NoError(t, err)
			require.Equal(t, pawl.ReasonPermanent, dead.Reason)
			require.Contains(t, dead.Error, says)
			require.Equal(t, 1, dead.Attempt)
		}
		for n, want := range []string{`"` + strings.Repeat("x", most-2) + `"`, "null", `""`} {
			info := get(t, q, ids[3+n])
			require.Equal(t, want, string(info.Result))
		}
	})
}

func TestOnlyTheRunThatSucceedsHasAResult(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		id := put(t, q, 1, retained)
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
			if job.Attempt == 1 {
				deep, ok := pawl.FromContext(ctx)
				require.True(t, ok)
				deep.SetResult("of the first run")
				return errors.New("again")
			}
			return nil
		}, pawl.Backoff{Base: time.Millisecond})
		e.Run(w, "done", 1)
		info := get(t, q, id)
		require.Equal(t, pawl.StateDone, info.State)
		require.Nil(t, info.Result)
		require.Equal(t, 1, info.Attempt, "one has failed")
		require.Equal(t, "again", info.LastError)
	})
}

func TestALiteralHasNoResult(t *testing.T) {
	t.Parallel()
	(&pawl.RawJob{}).SetResult(1)
	job := &pawl.Job[note]{Args: note{3}}
	got, err := billed(t.Context(), job)
	require.NoError(t, err)
	require.Equal(t, receipt{30}, got)
}

func TestHandleResultSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.HandleResult[note, int](w, nil)
		require.ErrorContains(t, w.Run(t.Context()), `handler of kind "note" is nil`)
	})
}

// The option may come from the type, and it travels: a redrive and a replacement keep it.
func TestRetainTravelsWithTheJob(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		typed, err := q.Enqueue(t.Context(), keptNote{1})
		require.NoError(t, err)
		redriven := put(t, q, 6, retained)
		var runs atomic.Int64
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.HandleResult(w, func(context.Context, *pawl.Job[keptNote]) (int, error) { return 5, nil })
		pawl.HandleResult(w, func(context.Context, *pawl.Job[note]) (int, error) {
			if runs.Add(1) == 1 {
				return 0, pawl.Permanent(errors.New("no"))
			}
			return 7, nil
		})
		e.Start(w)
		e.Log.Wait(t, "done", 1)
		require.Equal(t, "5", string(get(t, q, typed.ID).Result))
		e.Log.Wait(t, "dead", 1)
		_, err = q.Dead().Redrive(t.Context(), redriven)
		require.NoError(t, err)
		e.Log.Wait(t, "done", 2)
		require.Equal(t, "7", string(get(t, q, redriven).Result))

		waiting := pawl.Unique{Key: "k", OnDuplicate: pawl.ReplaceWaiting}
		first, err := q.Enqueue(t.Context(), note{1}, waiting, pawl.Delay(time.Hour))
		require.NoError(t, err)
		second, err := q.Enqueue(t.Context(), note{2}, waiting, retained)
		require.NoError(t, err)
		require.Equal(t, first.ID, second.ID)
		e.Log.Wait(t, "done", 3)
		require.Equal(t, "7", string(get(t, q, first.ID).Result))
	})
}

type keptNote struct{ N int }

func (keptNote) Kind() string              { return "kept" }
func (keptNote) JobOptions() []pawl.Option { return []pawl.Option{retained} }
