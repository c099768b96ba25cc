package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// deed is one call that enqueued jobs: it lies in the AOF after the byte from, and
// before the byte to.
type deed struct {
	ids      []pawl.ID
	later    bool // in an hour
	from, to int64
}

// diary is when the jobs of a queue were enqueued, and when their outcomes were
// stored, by the length of the AOF.
type diary struct {
	s        *redistest.Server
	enqueued []deed

	mu       sync.Mutex
	returned map[pawl.ID]int64 // the length when the handler returned for the last time
	over     map[pawl.ID]int64 // the length when its end was answered
}

// Done is a hook.
func (d *diary) Done(_ context.Context, e pawl.Event) { d.end(e.Job.ID) }

// Dead is a hook.
func (d *diary) Dead(_ context.Context, e pawl.DeadEvent) { d.end(e.Job.ID) }

func (d *diary) end(id pawl.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over[id] = d.s.AOFSize()
}

// lifetime fills a diary: jobs of all shapes are enqueued, one call after the other,
// and run until each is done, dead or delayed for an hour.
func lifetime(t *testing.T, s *redistest.Server, visibility time.Duration) *diary {
	t.Helper()
	d := &diary{s: s, returned: map[pawl.ID]int64{}, over: map[pawl.ID]int64{}}
	e := newEnv(t, s.Client(t), nil)
	e.Client = e.NewClient(pawl.Config{Hooks: []pawl.Hook{d}})
	n := 0
	for round := range 8 {
		for _, shape := range []struct {
			jobs int
			opts []pawl.Option
		}{
			{1, nil}, {2, []pawl.Option{pawl.Priority(3)}}, {3, []pawl.Option{pawl.Delay(time.Millisecond)}},
			{4, []pawl.Option{pawl.Delay(time.Hour)}}, {1, []pawl.Option{pawl.Unique{Key: fmt.Sprint(round)}}},
		} {
			call := deed{from: s.AOFSize(), later: shape.jobs == 4}
			for _, job := range e.put("q", n, n+shape.jobs, shape.opts...) {
				call.ids = append(call.ids, job.ID)
			}
			call.to = s.AOFSize()
			d.enqueued = append(d.enqueued, call)
			n += shape.jobs
		}
	}
	w := e.Worker("q", pawl.WorkerConfig{Concurrency: 5, VisibilityTimeout: visibility,
		Backoff: pawl.Backoff{Base: time.Millisecond, Jitter: pawl.JitterNone}})
	var handled runs
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		defer func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.returned[job.ID] = s.AOFSize()
		}()
		switch first := handled.add(job.Args.N) == 1; {
		case job.Args.N%7 == 0:
			return pawl.Permanent(errors.New("no"))
		case job.Args.N%3 == 0 && first:
			return errors.New("again")
		}
		return nil
	})
	stop := e.Start(w)
	redistest.Eventually(t, "all is over", func(ctx context.Context) bool {
		stats, err := e.Queue("q").Stats(ctx)
		return err == nil && stats.Ready+stats.Running == 0 && stats.Delayed == 8*4
	})
	require.NoError(t, stop())
	return d
}

// P2. The power fails at many moments of one history: of each, what was answered
// before is there, and what was answered after is not, and the rest of the queue's
// life goes on from there.
func TestALossOfPowerLosesTheTailAndNothingByHalf(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	const visibility = 500 * time.Millisecond
	d := lifetime(t, s, visibility)
	whole := s.AOF()
	const cuts = 12
	for cut := range cuts {
		at := int64(len(whole)) * int64(cut+1) / (cuts + 1)
		s.RestartWith(whole[:at])
		d.afterwards(t, at, visibility)
	}
}

// afterwards says that the server holds exactly what was written before the cut,
// and that the jobs which are there run to their end.
func (d *diary) afterwards(t *testing.T, cut int64, visibility time.Duration) {
	t.Helper()
	e := newEnv(t, d.s.Client(t), nil)
	defer e.Check() // of each cut
	q := e.Queue("q")
	there, gone := map[pawl.ID]bool{}, map[pawl.ID]bool{} // to be run, and lost
	var enqueued, later int64
	last := ""
	for _, call := range d.enqueued {
		found := 0
		for _, id := range call.ids {
			last = max(last, id.String())
			state := e.state("q", id)
			there[id] = state != "" && state != pawl.StateDead
			switch {
			case call.from >= cut:
				require.Empty(t, state, "what was written after the cut")
			case call.to > cut: // this call was cut
			case d.over[id] > 0 && d.over[id] <= cut:
				require.False(t, there[id], "what ended before the cut is over, and not %s", state)
			case d.over[id] == 0 || d.returned[id] >= cut:
				require.True(t, there[id], "what had not ended is there, and not %q", state)
			}
			if state != "" || call.to <= cut {
				found++
			}
			gone[id] = state == "" && call.to > cut
		}
		require.Contains(t, []int{0, len(call.ids)}, found, "a call is there as a whole, or not at all")
		enqueued += int64(found)
		if call.later {
			later += int64(found)
		}
	}
	stats, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, enqueued, stats.Total.Enqueued)
	require.Equal(t, enqueued, stats.Ready+stats.Delayed+stats.Running+stats.Dead+stats.Total.Done)
	e.Check() // before anything heals

	w := e.Worker("q", pawl.WorkerConfig{Concurrency: 5, VisibilityTimeout: visibility})
	var mu sync.Mutex
	ran := map[pawl.ID]int{}
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		mu.Lock()
		defer mu.Unlock()
		ran[job.ID]++
		return nil
	})
	stop := e.Start(w)
	up := time.Now()
	fresh := e.put("q", 1000, 1003, pawl.Priority(9))
	require.Greater(t, fresh[0].ID.String(), last, "ids go on rising, above those that were lost")
	redistest.Eventually(t, "what is left is done", func(ctx context.Context) bool {
		stats, err = q.Stats(ctx)
		return err == nil && stats.Ready+stats.Running == 0 && stats.Delayed == later
	})
	measured(t, "P2", fmt.Sprintf("%d jobs that were left, and %d leases, done", stats.Total.Done, stats.Total.Crashed), time.Since(up))
	require.NoError(t, stop())
	for id, times := range ran {
		require.Equal(t, 1, times)
		require.False(t, gone[id], "a job that was lost ran")
	}
	for id, was := range there {
		if was && d.over[id] > 0 { // all but those of in an hour
			require.Equal(t, 1, ran[id], "a job that was there ran")
		}
	}
	require.Equal(t, enqueued+3, stats.Delayed+stats.Dead+stats.Total.Done)
}
