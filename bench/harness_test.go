package main

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// fake is a system that keeps its jobs nowhere.
type fake struct {
	session
	closed *int
}

func (f fake) close(context.Context) error { *f.closed++; return nil }

func fakeSystem(name string, opened, closed *int, can ...need) *system {
	return &system{
		name: name, can: can,
		versions: func() map[string]string { return map[string]string{name: "1"} },
		store:    func(context.Context, ...string) (*store, error) { return &store{close: func() { *closed++ }}, nil },
		open: func(context.Context, address) (session, error) {
			*opened++
			return fake{closed: closed}, nil
		},
	}
}

func TestSystemsTakeTurns(t *testing.T) {
	t.Parallel()
	needRedis(t) // its version is in the report
	var opened, closed int
	var order []string
	sick := fakeSystem("sick", &opened, &closed)
	away := fakeSystem("away", &opened, &closed)
	away.prepare = func(context.Context, string) (func(), error) { return nil, errors.New("not installed") }
	h := &harness{
		systems: []*system{fakeSystem("pawl", &opened, &closed, needsBulk), fakeSystem("peer", &opened, &closed), sick, away},
		rounds:  3, short: true, progress: io.Discard,
		workloads: []workload{
			{name: "a", title: "A", short: 10, metrics: rate, do: func(_ context.Context, r *run) ([]float64, error) {
				order = append(order, r.sys.name)
				if r.sys == sick {
					return nil, errors.New("lost a job")
				}
				return []float64{float64(len(order))}, nil
			}},
			{name: "b", title: "B", short: 20, needs: []need{needsBulk}, once: true, metrics: rate, do: func(_ context.Context, r *run) ([]float64, error) {
				return []float64{float64(r.n)}, nil
			}},
		},
	}
	r, err := h.run(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"pawl", "peer", "sick", "peer", "pawl", "pawl", "peer"}, order, "what failed is not tried again")
	require.Equal(t, []string{"away: not installed"}, r.LeftOut)
	require.Equal(t, 1, r.failures())
	require.Equal(t, 2*opened, closed, "each session and each store was closed")
	require.Len(t, r.Results, 4)
	for i, want := range []struct {
		system string
		rounds []float64
		median float64
		failed string
	}{
		{"pawl", []float64{1, 5, 6}, 5, ""},
		{"peer", []float64{2, 4, 7}, 4, ""},
		{"sick", nil, 0, "lost a job"},
		{"pawl", []float64{20}, 20, ""},
	} {
		got := r.Results[i]
		require.Equal(t, want.system, got.System)
		require.Equal(t, want.rounds, got.Rounds)
		require.Equal(t, want.median, got.Median)
		require.Equal(t, want.failed, got.Failed)
	}
}

func TestWhatWasMeasuredIsKeptIfItIsStopped(t *testing.T) {
	t.Parallel()
	needRedis(t)
	var opened, closed, saves int
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	one := func(_ context.Context, r *run) ([]float64, error) { return []float64{1}, nil }
	h := &harness{
		systems: []*system{fakeSystem("pawl", &opened, &closed)}, rounds: 2, short: true, progress: io.Discard,
		workloads: []workload{
			{name: "a", short: 1, metrics: rate, do: one},
			{name: "b", short: 1, metrics: rate, do: func(ctx context.Context, r *run) ([]float64, error) {
				cancel()
				return nil, context.Cause(ctx)
			}},
			{name: "c", short: 1, metrics: rate, do: one},
		},
		save: func(r *report) error { saves++; return nil },
	}
	r, err := h.run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "a", r.Results[0].Workload)
	require.Equal(t, 2, saves, "after each workload")
	for _, res := range r.Results[1:] {
		require.Equal(t, "b", res.Workload)
		require.NotEmpty(t, res.Failed)
	}
}

// says is a session whose system says the next state each time it is asked.
type says struct {
	session
	states *[]state
}

func (s says) state(context.Context) (state, error) {
	next := (*s.states)[0]
	if len(*s.states) > 1 {
		*s.states = (*s.states)[1:]
	}
	return next, nil
}

func TestTheSystemItselfMustSayThatAllIsDone(t *testing.T) {
	t.Parallel()
	all := []state{{Done: 1, Left: 2}, {Done: 3, Left: 1}, {Done: 3}}
	require.NoError(t, (&run{}).acknowledged(t.Context(), 3, says{states: &all}))
	require.Len(t, all, 1, "it was asked until then")

	all = []state{{Done: 4}}
	require.EqualError(t, (&run{}).acknowledged(t.Context(), 3, says{states: &all}), "4 jobs are done of 3")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	all = []state{{Done: 2, Left: 0}}
	require.ErrorContains(t, (&run{}).acknowledged(ctx, 3, says{states: &all}), "of 3 jobs 2 are done, 0 left")
}

func TestStatesOfTwoSessions(t *testing.T) {
	t.Parallel()
	shared := func() says { return says{states: &[]state{{Done: 7, Left: 1}}} }
	all, err := states(t.Context(), shared(), shared())
	require.NoError(t, err)
	require.Equal(t, state{Done: 7, Left: 1}, all)

	own := func(done int) says { return says{states: &[]state{{Done: done, Left: 1, Own: true}}} }
	all, err = states(t.Context(), own(3), own(4))
	require.NoError(t, err)
	require.Equal(t, state{Done: 7, Left: 1}, all)
}

// The systems of a workload are measured in one go, so that their ratios hold.
func TestARunGoesOnWhereAnotherWasStopped(t *testing.T) {
	t.Parallel()
	needRedis(t)
	var opened, closed int
	newHarness := func(rounds int, names ...string) *harness {
		h := &harness{systems: []*system{fakeSystem("pawl", &opened, &closed)}, rounds: rounds, progress: io.Discard, short: true}
		for i, name := range names {
			h.workloads = append(h.workloads, workload{name: name, title: name, short: 1, metrics: rate,
				do: func(context.Context, *run) ([]float64, error) { return []float64{float64(i)}, nil }})
		}
		return h
	}
	stopped, err := newHarness(1, "drain-10").run(t.Context())
	require.NoError(t, err)
	h := newHarness(1, "enqueue-1", "drain-10")
	h.earlier = stopped
	whole, err := h.run(t.Context())
	require.NoError(t, err)
	require.Len(t, whole.Results, 2)
	require.Equal(t, "enqueue-1", whole.Results[0].Workload, "in the order of the table")
	require.Equal(t, stopped.Results[0], whole.Results[1], "what was measured is not measured again")
	require.Equal(t, 2, opened)

	h = newHarness(2, "enqueue-1")
	h.earlier = stopped
	_, err = h.run(t.Context())
	require.ErrorContains(t, err, "1 rounds")
}
