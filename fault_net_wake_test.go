package pawl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// N2. The reply of a blocking read never comes, as on a connection that a
// firewall has forgotten: go-redis waits ten seconds longer than Redis blocks.
func TestALostWakeUpCostsTheBlockingTimeAlone(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	w := f.Worker("q", pawl.WorkerConfig{})
	pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
	f.Proxy.On("blpop", 1, redistest.RunDropReplyAndHold)
	reads := f.Proxy.Seen("blpop", 1)
	stop := f.Start(w)
	<-reads
	start := time.Now()
	f.put(t, "q", 1)
	f.Log.Wait(t, "done", 1)
	took := time.Since(start)
	measured(t, "N2", "a job whose wake-up was lost ran", took)
	require.Less(t, took, 8*time.Second, "it blocks for 2 s")
	require.Len(t, f.Log.Of("outage"), 0)
	require.NoError(t, stop())
}
