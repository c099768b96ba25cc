package pawl_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// keyWatch is what a server's MONITOR has told: script calls, and the commands
// inside each.
type keyWatch struct {
	t        *testing.T
	server   *redis.Client
	names    map[string]string // sha or text -> name
	declared []string          // of the script call before
	script   string
	scripts  map[string]int // calls by name
	inner    map[string]bool
	keysOf   map[string][]string // the keys of a command, as COMMAND GETKEYS says
}

// monitor is the lines of MONITOR, until end of a marker.
func monitor(t *testing.T, addr string) (until func(marker string) []string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Write([]byte("MONITOR\r\n"))
	require.NoError(t, err)
	r := bufio.NewReader(conn)
	ok, err := r.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "+OK\r\n", ok)
	return func(marker string) (lines []string) {
		for {
			line, err := r.ReadString('\n')
			require.NoError(t, err)
			if strings.Contains(line, marker) {
				return lines
			}
			lines = append(lines, line)
		}
	}
}

// split is the source and the words of a line: +1700000000.123456 [0 lua] "get" "k"
func split(t *testing.T, line string) (source string, words []string) {
	t.Helper()
	_, rest, _ := strings.Cut(line, "[")
	source, rest, ok := strings.Cut(rest, "] ")
	require.True(t, ok, line)
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		quoted, err := strconv.QuotedPrefix(rest)
		require.NoError(t, err, line)
		word, err := strconv.Unquote(quoted)
		require.NoError(t, err, line)
		words = append(words, word)
		rest = rest[len(quoted):]
	}
	return source, words
}

// take judges one line.
func (w *keyWatch) take(line string) {
	source, words := split(w.t, line)
	command := strings.ToLower(words[0])
	switch {
	case strings.HasSuffix(source, " lua"):
		w.inner[command] = true
		require.NotEmpty(w.t, w.script, "a command of a script that was not seen: %s", line)
		for _, key := range w.keys(words) {
			require.Contains(w.t, w.declared, key, "script %s touches a key that its call does not declare: %s", w.script, line)
		}
	case command == "evalsha" || command == "eval":
		n, err := strconv.Atoi(words[2])
		require.NoError(w.t, err)
		w.declared = words[3 : 3+n]
		w.script = w.names[words[1]]
		w.scripts[w.script]++
		tags := map[string]bool{}
		for _, key := range w.declared {
			tags[hashTag(key)] = true
		}
		require.Len(w.t, tags, 1, "the keys of one call are of one slot: %q", w.declared)
	}
}

// keys asks the server which of the words are keys.
func (w *keyWatch) keys(words []string) []string {
	if len(words) == 1 {
		return nil // TIME
	}
	text := strings.Join(words, "\x00")
	if keys, ok := w.keysOf[text]; ok {
		return keys
	}
	args := []any{"COMMAND", "GETKEYS"}
	for _, word := range words {
		args = append(args, word)
	}
	keys, err := w.server.Do(w.t.Context(), args...).StringSlice()
	if err != nil {
		require.ErrorContains(w.t, err, "no key arguments", "%q", words)
	}
	w.keysOf[text] = keys
	return keys
}

// hashTag is the part of a key that decides its slot.
func hashTag(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}

// Case 13. A proxy that routes by KEYS, or refuses what is not there, sees every
// key that a script touches. Each script is called in each of its uses; the server
// itself tells what they did.
func TestEveryKeyThatAScriptTouchesIsInItsCall(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := behindProxy(t, server, 0)
	until := monitor(t, server.Addr())
	everyVerb(t, f)
	require.NoError(t, f.Direct.Echo(t.Context(), "the end of it").Err())

	w := &keyWatch{t: t, server: server.Client(t), names: map[string]string{}, scripts: map[string]int{}, inner: map[string]bool{}, keysOf: map[string][]string{}}
	for name, body := range pawl.Scripts() {
		sha, err := w.server.ScriptLoad(t.Context(), body).Result()
		require.NoError(t, err)
		w.names[sha], w.names[body] = name, name
	}
	for _, line := range until("the end of it") {
		w.take(line)
	}
	for name := range pawl.Scripts() {
		require.Positive(t, w.scripts[name], "script %s was not called", name)
	}
	require.Greater(t, len(w.inner), 25, "commands: %v", w.inner)
	t.Logf("%d commands, calls by script: %v", len(w.inner), w.scripts)
}

func TestTheWatchSeesAKeyThatIsNotDeclared(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client(t)
	until := monitor(t, server.Addr())
	require.NoError(t, rdb.Eval(t.Context(), `redis.call('SET', KEYS[1] .. ':x', ARGV[1]) return 1`, []string{"a"}, "v").Err())
	require.NoError(t, rdb.Echo(t.Context(), "the end").Err())
	var words []string
	for _, line := range until(`"the end"`) {
		if source, w := split(t, line); strings.HasSuffix(source, " lua") {
			words = w
		}
	}
	w := &keyWatch{t: t, server: rdb, keysOf: map[string][]string{}}
	require.Equal(t, []string{"a:x"}, w.keys(words))
	require.Empty(t, w.keys([]string{"TIME"}))
	require.Equal(t, "q", hashTag("pawl:{q}:jobs"))
}

// everyVerb has each script called, and what it does for jobs of every sort.
func everyVerb(t *testing.T, f *faulty) {
	t.Helper()
	ctx := within(t, time.Minute)
	q := f.Queue("q")
	enqueue := func(n int, opts ...pawl.Option) pawl.ID {
		job, err := q.Enqueue(ctx, note{n}, opts...)
		require.NoError(t, err)
		return job.ID
	}
	started := pawl.Unique{Key: "started", Until: pawl.UntilStarted, For: time.Hour}
	for n := range 8 {
		enqueue(n)
	}
	enqueue(8, pawl.Priority(3))
	enqueue(9, pawl.Delay(time.Millisecond), pawl.Priority(4))
	enqueue(10, pawl.Unique{Key: "done"})
	enqueue(11, pawl.Unique{Key: "done"}) // a duplicate
	enqueue(0, started)
	enqueue(14, pawl.Idempotency{Key: "idem"})
	enqueue(15, pawl.Idempotency{Key: "idem"}) // skipped
	enqueue(16, pawl.Retain(time.Hour))
	enqueue(12, pawl.ExpireIn(time.Hour), pawl.Unique{Key: "long", For: time.Hour})
	cancelled := enqueue(0, pawl.Delay(time.Hour), pawl.Unique{Key: "cancelled"})
	moved := enqueue(0, pawl.Delay(time.Hour))
	long := enqueue(100)

	// What has lost its place by a hand edit is found again.
	keys := func(key string) string { return "pawl:{q}:" + key }
	enqueue(13, pawl.Delay(time.Hour))
	require.NoError(t, f.Direct.ZRemRangeByRank(ctx, keys("due"), -1, -1).Err())

	w := f.Worker("q", pawl.WorkerConfig{Concurrency: 4, VisibilityTimeout: 300 * time.Millisecond,
		Backoff: pawl.Backoff{Base: time.Millisecond, Jitter: pawl.JitterNone}})
	var handled runs
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
		first := handled.add(job.Args.N) == 1
		switch n := job.Args.N; {
		case n == 1 && first:
			return errors.New("again")
		case n == 2 && first:
			return pawl.Snooze(time.Millisecond)
		case n == 3:
			return pawl.Discard(errors.New("not wanted"))
		case n == 4 || n == 5 || n == 10 || n == 12:
			return pawl.Permanent(errors.New("no"))
		case n == 6 && first:
			// A lease without a job, by a hand edit.
			return f.Direct.ZAdd(context.WithoutCancel(ctx), keys("leases"), redis.Z{Score: 1, Member: "0-0"}).Err()
		case n == 100:
			if err := job.Progress(ctx, 50, "half"); err != nil {
				return err
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return nil
	})
	stop := f.Start(w)
	require.NoError(t, q.Cancel(ctx, cancelled))
	require.NoError(t, q.Reschedule(ctx, moved, time.Now().Add(2*time.Hour)))
	require.NoError(t, q.RunNow(ctx, moved))
	f.Log.Wait(t, "dead", 4)
	f.Log.Wait(t, "retry", 1)
	f.Log.Wait(t, "snoozed", 1)
	f.Log.Wait(t, "discarded", 1)
	redistest.Eventually(t, "the long one is all that is left", func(ctx context.Context) bool {
		s, err := q.Stats(ctx)
		return err == nil && s.Running == 1 && s.Ready+s.Delayed <= 1
	})
	extends := f.Proxy.Seen("extend", f.Proxy.Calls("extend")+1)
	<-extends
	require.NoError(t, q.Cancel(ctx, long)) // while it runs
	redistest.Eventually(t, "it is cancelled", func(context.Context) bool { return f.Total(t, "q").Cancelled == 2 })
	require.NoError(t, q.Pause(ctx, time.Hour))
	require.NoError(t, q.Resume(ctx))
	fireSome(t, ctx, q)
	shutdown(t, f, stop)
	behindOthers(t, ctx, f)
	look(t, ctx, f, q)
	redriveAndClear(t, ctx, f, q)
}

// fireSome has schedules come, fire and go.
func fireSome(t *testing.T, ctx context.Context, q *pawl.Queue) {
	t.Helper()
	every := pawl.Schedule{ID: "s", When: pawl.Every(time.Second), Args: note{20}, Overlap: pawl.OverlapSkip}
	require.NoError(t, q.Schedule(ctx, every, pawl.Schedule{ID: "other", When: pawl.Cron("0 0 1 1 *"), Args: note{21}}))
	redistest.Eventually(t, "it fires", func(ctx context.Context) bool {
		infos, err := q.Schedules(ctx)
		return err == nil && infos[1].Fired > 0
	})
	require.NoError(t, q.PauseSchedule(ctx, "s"))
	_, err := q.Trigger(ctx, "s")
	require.NoError(t, err)
	require.NoError(t, q.SyncSchedules(ctx, nil))
}

// shutdown gives a running job back.
func shutdown(t *testing.T, f *faulty, stop func() error) {
	t.Helper()
	require.NoError(t, stop())
	f.put(t, "q", 1)
	w := f.Worker("q", pawl.WorkerConfig{DrainTimeout: time.Millisecond})
	pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
		<-ctx.Done()
		return ctx.Err()
	})
	started := len(f.Log.Of("started"))
	stop = f.Start(w)
	f.Log.Wait(t, "started", started+1)
	var drained *pawl.DrainError
	require.ErrorAs(t, stop(), &drained)
}

// look calls all that only reads.
func look(t *testing.T, ctx context.Context, f *faulty, q *pawl.Queue) {
	t.Helper()
	for _, s := range []pawl.State{pawl.StateReady, pawl.StateDelayed, pawl.StateRunning} {
		for job, err := range q.List(ctx, s, pawl.Filter{}) {
			require.NoError(t, err)
			_, err = q.Get(ctx, job.ID)
			require.NoError(t, err)
		}
	}
	_, err := q.Dead().Groups(ctx)
	require.NoError(t, err)
	first := ""
	for job, err := range q.Dead().List(ctx, pawl.DeadFilter{}) {
		require.NoError(t, err)
		if first == "" || job.Position < first {
			first = job.Position
		}
	}
	for _, err := range q.Dead().Watch(ctx, first) {
		require.NoError(t, err)
		break
	}
	_, err = q.Minutes(ctx, time.Now().Add(-time.Hour), time.Now())
	require.NoError(t, err)
	_, err = f.Client.Workers(ctx)
	require.NoError(t, err)
	for job, err := range q.Dead().List(ctx, pawl.DeadFilter{}) {
		require.NoError(t, err)
		_, err = q.Wait(ctx, job.ID)
		require.ErrorAs(t, err, new(*pawl.JobError))
	}
	_, err = q.Check(ctx)
	require.NoError(t, err)
}

// redriveAndClear has the dead go each way, and then the queue.
func redriveAndClear(t *testing.T, ctx context.Context, f *faulty, q *pawl.Queue) {
	t.Helper()
	var dead []pawl.ID
	for job, err := range q.Dead().List(ctx, pawl.DeadFilter{}) {
		require.NoError(t, err)
		dead = append(dead, job.ID)
	}
	require.Len(t, dead, 4)
	_, err := q.Dead().RedriveAll(ctx, pawl.DeadFilter{}, pawl.Redrive{DryRun: true})
	require.NoError(t, err)
	_, err = q.Dead().Redrive(ctx, dead[0])
	require.NoError(t, err)
	require.NoError(t, q.Dead().RedriveWith(ctx, dead[1], note{7}))
	n, err := q.Dead().Delete(ctx, dead[2])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	report, err := q.Dead().RedriveAll(ctx, pawl.DeadFilter{}, pawl.Redrive{})
	require.NoError(t, err)
	require.Equal(t, 1, report.Moved)
	_, err = q.Enqueue(ctx, note{}, pawl.Delay(time.Hour), pawl.Unique{Key: "purged"})
	require.NoError(t, err)
	for _, s := range []pawl.State{pawl.StateReady, pawl.StateDelayed, pawl.StateDone} {
		_, err := q.Purge(ctx, s, pawl.Filter{})
		require.NoError(t, err)
	}
	_, err = q.Enqueue(ctx, note{}, pawl.Unique{Key: "left"})
	require.NoError(t, err)
	require.NoError(t, q.Destroy(ctx))
}
