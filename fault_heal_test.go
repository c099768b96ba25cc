package pawl_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// notes is a log that a test reads.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(b)
}

func (n *notes) count(what string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Count(n.text.String(), what)
}

const (
	saidLost   = "jobs were lost"
	saidMended = "was mended"
)

// breakage is what a hand edit, an eviction or a lost tail leaves behind, of a
// queue with 3 jobs running, 3 delayed, 3 delayed with a priority and
// 3 dead.
type breakage struct {
	do           func(t *testing.T, e *env)
	lost, healed int64
}

const healPrefix = "pawl:{mail}:"

func edit(words ...any) func(*testing.T, *env) {
	return func(t *testing.T, e *env) {
		words[1] = healPrefix + words[1].(string)
		require.NoError(t, e.Redis.Do(t.Context(), words...).Err())
	}
}

// eachMember edits every member of a key in turn, as %s.
func eachMember(from string, words ...any) func(*testing.T, *env) {
	return func(t *testing.T, e *env) {
		members, err := e.Redis.HKeys(t.Context(), healPrefix+from).Result()
		if err != nil {
			members, err = e.Redis.ZRange(t.Context(), healPrefix+from, 0, -1).Result()
		}
		require.NoError(t, err)
		require.NotEmpty(t, members)
		for _, m := range members {
			var cmd []any
			for i, w := range words {
				if w == "%s" {
					w = m
				} else if i == 1 {
					w = healPrefix + w.(string)
				}
				cmd = append(cmd, w)
			}
			require.NoError(t, e.Redis.Do(t.Context(), cmd...).Err())
		}
	}
}

var breakages = map[string]breakage{
	"leases are missing":                 {do: edit("DEL", "leases"), healed: 3},
	"run entries are missing":            {do: edit("DEL", "runs")}, // their leases run out
	"leases and run entries are missing": {do: func(t *testing.T, e *env) { edit("DEL", "leases")(t, e); edit("DEL", "runs")(t, e) }, healed: 3},
	"run entries of nobody":              {do: edit("HSET", "runs", "1750000000000000-9223372036854775808", "1-x|0||"), lost: 1},
	"run entries of delayed jobs":        {do: eachMember("due", "HSET", "runs", "%s", "1-x|0||"), healed: 6},
	"records are missing":                {do: edit("DEL", "held"), lost: 6},
	"places of delayed jobs are missing": {do: edit("DEL", "due"), healed: 6},
	"places of nobody":                   {do: edit("ZADD", "due", 253402300799998, "1750000000000000-9223372036854775808"), lost: 1},
	"the index of the dead is missing":   {do: edit("DEL", "dead:index"), healed: 3},
	"an entry of the index is missing":   {do: func(t *testing.T, e *env) { dropOne(t, e) }, healed: 1},
	"the index names wrong entries":      {do: eachMember("dead:index", "HSET", "dead:index", "%s", "5-5"), healed: 3},
	"the index names entries of others":  {do: swapIndex, healed: 3},
	"post-mortems are missing":           {do: edit("DEL", "dead"), lost: 3},
	"a unique key is without its job":    {do: edit("SET", "unique:lone", "1750000000000000-9223372036854775808 d 0"), healed: 1},
	"meta is missing":                    {do: edit("DEL", "meta"), healed: 1},
	"the minutes are missing":            {do: edit("DEL", "minutes")},
	"the tokens are missing":             {do: edit("DEL", "wake")},
	"the workers are missing":            {do: func(t *testing.T, e *env) { edit("DEL", "workers")(t, e); edit("DEL", "workers:info")(t, e) }},
	"lanes are missing": {do: func(t *testing.T, e *env) {
		for _, key := range e.Mini.Keys() {
			if strings.Contains(key, ":lane:") {
				require.NoError(t, e.Redis.Del(t.Context(), key).Err())
			}
		}
	}},
}

func dropOne(t *testing.T, e *env) {
	first := e.Redis.HKeys(t.Context(), healPrefix+"dead:index").Val()[0]
	require.NoError(t, e.Redis.HDel(t.Context(), healPrefix+"dead:index", first).Err())
}

// swapIndex has each dead job's index name the entry of the next one.
func swapIndex(t *testing.T, e *env) {
	key := healPrefix + "dead:index"
	ids := e.Redis.HKeys(t.Context(), key).Val()
	places := e.Redis.HMGet(t.Context(), key, ids...).Val()
	for i, id := range ids {
		require.NoError(t, e.Redis.HSet(t.Context(), key, id, places[(i+1)%len(ids)]).Err())
	}
}

// Case 18, and self-healing: whatever was broken, running workers mend it in some
// minutes, count it, and say so once each; no job that is whole is lost, none runs
// beside itself, and Check finds nothing.
func TestRunningWorkersMendWhatWasBroken(t *testing.T) {
	t.Parallel()
	for name, b := range breakages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				ids := die(t, e, 3)
				q, ctx := e.Queue("mail"), t.Context()
				log := &notes{}
				c := e.NewClient(pawl.Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
				const workers = 2
				for range workers {
					w, err := pawl.NewWorker(c, pawl.WorkerConfig{Queues: pawl.Queues("mail"), Concurrency: 5, VisibilityTimeout: 10 * time.Second})
					require.NoError(t, err)
					pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
						if job.Args.N >= 3 || job.RawJob.Run > 0 && job.Crashes > 0 {
							return nil
						}
						select {
						case <-ctx.Done():
							return context.Cause(ctx)
						case <-time.After(5 * time.Minute):
							return nil
						}
					})
					e.Start(w)
				}
				for i := range 9 {
					var opts []pawl.Option
					if i >= 3 {
						opts = append(opts, pawl.Delay(15*time.Minute))
					}
					if i >= 6 {
						opts = append(opts, pawl.Priority(5))
					}
					_, err := q.Enqueue(ctx, note{i}, opts...)
					require.NoError(t, err)
				}
				e.Pass(5 * time.Second)
				before, err := q.Stats(ctx)
				require.NoError(t, err)
				require.EqualValues(t, []int64{3, 6, 3}, []int64{before.Running, before.Delayed, before.Dead})

				b.do(t, e)
				if b.healed == 1 && strings.HasPrefix(name, "a unique key") {
					made, err := q.Enqueue(ctx, note{100}, pawl.Unique{Key: "lone"})
					require.NoError(t, err)
					require.False(t, made.Duplicate)
				}
				e.Pass(4 * time.Minute)
				found, err := q.Check(ctx)
				require.NoError(t, err)
				require.Empty(t, found)
				s, err := q.Stats(ctx)
				require.NoError(t, err)
				require.Equal(t, []int64{b.lost, b.healed}, []int64{s.Total.Lost, s.Total.Healed})
				require.Equal(t, min(1, b.lost)*workers, int64(log.count(saidLost)))
				require.Equal(t, min(1, b.healed)*workers, int64(log.count(saidMended)))
				if !strings.HasPrefix(name, "post-mortems") {
					for _, id := range ids {
						_, err := q.Dead().Get(ctx, id)
						require.NoError(t, err)
					}
				}
				e.Pass(20 * time.Minute)
				s, err = q.Stats(ctx)
				require.NoError(t, err)
				require.Zero(t, s.Ready+s.Delayed+s.Running, "%+v", s)
				ended := map[string]bool{}
				for _, e := range e.Log.Of("done") {
					ended[e.Job.ID.String()] = true
				}
				want := 9
				if name == "records are missing" {
					want = 3
				} else if strings.HasPrefix(name, "a unique key") {
					want = 10
				}
				require.Len(t, ended, want, "each that was whole is done")
			})
		})
	}
}
