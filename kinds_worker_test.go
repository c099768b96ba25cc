package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// styled is a type with options of its own, which depend on its fields.
type styled struct{ Attempts int }

func (styled) Kind() string          { return "styled" }
func (styled) KindAliases() []string { return []string{"old.styled"} }
func (s styled) JobOptions() []pawl.Option {
	return []pawl.Option{pawl.MaxAttempts(s.Attempts), pawl.Priority(3)}
}

func TestPoliciesAreReadInTheirOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		call    []pawl.Option
		handler []pawl.HandleOption
		typ     int
		want    int
	}{
		"the call first":   {[]pawl.Option{pawl.MaxAttempts(2)}, []pawl.HandleOption{pawl.MaxAttempts(3)}, 4, 2},
		"then the handler": {nil, []pawl.HandleOption{pawl.MaxAttempts(3)}, 4, 3},
		"then the type":    {nil, nil, 4, 4},
		"then the worker":  {nil, nil, 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				_, err := e.Queue("mail").Enqueue(t.Context(), styled{c.typ}, c.call...)
				require.NoError(t, err)
				w := e.Worker("mail", pawl.WorkerConfig{MaxAttempts: 5})
				runs := 0
				pawl.Handle(w, func(_ context.Context, job *pawl.Job[styled]) error {
					runs++
					require.Equal(t, c.want, job.MaxAttempts)
					require.Equal(t, runs == c.want, job.LastAttempt())
					return errors.New("x")
				}, c.handler...)
				e.Run(w, "dead", 1)
				require.Equal(t, c.want, runs)
			})
		})
	}
}

func TestADeployChangesJobsThatWait(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		_, err := e.Queue("mail").Enqueue(t.Context(), note{1})
		require.NoError(t, err)
		for attempt, max := range []int{9, 2} {
			w := e.Worker("mail", pawl.WorkerConfig{})
			pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
				require.Equal(t, max, job.MaxAttempts)
				require.Equal(t, attempt+1, job.Attempt)
				if attempt > 0 {
					require.Equal(t, "x", job.LastError)
				}
				return errors.New("x")
			}, pawl.MaxAttempts(max))
			e.Run(w, []string{"retry", "dead"}[attempt], 1)
		}
	})
}

func TestAnAliasIsHandledUnderItsOldName(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		_, err := e.Queue("mail").EnqueueRaw(t.Context(), "old.styled", []byte(`{"Attempts":3}`))
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[styled]) error {
			require.Equal(t, "old.styled", job.Kind)
			require.Equal(t, 3, job.Args.Attempts)
			return nil
		})
		e.Run(w, "done", 1)
	})
}

// W9.
func TestAnUnknownKindWaitsForAWorkerThatKnowsIt(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		job, err := q.EnqueueRaw(t.Context(), "new.kind", []byte("bytes \x00\xff"))
		require.NoError(t, err)
		old := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(old, func(context.Context, *pawl.Job[note]) error { return nil })
		stop := e.Start(old)
		e.Pass(30 * time.Minute)
		require.NoError(t, stop())
		info, err := q.Get(t.Context(), job.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.StateDelayed, info.State)
		require.Zero(t, info.Attempt)
		puts := len(e.Log.Of("snoozed"))
		require.Greater(t, puts, 5)
		require.Less(t, puts, 60, "the delay grows")

		w := e.Worker("mail", pawl.WorkerConfig{})
		w.HandleRaw("new.kind", func(_ context.Context, job *pawl.RawJob) error {
			require.Equal(t, 1, job.Attempt)
			require.Equal(t, []byte("bytes \x00\xff"), job.Payload)
			return nil
		})
		e.Run(w, "done", 1)
	})
}

// W9.
func TestAnUnknownKindIsDeadAfterTheGrace(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		job, err := q.EnqueueRaw(t.Context(), "new.kind", []byte("x"))
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{UnknownKindGrace: 10 * time.Minute})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		start := time.Now()
		e.Run(w, "dead", 1)
		require.InDelta(t, 10*time.Minute, time.Since(start), float64(time.Minute))
		dead, err := q.Dead().Get(t.Context(), job.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.ReasonUnhandled, dead.Reason)
		require.Zero(t, dead.Attempt)
	})
}

func TestAKindOfAForeignType(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		kind := pawl.Define[[]string]("words", pawl.MaxAttempts(2))
		_, err := e.Queue("mail").Enqueue(t.Context(), kind.Args([]string{"a", "b"}))
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{})
		kind.Handle(w, func(_ context.Context, job *pawl.Job[[]string]) error {
			require.Equal(t, []string{"a", "b"}, job.Args)
			require.Equal(t, 2, job.MaxAttempts)
			return nil
		})
		e.Run(w, "done", 1)
	})
}

func TestMiddlewareWrapsInItsOrderAndClassifyTurnsErrors(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		_, err := e.Queue("mail").Enqueue(t.Context(), note{1}, pawl.Header{Key: "tenant", Value: "a"})
		require.NoError(t, err)
		var order []string
		layer := func(name string) pawl.Middleware {
			return func(next pawl.Handler) pawl.Handler {
				return func(ctx context.Context, job *pawl.RawJob) error {
					order = append(order, name+" "+job.Headers["tenant"])
					return next(ctx, job)
				}
			}
		}
		broken := errors.New("broken")
		w := e.Worker("mail", pawl.WorkerConfig{Middleware: []pawl.Middleware{layer("outer"),
			pawl.Classify(func(err error) error { return pawl.Permanent(err) }), layer("inner")}})
		pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
			raw, ok := pawl.FromContext(ctx)
			require.True(t, ok)
			require.Equal(t, job.ID, raw.ID)
			return broken
		})
		ev := e.Run(w, "dead", 1)[0]
		require.ErrorIs(t, ev.Err, broken)
		require.Equal(t, []string{"outer a", "inner a"}, order)
	})
}

func TestAPanicInMiddlewareOrHookIsNotTheEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		c := e.NewClient(pawl.Config{Hooks: []pawl.Hook{panickyHook{}}})
		e.Client = c
		for i := range 3 {
			_, err := e.Queue("mail").Enqueue(t.Context(), note{i}, pawl.MaxAttempts(1))
			require.NoError(t, err)
		}
		w := e.Worker("mail", pawl.WorkerConfig{Middleware: []pawl.Middleware{func(next pawl.Handler) pawl.Handler {
			return func(ctx context.Context, job *pawl.RawJob) error {
				if string(job.Payload) == `{"n":1}` {
					panic("in middleware")
				}
				return next(ctx, job)
			}
		}}})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		stop := e.Start(w)
		e.Log.Wait(t, "done", 2)
		e.Log.Wait(t, "dead", 1)
		require.NoError(t, stop())
	})
}

type panickyHook struct{}

func (panickyHook) Started(context.Context, pawl.Event)          { panic("in hook") }
func (panickyHook) Done(context.Context, pawl.Event)             { panic("in hook") }
func (panickyHook) Dead(context.Context, pawl.DeadEvent)         { panic("in hook") }
func (panickyHook) Enqueued(context.Context, pawl.EnqueuedEvent) { panic("in hook") }

func TestWhatIsWrongWithRegistrationsIsRunsError(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		w := e.Worker("mail", pawl.WorkerConfig{})
		ok := func(context.Context, *pawl.Job[note]) error { return nil }
		pawl.Handle(w, ok, pawl.MaxAttempts(-1))
		pawl.Handle(w, ok)
		w.HandleRaw("", func(context.Context, *pawl.RawJob) error { return nil })
		w.HandleRaw("nil", nil)
		pawl.Handle[styled](w, nil)
		err := w.Run(t.Context())
		require.ErrorIs(t, err, pawl.ErrInvalid)
		for _, text := range []string{"MaxAttempts(-1)", `"note" has two handlers`, `"nil" is nil`, `"styled" is nil`} {
			require.ErrorContains(t, err, text)
		}
		require.NotContains(t, err.Error(), "no handler")
		require.ErrorIs(t, w.Run(t.Context()), pawl.ErrInvalid, "a second Run")
		for says, m := range map[string]pawl.Middleware{
			"nil Handler": func(pawl.Handler) pawl.Handler { return nil },
			"panics: oh":  func(pawl.Handler) pawl.Handler { panic("oh") },
		} {
			w := e.Worker("mail", pawl.WorkerConfig{Middleware: []pawl.Middleware{m}})
			pawl.Handle(w, ok)
			err := w.Run(t.Context())
			require.ErrorIs(t, err, pawl.ErrInvalid)
			require.ErrorContains(t, err, says)
		}
		require.ErrorIs(t, e.Worker("mail", pawl.WorkerConfig{}).Run(t.Context()), pawl.ErrInvalid, "no handler")
	})
}

func TestNewWorkerJoinsAllThatIsWrong(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		_, err := pawl.NewWorker(e.Client, pawl.WorkerConfig{Concurrency: -1, DrainTimeout: -1, MaxAttempts: -2,
			Middleware: []pawl.Middleware{nil}, Backoff: pawl.Backoff{Factor: 0.5}, Queues: []pawl.WorkerQueue{
				{Name: "a{b}"}, {Name: "x", Weight: -1}, {Name: "x", Max: 1, Reserve: 2}}})
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorIs(t, err, pawl.ErrName)
		for _, text := range []string{"Concurrency", "DrainTimeout", "MaxAttempts(-2)", "Middleware[0]", "actor", "weight", "twice", "Reserve"} {
			require.ErrorContains(t, err, text)
		}
		for name, cfg := range map[string]pawl.WorkerConfig{
			"no queues":          {},
			"weights of zero":    {Queues: pawl.Weights(map[string]int{"a": 0})},
			"strict and weights": {Strict: true, Queues: pawl.Weights(map[string]int{"a": 2})},
			"all reserved":       {Concurrency: 2, Queues: []pawl.WorkerQueue{{Name: "a", Reserve: 2}, {Name: "b"}}},
		} {
			_, err := pawl.NewWorker(e.Client, cfg)
			require.ErrorIs(t, err, pawl.ErrInvalid, name)
		}
		_, err = pawl.NewWorker(nil, pawl.WorkerConfig{})
		require.ErrorIs(t, err, pawl.ErrInvalid)
	})
}
