package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// watching is a Watch under way.
type watching struct {
	deaths chan pawl.DeadJob
	errs   chan error
	ended  chan struct{}
	stop   context.CancelFunc
}

func watch(t *testing.T, d *pawl.DeadLetters, from string) *watching {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &watching{make(chan pawl.DeadJob, 1000), make(chan error, 1000), make(chan struct{}), cancel}
	t.Cleanup(func() { cancel(); <-w.ended })
	go func() {
		defer close(w.ended)
		for job, err := range d.Watch(ctx, from) {
			if err != nil {
				w.errs <- err
			} else {
				w.deaths <- job
			}
		}
	}()
	return w
}

// next is the ids of the next n deaths, and the position after them.
func (w *watching) next(t *testing.T, n int) (ids []pawl.ID, position string) {
	t.Helper()
	limit := time.After(time.Minute)
	for range n {
		select {
		case job := <-w.deaths:
			ids, position = append(ids, job.ID), job.Position
		case <-limit:
			require.FailNow(t, "a death was not seen", "%d of %d", len(ids), n)
		}
	}
	return ids, position
}

func TestAWatchYieldsEachDeathOnceAndInOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		d := e.Queue("mail").Dead()
		begin := []*watching{watch(t, d, ""), watch(t, d, "0-0")} // of a queue that is not there yet
		e.Pass(10 * time.Second)
		first := die(t, e, 40)
		var middle string
		for _, w := range begin {
			ids, position := w.next(t, 40)
			require.Equal(t, first, ids)
			middle = position
		}
		late := watch(t, d, "")
		e.Pass(3 * time.Second) // until it waits
		second := die(t, e, 3)
		for _, w := range append(begin, late, watch(t, d, middle)) {
			ids, _ := w.next(t, 3)
			require.Equal(t, second, ids)
			require.Empty(t, w.errs)
		}
		// One that dies again is yielded again; what was deleted is not.
		all, _ := watch(t, d, "0-0").next(t, 43)
		require.Equal(t, append(first, second...), all)
		_, err := d.Delete(t.Context(), first...)
		require.NoError(t, err)
		ids, _ := watch(t, d, "0-0").next(t, 3)
		require.Equal(t, second, ids)
		for _, w := range append(begin, late) {
			w.stop()
			<-w.ended
			require.Empty(t, w.deaths)
			require.Empty(t, w.errs, "the end of ctx is no error")
		}
	})
}

func TestAWatchThatStopsAndResumesMissesNothing(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		d := e.Queue("mail").Dead()
		stored, seen := "0-0", []pawl.ID{}
		var want []pawl.ID
		for range 10 {
			want = append(want, die(t, e, 7)...)
			left := 5
			for job, err := range d.Watch(t.Context(), stored) {
				require.NoError(t, err)
				seen, stored = append(seen, job.ID), job.Position
				if left--; left == 0 {
					break
				}
			}
		}
		ids, _ := watch(t, d, stored).next(t, 20)
		require.Equal(t, want, append(seen, ids...))
	})
}

func TestAPositionThatIsNone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		for _, from := range []string{"now", "$", "0", "1-", "-1", "1-2-3", " 1-1", "99999999999999999999-0", "1-99999999999999999999", "+1-1"} {
			n := 0
			for _, err := range e.Queue("mail").Dead().Watch(t.Context(), from) {
				require.ErrorIs(t, err, pawl.ErrInvalid, from)
				n++
			}
			require.Equal(t, 1, n, from)
		}
	})
}

func TestAWatchTellsOfAnOutageAndGoesOn(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct{ begin, end func(f *faulty) }{
		"a server that was killed": {func(f *faulty) { f.Server.Kill() }, func(f *faulty) { f.Server.Restart() }},
		"a black hole":             {func(f *faulty) { f.Proxy.Blackhole(true) }, func(f *faulty) { f.Proxy.Blackhole(false) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := behindProxy(t, redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always"), time.Second)
			w := watch(t, f.Client.Queue("mail").Dead(), "0-0")
			first := die(t, f.env, 3)
			ids, _ := w.next(t, 3)
			require.Equal(t, first, ids)
			fault.begin(f)
			require.Error(t, <-w.errs)
			fault.end(f)
			second := die(t, f.env, 3)
			ids, _ = w.next(t, 3)
			require.Equal(t, second, ids)
			require.Empty(t, w.deaths)
		})
	}
}

// An error that comes at once must not come all the time, and a deadline far
// away must not keep the reader from hearing of one.
func TestAWatchTellsOfAnErrorEveryFiveSeconds(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		ctx := t.Context()
		require.NoError(t, e.Redis.Set(ctx, "pawl:{mail}:dead", "no stream", 0).Err())
		w := watch(t, e.Client.Queue("mail").Dead(), "0-0")
		e.Pass(21 * time.Second)
		require.Len(t, w.errs, 5)
		require.NoError(t, e.Redis.Del(ctx, "pawl:{mail}:dead").Err())
		ids := die(t, e, 1)
		got, _ := w.next(t, 1)
		require.Equal(t, ids, got)

		e.Mini.SetError("LOADING it loads")
		bounded, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		start := time.Now()
		for _, err := range e.Client.Queue("mail").Dead().Watch(bounded, "0-0") {
			require.Error(t, err)
			break
		}
		require.Less(t, time.Since(start), 6*time.Second)
		e.Mini.SetError("")
	})
}
