package pawl_test

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// L7. Workers that start and stop, some of them with work to do, leave no
// goroutine, connection, file or key behind. PAWL_FAULT_STOPS says how many. It is
// not parallel: it counts what the process has.
func TestStartsAndStopsLeaveNothing(t *testing.T) {
	server := redistest.Start(t)
	e := newEnv(t, server.Client(t), nil)
	done := 0
	round := func(n int) {
		w := e.Worker("", pawl.WorkerConfig{Queues: pawl.Queues("a", "b")})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		stop := e.Start(w)
		switch n % 10 {
		case 3: // stopped with its work done
			fill(t, e, 1, "a")
			done++
			e.Log.Wait(t, "done", done)
		case 7: // stopped whatever it has begun
			fill(t, e, 1, "b")
			done++
		}
		require.NoError(t, stop())
	}
	rounds := amount(t, "PAWL_FAULT_STOPS", 200)
	for n := range 24 { // the last one finds all jobs done
		round(n)
	}
	before := has(t, e)
	start := time.Now()
	for n := range rounds {
		round(n)
	}
	round(3)
	t.Logf("%d starts and stops took %v", rounds, time.Since(start))
	redistest.Eventually(t, "the goroutines end", func(context.Context) bool { return runtime.NumGoroutine() <= before.goroutines+2 })
	after := has(t, e)
	t.Logf("%+v, then %+v", before, after)
	require.LessOrEqual(t, after.connections, before.connections+5)
	require.LessOrEqual(t, after.files, before.files+5)
	require.Equal(t, before.keys, after.keys)
}

// holdings are what a process and its Redis have that should stay the same.
type holdings struct {
	goroutines, files int
	connections       uint32
	keys              []string // of pawl that do not expire, but tokens, and those of stops
}

func has(t *testing.T, e *env) holdings {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Logf("open files are not counted: %v", err)
	}
	h := holdings{goroutines: runtime.NumGoroutine(), files: len(files), connections: e.Redis.PoolStats().TotalConns}
	for key, value := range redistest.Dump(t.Context(), e.Redis, "pawl:") {
		kind, _, _ := strings.Cut(value, "\n")
		if !strings.Contains(kind, "ttl") && !strings.HasSuffix(key, ":wake") || strings.Contains(key, ":stop:") {
			h.keys = append(h.keys, key)
		}
	}
	slices.Sort(h.keys)
	return h
}
