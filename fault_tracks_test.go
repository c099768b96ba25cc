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

// Two round trips of a queue are under way at a time. A job that the one puts
// back is leased by the other, before the answer to the first has come: it is
// then a new run, and neither a lease of the old one nor nobody's until it ends.
func TestAJobThatOneRoundTripPutsBackIsRunFromTheOther(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, fault := range map[string]redistest.Fault{
		"its answer is late":      redistest.Delay(2 * time.Second),
		"its answer never comes":  redistest.RunDropReplyAndHold,
		"its connection is reset": redistest.RunReset,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const lease = time.Minute
			f, queue := behindProxy(t, server, 3*time.Second), freshQueue()
			f.Proxy.On("retry", 1, fault)
			jobs := f.put(t, queue, 4)
			var ran runs
			gate := make(chan struct{})
			w := f.Worker(queue, pawl.WorkerConfig{Concurrency: 4, VisibilityTimeout: lease})
			pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
				switch again := ran.add(job.Args.N) > 1; {
				case job.Args.N > 0:
					<-gate // so that there are outcomes for the second round trip
				case !again:
					return pawl.RetryAfter(30*time.Millisecond, errors.New("not yet"))
				}
				return nil
			})
			begun := time.Now()
			stop := f.Start(w)
			require.Eventually(t, func() bool {
				info, err := f.past.Queue(queue).Get(t.Context(), jobs[0].ID)
				return err != nil || info.LastError != "" && time.Since(info.DueAt) > 5*time.Millisecond
			}, time.Minute, time.Millisecond)
			close(gate)
			f.Log.Wait(t, "done", 4)
			require.Less(t, time.Since(begun), lease/2, "nobody waited for the end of a lease")
			require.NoError(t, stop())
			require.Empty(t, f.Log.Of("crashed"))
			require.Equal(t, 2, ran.of[0])
			total := f.Total(t, queue)
			require.EqualValues(t, 4, total.Done)
			require.EqualValues(t, 1, total.Retried)
		})
	}
}
