package pawl_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

var memo = pawl.Define[string]("memo")

// repairs runs what is ready in queue mail, and returns what the handlers saw.
func repairs(t *testing.T, e *env, n int) (seen []pawl.RawJob) {
	t.Helper()
	w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 1})
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error { seen = append(seen, job.RawJob); return nil })
	memo.Handle(w, func(_ context.Context, job *pawl.Job[string]) error { seen = append(seen, job.RawJob); return nil })
	e.Run(w, "done", len(e.Log.Of("done"))+n)
	return seen
}

func TestARepairedJobRunsWithItsNewArguments(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		d, ctx := e.Queue("mail").Dead(), t.Context()
		ids := die(t, e, 2, pawl.Header{Key: "tenant", Value: "a"}, pawl.Priority(2))
		require.NoError(t, d.RedriveWith(ctx, ids[0], note{99}))
		require.NoError(t, d.RedriveWith(ctx, ids[1], memo.Args("another kind")))
		require.ErrorIs(t, d.RedriveWith(ctx, ids[1], memo.Args("again")), pawl.ErrNotFound)
		seen := repairs(t, e, 2)
		require.Equal(t, []string{"note", "memo"}, []string{seen[0].Kind, seen[1].Kind})
		require.Equal(t, []string{`{"n":99}`, `"another kind"`}, []string{string(seen[0].Payload), string(seen[1].Payload)})
		for i, job := range seen {
			require.Equal(t, ids[i], job.ID)
			require.Equal(t, pawl.Headers{"tenant": "a"}, job.Headers)
			require.Equal(t, 1, job.Redrives)
			require.Equal(t, 1, job.Attempt)
			require.Contains(t, job.LastError, "failure")
		}
	})
}

func TestWhatCouldNotBeReadCanBeRepaired(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		undecodable, err := q.EnqueueRaw(ctx, "note", []byte("not json"))
		require.NoError(t, err)
		require.NoError(t, e.Redis.Do(ctx, "XADD", "pawl:{mail}:jobs", "*", "foreign", "entry").Err())
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Run(w, "dead", 2)
		all := listedDead(t, e, pawl.DeadFilter{})
		require.Len(t, all, 2)
		reasons := map[pawl.DeadReason]pawl.DeadJob{all[0].Reason: all[0], all[1].Reason: all[1]}
		require.Equal(t, undecodable.ID, reasons[pawl.ReasonUndecodable].ID)
		corrupt := reasons[pawl.ReasonCorrupt]
		require.Contains(t, string(corrupt.Payload), "foreign")

		// As it is, it only dies again, bytes kept.
		report, err := q.Dead().Redrive(ctx, corrupt.ID)
		require.NoError(t, err)
		require.Equal(t, 1, report.Moved)
		w = e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Run(w, "dead", 3)
		again, err := q.Dead().Get(ctx, corrupt.ID)
		require.NoError(t, err)
		require.Equal(t, corrupt.Payload, again.Payload)

		require.NoError(t, q.Dead().RedriveWith(ctx, undecodable.ID, note{1}))
		require.NoError(t, q.Dead().RedriveWith(ctx, corrupt.ID, note{2}))
		seen := repairs(t, e, 2)
		require.ElementsMatch(t, []pawl.ID{undecodable.ID, corrupt.ID}, []pawl.ID{seen[0].ID, seen[1].ID})
		require.Zero(t, deadLen(t, e))
	})
}

// A post-mortem that is no record itself.
func TestAPostMortemThatCannotBeReadCanBeRepaired(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		ids := die(t, e, 1)
		old := listedDead(t, e, pawl.DeadFilter{})[0].Position
		text := e.Redis.XRange(ctx, "pawl:{mail}:dead", old, old).Val()[0].Values["i"]
		place := e.Redis.Do(ctx, "XADD", "pawl:{mail}:dead", "*", "i", text, "p", "\x07nonsense").Val()
		require.NoError(t, e.Redis.XDel(ctx, "pawl:{mail}:dead", old).Err())
		require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:dead:index", text, place).Err())
		d, err := e.Queue("mail").Dead().Get(ctx, ids[0])
		require.NoError(t, err)
		require.Equal(t, pawl.ReasonCorrupt, d.Reason)
		require.WithinDuration(t, time.Now(), d.DiedAt, time.Minute)
		require.NoError(t, e.Queue("mail").Dead().RedriveWith(ctx, ids[0], note{5}))
		require.Equal(t, `{"n":5}`, string(repairs(t, e, 1)[0].Payload))
	})
}

type unencodable struct{}

func (unencodable) Kind() string                 { return "note" }
func (unencodable) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

type kindless struct{}

func (kindless) Kind() string { return "" }

func TestARepairThatIsRefusedLeavesTheJobAsItWas(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		q := e.Queue("mail")
		ids := die(t, e, 1, pawl.Unique{Key: "k"})
		holder, err := q.Enqueue(ctx, note{9}, pawl.Unique{Key: "k"})
		require.NoError(t, err)
		before := redistest.Dump(ctx, e.Redis, "pawl:{mail}:dead")
		for name, c := range map[string]struct {
			id   pawl.ID
			args pawl.Args
			want error
		}{
			"too large":        {ids[0], memo.Args(strings.Repeat("x", 300<<10)), pawl.ErrTooLarge},
			"no arguments":     {ids[0], nil, pawl.ErrInvalid},
			"a nil pointer":    {ids[0], (*note)(nil), pawl.ErrInvalid},
			"no kind":          {ids[0], kindless{}, pawl.ErrInvalid},
			"does not encode":  {ids[0], unencodable{}, pawl.ErrInvalid},
			"not a job's id":   {pawl.ID{}, note{1}, pawl.ErrNotFound},
			"not dead":         {holder.ID, note{1}, pawl.ErrNotFound},
			"its key is taken": {ids[0], note{1}, pawl.ErrDuplicate},
		} {
			err := q.Dead().RedriveWith(ctx, c.id, c.args)
			require.ErrorIs(t, err, c.want, name)
			if c.want == pawl.ErrDuplicate {
				require.ErrorContains(t, err, holder.ID.String())
			}
			require.Equal(t, before, redistest.Dump(ctx, e.Redis, "pawl:{mail}:dead"), name)
		}
		require.NoError(t, q.Cancel(ctx, holder.ID))
		require.NoError(t, q.Dead().RedriveWith(ctx, ids[0], note{1}))
	})
}
