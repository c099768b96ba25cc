package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// Case 22. A settle fails with an error that passes: it is sent again, past the
// end of the lease too; the job does not run again, and no attempt is spent.
func TestASettleThatIsRefusedForAWhileIsSentAgain(t *testing.T) {
	t.Parallel()
	const visibility = 500 * time.Millisecond
	for name, outage := range map[string]func(t *testing.T, f *faulty) (heal func()){
		"by NOREPLICAS": func(t *testing.T, f *faulty) func() {
			require.NoError(t, f.Direct.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
			return func() { require.NoError(t, f.Direct.ConfigSet(t.Context(), "min-replicas-to-write", "0").Err()) }
		},
		"by READONLY": func(t *testing.T, f *faulty) func() {
			require.NoError(t, f.Direct.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
			return func() { require.NoError(t, f.Direct.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err()) }
		},
		"by the loss of its connection": func(t *testing.T, f *faulty) func() {
			f.Proxy.On("settle", 0, redistest.Drop)
			return f.Proxy.Clear
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := behindProxy(t, redistest.Start(t), 0)
			f.put(t, "q", 1, pawl.MaxAttempts(1))
			healing := make(chan func(), 1)
			w := f.Worker("q", pawl.WorkerConfig{VisibilityTimeout: visibility})
			pawl.Handle(w, func(context.Context, *pawl.Job[note]) error {
				healing <- outage(t, f)
				return nil
			})
			stop := f.Start(w)
			heal := <-healing
			f.Log.Wait(t, "outage", 1)
			<-time.After(2 * visibility) // longer than a lease that is not renewed
			require.Empty(t, f.Log.Of("done"))
			healed := time.Now()
			heal()
			f.Log.Wait(t, "done", 1)
			measured(t, "case 22", "a settle that was refused "+name+" was stored", time.Since(healed))
			require.NoError(t, stop())
			require.Len(t, f.Log.Of("started"), 1)
			total := f.Total(t, "q")
			require.Zero(t, total.Failed+total.Retried+total.Dead)
			require.EqualValues(t, 1, total.Done)
		})
	}
}
