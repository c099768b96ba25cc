package pawl_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// ends are the ways in which a job may end, with Retain and without: what its handler
// returns, or what is done to it, and what Wait says of it.
var ends = map[string]struct {
	err    error
	act    func(ctx context.Context, q *pawl.Queue, id pawl.ID) error // instead of a handler
	opts   []pawl.Option
	state  pawl.State // "" for ErrNotFound
	reason pawl.DeadReason
}{
	"done":                   {opts: []pawl.Option{retained}, state: pawl.StateDone},
	"discarded":              {err: pawl.Discard(errors.New("no")), opts: []pawl.Option{retained}, state: pawl.StateDiscarded},
	"dead":                   {err: pawl.Permanent(errors.New("no")), opts: []pawl.Option{retained}, state: pawl.StateDead, reason: pawl.ReasonPermanent},
	"dead, without Retain":   {err: pawl.Permanent(errors.New("no")), state: pawl.StateDead, reason: pawl.ReasonPermanent},
	"cancelled":              {act: cancelIt, opts: []pawl.Option{retained}, state: pawl.StateCancelled},
	"done, without Retain":   {},
	"cancelled, without":     {act: cancelIt},
	"discarded, without":     {err: pawl.Discard(errors.New("no"))},
	"purged, though it said": {act: purgeIt, opts: []pawl.Option{retained}},
}

func cancelIt(ctx context.Context, q *pawl.Queue, id pawl.ID) error { return q.Cancel(ctx, id) }

func purgeIt(ctx context.Context, q *pawl.Queue, _ pawl.ID) error {
	_, err := q.Purge(ctx, pawl.StateReady, pawl.Filter{})
	return err
}

// listens waits until the client listens to the ends of jobs of queue mail.
func listens(t *testing.T, e *env) {
	t.Helper()
	const channel = "pawl:{mail}:ended"
	redistest.Eventually(t, "Wait listens", func(ctx context.Context) bool {
		return e.Redis.PubSubNumSub(ctx, channel).Val()[channel] == 1
	})
}

func TestWaitReturnsHowAJobEnded(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		for name, end := range ends {
			for _, late := range []bool{false, true} {
				job, err := q.Enqueue(ctx, note{7}, end.opts...)
				require.NoError(t, err)
				var info pawl.JobInfo
				var waited error
				var waiting sync.WaitGroup
				wait := func() { info, waited = q.Wait(ctx, job.ID) }
				if !late {
					waiting.Go(wait)
					listens(t, e)
				}
				if end.act != nil {
					require.NoError(t, end.act(ctx, q, job.ID))
				} else {
					w := e.Worker("mail", pawl.WorkerConfig{})
					pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return end.err })
					stop := e.Start(w)
					redistest.Eventually(t, "it has ended", func(ctx context.Context) bool {
						s, err := q.Stats(ctx)
						return err == nil && s.Depth()+s.Running == 0
					})
					require.NoError(t, stop())
				}
				if waiting.Wait(); late {
					wait()
				}
				if end.state == "" {
					require.ErrorIs(t, waited, pawl.ErrNotFound, name)
					continue
				}
				require.Equal(t, []any{job.ID, end.state, `{"n":7}`}, []any{info.ID, info.State, string(info.Payload)}, name)
				if end.state == pawl.StateDone {
					require.NoError(t, waited, name)
					continue
				}
				var failed *pawl.JobError
				require.ErrorAs(t, waited, &failed, name)
				require.Equal(t, []any{job.ID, end.state, end.reason}, []any{failed.ID, failed.State, failed.Reason})
				require.Equal(t, end.state == pawl.StateDead, failed.Text == "no")
				require.ErrorContains(t, waited, "pawl: wait mail: job "+job.ID.String())
			}
		}
	})
}

func TestAwaitDecodesTheResult(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.HandleResult(w, func(_ context.Context, job *pawl.Job[note]) (map[string]int, error) {
			switch job.Args.N {
			case 1:
				return nil, pawl.Permanent(errors.New("no"))
			default:
				return map[string]int{"twice": 2 * job.Args.N}, nil
			}
		})
		e.Start(w)
		put := func(n int, opts ...pawl.Option) pawl.ID {
			job, err := q.Enqueue(ctx, note{n}, opts...)
			require.NoError(t, err)
			return job.ID
		}
		id := put(21, retained)
		got, err := pawl.Await[map[string]int](ctx, q, id)
		require.NoError(t, err)
		require.Equal(t, map[string]int{"twice": 42}, got)
		_, err = pawl.Await[int](ctx, q, id)
		require.ErrorContains(t, err, "pawl: await mail: the result of job "+id.String()+" does not fit int")
		var failed *pawl.JobError
		_, err = pawl.Await[int](ctx, q, put(1, retained))
		require.ErrorAs(t, err, &failed)
		_, err = pawl.Await[int](ctx, q, put(2))
		require.ErrorIs(t, err, pawl.ErrNotFound)
	})
}

func TestAwaitOfAJobWithoutAResult(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		job, err := e.Queue("mail").Enqueue(t.Context(), note{}, retained)
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Start(w)
		_, err = pawl.Await[int](t.Context(), e.Queue("mail"), job.ID)
		require.ErrorIs(t, err, pawl.ErrState)
	})
}

func TestWaitForWhatIsNotThere(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ctx, began := t.Context(), time.Now()
		job, err := e.Queue("mail").Enqueue(ctx, note{})
		require.NoError(t, err)
		never := job.ID
		never[15]++
		for name, c := range map[string]struct {
			queue string
			id    pawl.ID
			want  error
		}{
			"a job that never was": {"mail", never, pawl.ErrNotFound}, "the zero id": {"mail", pawl.ID{}, pawl.ErrNotFound},
			"a queue that never was": {"never", job.ID, pawl.ErrNotFound}, "a name that is none": {"no good", job.ID, pawl.ErrName},
		} {
			_, err := e.Client.Queue(c.queue).Wait(ctx, c.id)
			require.ErrorIs(t, err, c.want, name)
			_, err = pawl.Await[int](ctx, e.Client.Queue(c.queue), c.id)
			require.ErrorIs(t, err, c.want, name)
		}
		require.Less(t, time.Since(began), 10*time.Second)
	})
}

// Of a duplicate it is the job that is there which is waited for, as that was enqueued.
func TestWaitForADuplicate(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, one := e.Queue("q"), pawl.Unique{Key: "k", For: time.Hour}
		put(t, q, 1, one)
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Run(w, "done", 1)
		again, err := q.Enqueue(t.Context(), note{2}, one, pawl.Retain(time.Hour))
		require.NoError(t, err)
		require.True(t, again.Duplicate)
		_, err = q.Wait(t.Context(), again.ID)
		require.ErrorIs(t, err, pawl.ErrNotFound)
	})
}
