package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// Cases 5 and 23.
func TestDelaysAreExactAndNeverEarly(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{time.Millisecond, 1500 * time.Microsecond, 500 * time.Millisecond, 10 * time.Second, time.Hour} {
		for name, opt := range map[string]func(time.Time) pawl.Option{
			"Delay": func(time.Time) pawl.Option { return pawl.Delay(d) },
			"At":    func(now time.Time) pawl.Option { return pawl.At(now.Add(d)) },
		} {
			for _, priority := range []int{0, 5} {
				t.Run(fmt.Sprint(name, " ", d, " priority ", priority), func(t *testing.T) {
					t.Parallel()
					bubble(t, func(t *testing.T, e *env) {
						w := e.Worker("mail", pawl.WorkerConfig{VisibilityTimeout: 2 * time.Second})
						var started time.Time
						var dueAt time.Time
						pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
							started, dueAt = time.Now(), job.DueAt
							return nil
						})
						stop := e.Start(w)
						e.Pass(3 * time.Second) // an idle worker
						before := time.Now()
						_, err := e.Queue("mail").Enqueue(t.Context(), note{1}, opt(before), pawl.Priority(priority))
						require.NoError(t, err)
						e.Log.Wait(t, "done", 1)
						require.NoError(t, stop())
						require.GreaterOrEqual(t, started.Sub(before), d, "early")
						require.Less(t, started.Sub(before), d+5*time.Millisecond, "late")
						require.WithinDuration(t, before.Add(d), dueAt, 2*time.Millisecond)
					})
				})
			}
		}
	}
}

func TestATimeThatIsPastMeansNow(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		for _, at := range []time.Time{time.Now().Add(-time.Hour), time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Unix(0, 0)} {
			_, err := e.Queue("mail").Enqueue(t.Context(), note{1}, pawl.At(at))
			require.NoError(t, err)
		}
		e.Run(w, "done", 3)
	})
}

// Case 23.
func TestTimeoutsAreExact(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{time.Millisecond, 500 * time.Millisecond, 45 * time.Second} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				_, err := e.Queue("mail").Enqueue(t.Context(), note{1}, pawl.Timeout(d))
				require.NoError(t, err)
				w := e.Worker("mail", pawl.WorkerConfig{})
				var took time.Duration
				pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
					start := time.Now()
					deadline, ok := ctx.Deadline()
					require.True(t, ok)
					require.Equal(t, d, deadline.Sub(start))
					<-ctx.Done()
					took = time.Since(start)
					require.ErrorIs(t, context.Cause(ctx), pawl.ErrTimeout)
					return ctx.Err()
				})
				ev := e.Run(w, "retry", 1)[0]
				require.ErrorIs(t, ev.Err, pawl.ErrTimeout)
				require.Equal(t, d, took)
			})
		})
	}
}

func TestNoTimeoutHasNoDeadline(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		_, err := e.Queue("mail").Enqueue(t.Context(), note{1}, pawl.Timeout(pawl.NoTimeout))
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
			_, ok := ctx.Deadline()
			require.False(t, ok)
			return nil
		})
		e.Run(w, "done", 1)
	})
}

// W10.
func TestAHandlerThatOutlivesItsVisibilityTimeoutRunsOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		_, err := e.Queue("mail").Enqueue(t.Context(), note{1}, pawl.Timeout(pawl.NoTimeout))
		require.NoError(t, err)
		var stops []func() error
		for range 3 {
			w := e.Worker("mail", pawl.WorkerConfig{VisibilityTimeout: 2 * time.Second})
			pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
				select {
				case <-time.After(10 * time.Minute):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
			stops = append(stops, e.Start(w))
		}
		e.Log.Wait(t, "done", 1)
		for _, stop := range stops {
			require.NoError(t, stop())
		}
		require.Len(t, e.Log.Of("started"), 1)
		require.Empty(t, e.Log.Of("crashed"))
	})
}

func TestAVisibilityTimeoutOfAHandlerOrJobIsKeptAlive(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		call    []pawl.Option
		handler []pawl.HandleOption
	}{
		"longer, of the handler":  {nil, []pawl.HandleOption{pawl.VisibilityTimeout(time.Hour)}},
		"shorter, of the handler": {nil, []pawl.HandleOption{pawl.VisibilityTimeout(time.Second)}},
		"longer, of the job":      {[]pawl.Option{pawl.VisibilityTimeout(time.Hour)}, nil},
		"shorter, of the job":     {[]pawl.Option{pawl.VisibilityTimeout(time.Second)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				w := e.Worker("mail", pawl.WorkerConfig{VisibilityTimeout: 6 * time.Second})
				var y tally
				pawl.Handle(w, y.handle(10*time.Minute), c.handler...)
				stop := e.Start(w)
				e.Pass(time.Minute)
				_, err := e.Queue("mail").Enqueue(t.Context(), note{1}, c.call...)
				require.NoError(t, err)
				e.Log.Wait(t, "done", 1)
				require.NoError(t, stop())
				require.Empty(t, e.Log.Of("lost"))
				require.Len(t, e.Log.Of("started"), 1)
			})
		})
	}
}

func TestAJobIsFoundWithinMillisecondsByAnIdleWorker(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		var stops []func() error
		for range 5 {
			w := e.Worker("mail", pawl.WorkerConfig{})
			pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
			stops = append(stops, e.Start(w))
		}
		for i := range 20 {
			e.Pass(time.Duration(i) * 7 * time.Second)
			before := time.Now()
			_, err := e.Queue("mail").Enqueue(t.Context(), note{i})
			require.NoError(t, err)
			e.Log.Wait(t, "done", i+1)
			require.Less(t, time.Since(before), 5*time.Millisecond)
		}
		for _, stop := range stops {
			require.NoError(t, stop())
		}
	})
}

func TestExpiredJobsDieUnrun(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		late, err := q.Enqueue(t.Context(), note{1}, pawl.ExpireIn(time.Minute))
		require.NoError(t, err)
		e.Pass(time.Minute + time.Second)
		failing, err := q.Enqueue(t.Context(), note{2}, pawl.ExpireIn(time.Minute))
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{Backoff: pawl.Backoff{Steps: []time.Duration{25 * time.Second}, Jitter: pawl.JitterNone}})
		runs := map[int]int{}
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			runs[job.Args.N]++
			return errors.New("x")
		})
		e.Run(w, "dead", 2)
		require.Equal(t, map[int]int{2: 3}, runs)
		for _, id := range []pawl.ID{late.ID, failing.ID} {
			dead, err := q.Dead().Get(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, pawl.ReasonExpired, dead.Reason)
		}
		// A redrive counts anew.
		_, err = q.Dead().Redrive(t.Context(), late.ID)
		require.NoError(t, err)
		w = e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Run(w, "done", 1)
	})
}
