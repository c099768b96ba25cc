package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// N4. The call that carries progress is lost, at each point of its way: the handler
// is not told, waits for a second at most, and the newest value is stored in the end.
// A packet that comes late does not bring an older one back.
func TestProgressThatIsLostIsSentAnew(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for name, fault := range map[string]redistest.Fault{
		"before it ran": redistest.Drop, "with its reply": redistest.RunDropReply, "by a reset": redistest.RunReset,
		"with half of its reply": redistest.HalfReply, "by a refusal": redistest.Refuse("LOADING Redis is loading the dataset in memory"),
		"by a script that is not known": redistest.Refuse("NOSCRIPT No matching script"),
		"and comes late":                redistest.Late,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := behindProxy(t, s, 300*time.Millisecond)
			queue := freshQueue()
			f.put(t, queue, 1)
			f.Proxy.On("progress", 1, fault)
			w := f.Worker(queue, pawl.WorkerConfig{})
			told := func(id pawl.ID) string {
				info, err := f.past.Queue(queue).Get(context.Background(), id)
				require.NoError(t, err)
				return info.Note
			}
			pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
				began := time.Now()
				require.NoError(t, job.Progress(ctx, 10, "older"))
				require.NoError(t, job.Progress(ctx, 20, "newer"))
				require.Less(t, time.Since(began), 1500*time.Millisecond)
				redistest.Eventually(t, "the newer value is stored", func(context.Context) bool { return told(job.ID) == "newer" })
				for _, reply := range f.Proxy.Release() {
					require.Contains(t, reply, "stale")
				}
				require.Equal(t, "newer", told(job.ID))
				require.GreaterOrEqual(t, f.Proxy.Calls("progress"), 2)
				return nil
			})
			stop := f.Start(w)
			f.Log.Wait(t, "done", 1)
			require.NoError(t, stop())
		})
	}
}

// Redis is away: the handler goes on, and what it told last is stored once Redis is
// back. A worker that stops meanwhile leaves nothing behind.
func TestProgressOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 200*time.Millisecond)
	f.put(t, "q", 1)
	f.Proxy.On("progress", 0, redistest.Drop)
	w := f.Worker("q", pawl.WorkerConfig{})
	free := make(chan struct{})
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
		for i := range 10 {
			began := time.Now()
			require.NoError(t, job.Progress(ctx, float64(10*i), "on"))
			require.Less(t, time.Since(began), 1500*time.Millisecond)
			<-time.After(200 * time.Millisecond)
		}
		f.Proxy.Clear()
		redistest.Eventually(t, "the last value is stored", func(ctx context.Context) bool {
			info, err := f.past.Queue("q").Get(ctx, job.ID)
			return err == nil && info.Percent == 90
		})
		f.Proxy.On("progress", 0, redistest.Drop)
		require.NoError(t, job.Progress(ctx, 95, "again"))
		close(free)
		return nil
	})
	stop := f.Start(w)
	<-free
	require.NoError(t, stop())
	f.Log.Wait(t, "done", 1)
}
