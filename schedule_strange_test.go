package pawl_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// logged is where a logger writes, for several goroutines.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), text)
}

// A worker leaves to others what it does not understand, says so once, and asks no more
// often for it.
func TestASchedulesOfANewerBuildIsLeftToOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), t.Context()
		var log logged
		var seen ticks
		w, err := pawl.NewWorker(e.NewClient(pawl.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}),
			pawl.WorkerConfig{Queues: pawl.Queues("mail")})
		require.NoError(t, err)
		pawl.Handle(w, seen.handle)
		e.Start(w)
		good := pawl.Schedule{ID: "s", When: pawl.Every(time.Minute), Args: note{1}}
		strange := good
		strange.ID = "newer"
		zone := good
		zone.ID = "zone"
		require.NoError(t, q.Schedule(ctx, good, strange, zone))
		stored := e.Redis.HGet(ctx, "pawl:{mail}:schedules", "newer").Val()
		require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:schedules", "newer", "\x02"+stored[1:]).Err())
		line := "cron 0 2 * * * in Mars/Olympus"
		require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:schedules", "zone", "\x01"+string(rune(len(line)))+line+stored[len("\x01\x0aevery 1m0s"):]).Err())
		e.Pass(30 * time.Second)
		before := e.Mini.CommandCount()
		e.Pass(30 * time.Minute)
		require.InDelta(t, 30, len(seen.all()), 1, "the others are fired")
		require.Less(t, e.Mini.CommandCount()-before, 30*60*20, "it does not spin: with scripts counted by their commands, idle is 5 a second")
		require.Equal(t, 1, log.count("schedule=newer"))
		require.Equal(t, 1, log.count("schedule=zone"))
		infos, err := q.Schedules(ctx)
		require.NoError(t, err)
		require.Len(t, infos, 3)
		require.Equal(t, "newer", infos[0].ID)
		require.Empty(t, infos[0].Spec)
		require.Equal(t, line, infos[2].Spec)
		_, err = q.Trigger(ctx, "newer")
		require.ErrorContains(t, err, "newer version")
		require.NoError(t, q.Schedule(ctx, strange, zone), "a build that is rolled back registers its own")
		e.Pass(2 * time.Minute)
		for _, info := range must(q.Schedules(ctx)) {
			require.Greater(t, info.Fired, int64(0), info.ID)
		}
		require.NoError(t, q.SyncSchedules(ctx, nil))
	})
}
