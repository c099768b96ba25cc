package pawl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// N6. Each answer is late, or comes one byte at a time; to each call of a
// pipeline alike. Nothing is lost or done twice for it, and nobody is unwell.
func TestASlowNetworkOnlySlowsWorkDown(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]redistest.Fault{
		"with answers 300 ms late":        redistest.Delay(300 * time.Millisecond),
		"with answers one byte at a time": redistest.Trickle(20 * time.Microsecond),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := behindProxy(t, redistest.Start(t), 30*time.Second)
			f.Proxy.On(redistest.Any, 0, fault)
			q := f.Queue("q")
			w := f.Worker("q", pawl.WorkerConfig{Concurrency: 10, VisibilityTimeout: 6 * time.Second,
				Backoff: pawl.Backoff{Base: time.Millisecond, Jitter: pawl.JitterNone}})
			var handled runs
			pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
				switch n := handled.add(job.Args.N); {
				case job.Args.N == 0: // longer than its lease
					select {
					case <-time.After(7 * time.Second):
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				case job.Args.N%2 == 1 && n == 1:
					return errors.New("again")
				}
				return nil
			})
			stop := f.Start(w)
			start := time.Now()
			const jobs = 40
			notes := make([]note, jobs)
			for i := range notes {
				notes[i].N = i
			}
			_, err := q.EnqueueMany(within(t, time.Minute), pawl.Items(notes))
			require.NoError(t, err)
			measured(t, "N6", "40 jobs were enqueued", time.Since(start))
			f.Log.Wait(t, "done", jobs)
			measured(t, "N6", "40 jobs were done, of which 20 twice, and one of 7 s", time.Since(start))
			require.NoError(t, w.Healthy())
			require.NoError(t, stop())
			require.Empty(t, f.Log.Of("outage"))
			require.Empty(t, f.Log.Of("lost"))
			require.Equal(t, pawl.Counters{Enqueued: jobs, Started: jobs + jobs/2, Retried: jobs / 2, Failed: jobs / 2, Done: jobs}, f.Total(t, "q"))
		})
	}
}
