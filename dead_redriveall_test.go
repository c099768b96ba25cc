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
)

type answer struct {
	report pawl.RedriveReport
	err    error
}

// redriveAll starts a RedriveAll of queue mail.
func redriveAll(ctx context.Context, e *env, f pawl.DeadFilter, how pawl.Redrive) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		report, err := e.Queue("mail").Dead().RedriveAll(ctx, f, how)
		done <- answer{report, err}
	}()
	return done
}

func deadLen(t *testing.T, e *env) int {
	t.Helper()
	n, err := e.Queue("mail").Dead().Len(t.Context())
	require.NoError(t, err)
	return int(n)
}

func TestOverSpreadsTheJobsEvenly(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		const n, over = 1000, 10 * time.Second
		die(t, e, n)
		start := time.Now()
		done := redriveAll(t.Context(), e, pawl.DeadFilter{}, pawl.Redrive{Over: over})
		for tenth := 1; tenth < 10; tenth++ {
			e.Pass(over / 10)
			require.InDelta(t, n*tenth/10, n-deadLen(t, e), n*2/100, "after %d tenths", tenth)
		}
		a := <-done
		require.NoError(t, a.err)
		require.Equal(t, pawl.RedriveReport{Matched: n, Moved: n}, a.report)
		require.InDelta(t, over*(n-1)/n, time.Since(start), float64(10*time.Millisecond))
	})
}

func TestOverWithALimitAndALongTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		ids := die(t, e, 30)
		start := time.Now()
		a := <-redriveAll(t.Context(), e, pawl.DeadFilter{Limit: 5}, pawl.Redrive{Over: 50 * time.Hour})
		require.NoError(t, a.err)
		require.Equal(t, pawl.RedriveReport{Matched: 5, Moved: 5}, a.report)
		require.InDelta(t, 40*time.Hour, time.Since(start), float64(time.Second))
		require.Equal(t, ids[5:], idsOfDead(listedDead(t, e, pawl.DeadFilter{})), "the oldest were moved")
		// What is gone before its turn is passed over.
		done := redriveAll(t.Context(), e, pawl.DeadFilter{}, pawl.Redrive{Over: time.Hour})
		e.Pass(30 * time.Minute)
		n, err := e.Queue("mail").Dead().Purge(t.Context(), pawl.DeadFilter{Limit: 3})
		require.NoError(t, err)
		require.Equal(t, 3, n)
		a = <-done
		require.NoError(t, a.err)
		require.Equal(t, pawl.RedriveReport{Matched: 22, Moved: 22}, a.report)
	})
}

func TestARedriveThatIsCutShortSaysWhatItMoved(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	for name, how := range map[string]pawl.Redrive{"Over": {Over: 100 * time.Second}, "StopAfter": {StopAfter: 50}, "both": {Over: 100 * time.Second, StopAfter: 50}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				die(t, e, 100)
				ctx, cancel := context.WithCancelCause(t.Context())
				done := redriveAll(ctx, e, pawl.DeadFilter{}, how)
				e.Pass(50*time.Second - 500*time.Millisecond)
				cancel(cause)
				a := <-done
				require.ErrorIs(t, a.err, cause)
				require.InDelta(t, 50, a.report.Moved, 1)
				require.Equal(t, 100-a.report.Moved, deadLen(t, e))
				// The rest can be redriven by another call.
				a = <-redriveAll(t.Context(), e, pawl.DeadFilter{}, pawl.Redrive{})
				require.NoError(t, a.err)
				require.Zero(t, deadLen(t, e))
			})
		})
	}
}

func TestANonsensicalRedriveIsInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		die(t, e, 1)
		for _, how := range []pawl.Redrive{{Over: -1}, {Over: 101 * 366 * 24 * time.Hour}, {StopAfter: -1}} {
			a := <-redriveAll(t.Context(), e, pawl.DeadFilter{}, how)
			require.ErrorIs(t, a.err, pawl.ErrInvalid)
			require.Zero(t, a.report)
		}
		require.Equal(t, 1, deadLen(t, e))
	})
}

// underTrial runs a worker that fails what bad says, each after some tries, and
// counts how many jobs are under way at once: redriven, and neither done nor dead.
func underTrial(t *testing.T, e *env, bad func(n int) bool) (most *atomic.Int64) {
	t.Helper()
	w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 20, Backoff: pawl.Backoff{Base: time.Minute, Jitter: pawl.JitterNone}})
	most = &atomic.Int64{}
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
		<-time.After(time.Second)
		s, err := e.Client.Queue("mail").Stats(ctx)
		if err == nil {
			most.Store(max(most.Load(), s.Ready+s.Delayed+s.Running))
		}
		if bad(job.Args.N) {
			return fmt.Errorf("failure %d", job.Args.N)
		}
		return nil
	})
	e.Start(w)
	return most
}

func TestStopAfterEndsARedriveWhoseJobsDieAgain(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]pawl.Redrive{"at once": {StopAfter: 5}, "over a time": {StopAfter: 5, Over: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				die(t, e, 100) // each of which has one attempt
				most := underTrial(t, e, func(int) bool { return true })
				a := <-redriveAll(t.Context(), e, pawl.DeadFilter{}, how)
				require.NoError(t, a.err)
				require.Equal(t, 5, a.report.DiedAgain)
				require.LessOrEqual(t, a.report.Moved, 6)
				require.LessOrEqual(t, most.Load(), int64(5))
				e.Pass(time.Minute)
				require.Equal(t, 100, deadLen(t, e))
			})
		})
	}
}

func TestStopAfterLetsTheNextOnesGoAsJobsSucceed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		for i := range 40 { // two attempts, which take more than a minute
			_, err := e.Queue("mail").Enqueue(t.Context(), note{i}, pawl.MaxAttempts(2))
			require.NoError(t, err)
		}
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return fmt.Errorf("no") })
		e.Run(w, "dead", 40)
		most := underTrial(t, e, func(n int) bool { return n%20 == 3 })
		start := time.Now()
		a := <-redriveAll(t.Context(), e, pawl.DeadFilter{}, pawl.Redrive{StopAfter: 5})
		require.NoError(t, a.err)
		require.Equal(t, 40, a.report.Moved)
		require.LessOrEqual(t, a.report.DiedAgain, 2)
		require.LessOrEqual(t, most.Load(), int64(5), "those that wait for a retry are under way")
		require.Greater(t, time.Since(start), 8*time.Second)
		e.Pass(time.Hour)
		require.Equal(t, 2, deadLen(t, e))
	})
}

func TestAJobThatDiesAgainIsNotMovedTwice(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		die(t, e, 50)
		underTrial(t, e, func(int) bool { return true })
		a := <-redriveAll(t.Context(), e, pawl.DeadFilter{}, pawl.Redrive{Over: time.Hour})
		require.NoError(t, a.err)
		require.Equal(t, pawl.RedriveReport{Matched: 50, Moved: 50}, a.report, "without StopAfter nobody looks at deaths")
		e.Pass(time.Minute)
		s, err := e.Queue("mail").Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 50, s.Total.Redriven)
		require.EqualValues(t, 100, s.Total.Dead)
	})
}
