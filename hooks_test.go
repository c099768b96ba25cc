package pawl

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// everyHook observes everything and writes down what it saw.
type everyHook struct{ seen *[]string }

func (h everyHook) see(s string)                                { *h.seen = append(*h.seen, s) }
func (h everyHook) Enqueued(_ context.Context, _ EnqueuedEvent) { h.see("enqueued") }
func (h everyHook) Started(_ context.Context, _ Event)          { h.see("started") }
func (h everyHook) Done(_ context.Context, _ Event)             { h.see("done") }
func (h everyHook) Skipped(_ context.Context, _ Event)          { h.see("skipped") }
func (h everyHook) Retry(_ context.Context, e RetryEvent)       { h.see("retry after " + e.Delay.String()) }
func (h everyHook) Snoozed(_ context.Context, e RetryEvent)     { h.see("snoozed for " + e.Delay.String()) }
func (h everyHook) Released(_ context.Context, _ Event)         { h.see("released") }
func (h everyHook) Dead(_ context.Context, e DeadEvent)         { h.see("dead: " + string(e.Reason)) }
func (h everyHook) Discarded(_ context.Context, _ Event)        { h.see("discarded") }
func (h everyHook) Crashed(_ context.Context, _ Event)          { h.see("crashed") }
func (h everyHook) LeaseLost(_ context.Context, _ Event)        { h.see("lease lost") }
func (h everyHook) Stuck(_ context.Context, _ Event)            { h.see("stuck") }
func (h everyHook) Outage(_ context.Context, err error) {
	if err == nil {
		h.see("back")
	} else {
		h.see("outage: " + err.Error())
	}
}

// fireAll fires each event once.
func fireAll(ctx context.Context, h *hooks) {
	h.enqueued(ctx, EnqueuedEvent{})
	h.started(ctx, Event{})
	h.done(ctx, Event{})
	h.skipped(ctx, Event{})
	h.retry(ctx, RetryEvent{Delay: 1})
	h.snoozed(ctx, RetryEvent{Delay: 2})
	h.released(ctx, Event{})
	h.dead(ctx, DeadEvent{Reason: "why"})
	h.discarded(ctx, Event{})
	h.crashed(ctx, Event{})
	h.leaseLost(ctx, Event{})
	h.stuck(ctx, Event{})
	h.outage(ctx, io.EOF)
	h.outage(ctx, nil)
}

var firedAll = []string{
	"enqueued", "started", "done", "skipped", "retry after 1ns", "snoozed for 2ns", "released", "dead: why", "discarded",
	"crashed", "lease lost", "stuck", "outage: EOF", "back",
}

type doneHook func(context.Context, Event)

func (f doneHook) Done(ctx context.Context, e Event) { f(ctx, e) }

func TestHooks(t *testing.T) {
	t.Parallel()

	t.Run("see each event they have a method for", func(t *testing.T) {
		t.Parallel()
		var seen []string
		h, err := newHooks([]Hook{everyHook{&seen}}, nil)
		require.NoError(t, err)
		fireAll(t.Context(), &h)
		require.Equal(t, firedAll, seen)
	})
	t.Run("see no event they have no method for", func(t *testing.T) {
		t.Parallel()
		n := 0
		h, err := newHooks([]Hook{doneHook(func(context.Context, Event) { n++ })}, nil)
		require.NoError(t, err)
		fireAll(t.Context(), &h)
		require.Equal(t, 1, n)
	})
	t.Run("are called in their order, with context and event", func(t *testing.T) {
		t.Parallel()
		var order []int
		want := Event{Job: &RawJob{Kind: "k"}, Took: 1, Wait: 2, Err: io.EOF}
		hook := func(i int) Hook {
			return doneHook(func(ctx context.Context, e Event) {
				_, ok := FromContext(ctx)
				require.True(t, ok)
				require.Equal(t, want, e)
				order = append(order, i)
			})
		}
		h, err := newHooks([]Hook{hook(1), hook(2), hook(3)}, nil)
		require.NoError(t, err)
		h.done(withJob(t.Context(), want.Job), want)
		require.Equal(t, []int{1, 2, 3}, order)
	})
	t.Run("that panic are logged with their stack, and the next is called", func(t *testing.T) {
		t.Parallel()
		var out strings.Builder
		called := false
		h, err := newHooks([]Hook{
			doneHook(func(context.Context, Event) { panic("boom") }),
			doneHook(func(context.Context, Event) { called = true }),
		}, slog.New(slog.NewJSONHandler(&out, nil)))
		require.NoError(t, err)
		h.done(t.Context(), Event{})
		require.True(t, called)
		var line struct{ Msg, Level, Hook, Event, Panic, Stack string }
		require.NoError(t, json.Unmarshal([]byte(out.String()), &line))
		require.Equal(t, "ERROR", line.Level)
		require.Equal(t, "pawl.doneHook", line.Hook)
		require.Equal(t, "OnDone", line.Event)
		require.Equal(t, "boom", line.Panic)
		require.Contains(t, line.Stack, "hooks_test.go")
	})
	t.Run("may panic without a logger", func(t *testing.T) {
		t.Parallel()
		h, err := newHooks([]Hook{doneHook(func(context.Context, Event) { panic("boom") })}, nil)
		require.NoError(t, err)
		require.NotPanics(t, func() { h.done(t.Context(), Event{}) })
	})
	for name, hook := range map[string]Hook{
		"nil":                                   nil,
		"a nil pointer":                         (*everyHook)(nil),
		"without an On… method":                 struct{}{},
		"a function by itself":                  func(context.Context, Event) {},
		"a value whose pointer has the methods": pointerHook{},
	} {
		t.Run("must not be "+name, func(t *testing.T) {
			t.Parallel()
			_, err := newHooks([]Hook{doneHook(func(context.Context, Event) {}), hook}, nil)
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, "hook 2 of 2")
		})
	}
	t.Run("may be a pointer", func(t *testing.T) {
		t.Parallel()
		_, err := newHooks([]Hook{&pointerHook{}}, nil)
		require.NoError(t, err)
	})
}

type pointerHook struct{}

func (*pointerHook) Done(context.Context, Event) {}

// not parallel: testing.AllocsPerRun counts the allocations of the whole process.
func TestHooksWithoutAnyCostNothing(t *testing.T) {
	h, err := newHooks(nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() { fireAll(ctx, &h) }), "allocations without a hook")
	require.Zero(t, testing.AllocsPerRun(100, func() { fireAll(ctx, new(hooks)) }), "allocations of the zero hooks")
}
