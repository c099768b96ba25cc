package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// E5. Each right of the published user is explained, and needed by a script or by
// a call of the library.
func TestThePublishedUserHasNoRightTooMany(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/security.md")
	require.NoError(t, err)
	var explained []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(string(page), -1) {
		for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
			explained = append(explained, m[1])
		}
	}
	require.ElementsMatch(t, commandsOf("pawl"), explained, "the table explains each right once")

	var lua, code strings.Builder
	for pattern, into := range map[string]*strings.Builder{"lua/*.lua": &lua, "lua/lib/*.lua": &lua, "*.go": &code} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			into.Write(text)
		}
	}
	for _, command := range commandsOf("pawl") {
		inLua := strings.Contains(lua.String(), "call('"+strings.ToUpper(command)+"'")
		alone := regexp.MustCompile(`(?i)(\.` + command + `n?\((\w+\.)?(ctx|background\(\)), |"` + command + `", mark)`).MatchString(code.String())
		require.True(t, inLua || alone, "nothing sends %s", command)
	}
	for _, user := range []string{"pawl-worker", "pawl-producer"} {
		for _, rule := range published()[user] {
			require.Contains(t, published()["pawl"], rule)
		}
	}
}

// E5. Doctor names each right of the published user when that alone is missing,
// and finds nothing amiss when none is.
func TestDoctorNamesEachRightOfThePublishedUser(t *testing.T) {
	t.Parallel()
	s := sound(t)
	rdb := logIn(t, s, s.Addr(), 0)
	requireOK(t, findings(t, rdb)["rights"])
	for _, command := range commandsOf("pawl") {
		s.SetUser(t, "pawl", rules(t, "pawl", command)...)
		f := findings(t, rdb)["rights"]
		requireBad(t, f)
		require.Regexp(t, `(?i)(may not run `+command+`:|'`+command+`')`, f.Text)
	}
	for _, keys := range []string{"~pawl:queues", "~pawl:{doctor}:*"} {
		s.SetUser(t, "pawl", append(rules(t, "pawl", "~pawl:*"), keys)...)
		requireBad(t, findings(t, rdb)["rights"], "pawl:")
	}
}

// E5. Without INFO and CONFIG Doctor says what it does not know, and with the two
// rights of the page it knows all.
func TestDoctorAsThePublishedUser(t *testing.T) {
	t.Parallel()
	s := sound(t)
	rdb := logIn(t, s, s.Addr(), 0)
	for check, f := range findings(t, rdb) {
		if check == "pool" || check == "rights" {
			requireOK(t, f)
		} else {
			requireUnknown(t, f, "NOPERM")
		}
	}
	s.SetUser(t, "pawl", append(rules(t, "pawl"), "+info", "+config|get")...)
	for _, f := range findings(t, rdb) {
		requireOK(t, f)
	}
}

// E5. A worker warns at its start of each right that is missing, and of none when
// it has those of the page.
func TestAWorkerNamesAtItsStartEachRightThatIsMissing(t *testing.T) {
	t.Parallel()
	s := sound(t)
	e := newEnv(t, s.Client(t), nil)
	start := func(user string) (*warnings, func() error) {
		log := &warnings{Handler: slog.DiscardHandler, came: make(chan struct{}, 100)}
		c, err := pawl.New(clientAs(t, "pawl-worker", s.Addr(), 0, user), pawl.Config{Logger: slog.New(log)})
		require.NoError(t, err)
		w, err := pawl.NewWorker(c, pawl.WorkerConfig{Queues: pawl.Queues("q")})
		require.NoError(t, err)
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		return log, e.Start(w)
	}
	var stops []func() error
	for _, command := range commandsOf("pawl-worker") {
		s.SetUser(t, "without-"+command, rules(t, "pawl-worker", command)...)
		log, stop := start("without-" + command)
		select {
		case <-log.came:
		case <-within(t, time.Minute).Done():
			require.Fail(t, "nothing was said", "of "+command)
		}
		require.Equal(t, []string{"rights"}, log.of)
		require.Regexp(t, `(?i)(may not run `+command+`:|'`+command+`')`, log.text[0])
		stops = append(stops, stop)
	}
	for _, stop := range stops {
		go func() { _ = stop() }()
	}
	s.SetUser(t, "pawl-worker", rules(t, "pawl-worker")...)
	require.NoError(t, e.Redis.LPush(t.Context(), "pawl:{q}:stop:doctor", "token").Err())
	log, stop := start("pawl-worker")
	redistest.Eventually(t, "the last thing that is tried takes the token", func(ctx context.Context) bool {
		return e.Redis.Exists(ctx, "pawl:{q}:stop:doctor").Val() == 0
	})
	require.NoError(t, stop())
	require.Empty(t, log.of)
}

// E5. The worker and the producer of the page do all that a worker and a producer
// do, and are refused nothing.
func TestTheSmallerUsersDoTheirWork(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, user := range []string{"pawl-worker", "pawl-producer"} {
		s.SetUser(t, user, rules(t, user)...)
	}
	admin := s.Client(t)
	refusedNothing(t, admin)
	e := newEnv(t, admin, nil)
	worker, err := pawl.New(clientAs(t, "pawl-worker", s.Addr(), 0), pawl.Config{Hooks: []pawl.Hook{e.Log}})
	require.NoError(t, err)
	producer, err := pawl.New(clientAs(t, "pawl-producer", s.Addr(), 0), pawl.Config{})
	require.NoError(t, err)
	for _, opt := range everyWay() {
		_, err := producer.Queue("q").Enqueue(t.Context(), note{}, opt...)
		require.NoError(t, err)
	}
	e.Queue("q")
	w, err := pawl.NewWorker(worker, pawl.WorkerConfig{Queues: pawl.Queues("q")})
	require.NoError(t, err)
	pawl.Handle(w, endings(), pawl.Backoff{Steps: []time.Duration{time.Millisecond}}, pawl.MaxAttempts(2))
	e.Run(w, "dead", 1)
	require.Equal(t, int64(1), admin.SCard(t.Context(), "pawl:queues").Val())
}

// E5. Whichever right a producer lacks: an error that does not say ErrUnconfirmed
// means that nothing was enqueued, although Redis undoes nothing of a script that
// was cut short; and no error means that the job is there.
func TestAnEnqueueWithARightMissingTellsTheTruth(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	admin := s.Client(t)
	all := rules(t, "pawl-producer")
	for i, right := range all {
		if !strings.HasPrefix(right, "+") {
			continue
		}
		user := "without-" + right[1:]
		s.SetUser(t, user, slices.Delete(slices.Clone(all), i, i+1)...)
		c, err := pawl.New(clientAs(t, "pawl-producer", s.Addr(), 0, user), pawl.Config{Namespace: "pawl:" + user})
		require.NoError(t, err)
		for n, opts := range everyWay() {
			q := c.Queue(fmt.Sprintf("q%d", n))
			_, err := q.Enqueue(within(t, 10*time.Second), note{}, opts...)
			prefix := fmt.Sprintf("pawl:%s:{q%d}:", user, n)
			jobs := admin.XLen(t.Context(), prefix+"jobs").Val() + admin.HLen(t.Context(), prefix+"held").Val()
			switch {
			case err == nil:
				require.EqualValues(t, 1, jobs, "without %s", right)
			case !errors.Is(err, pawl.ErrUnconfirmed):
				require.Zero(t, jobs, "without %s: %v", right, err)
			}
		}
	}
}

// everyWay is the options of an enqueue, one of each kind.
func everyWay() [][]pawl.Option {
	return [][]pawl.Option{nil, {pawl.Delay(time.Millisecond)}, {pawl.Priority(7)}, {pawl.Unique{Key: "a", For: time.Minute}},
		{pawl.Unique{Key: "a", For: time.Minute}}, {pawl.Unique{Key: "b"}}}
}

// endings makes a handler that ends its jobs in turn as done, retried, snoozed and
// dead.
func endings() func(context.Context, *pawl.Job[note]) error {
	var n atomic.Int64
	return func(context.Context, *pawl.Job[note]) error {
		switch n.Add(1) % 4 {
		case 1:
			return errors.New("again")
		case 2:
			return pawl.Snooze(time.Millisecond)
		case 3:
			return pawl.Permanent(errors.New("never"))
		}
		return nil
	}
}

// E5. A right that is taken away while a worker runs loses no job, and none ends
// twice: the worker goes on when it is given back. PAWL_FAULTS_WHOLE takes each right.
func TestARightIsTakenAwayAndGivenBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := newEnv(t, s.Client(t), nil)
	var all sync.WaitGroup
	some := []string{"evalsha", "blpop", "time", "set", "hset", "hincrby", "zadd", "xdel"}
	for _, command := range sized(some, commandsOf("pawl-worker")) {
		all.Go(func() { withoutForAWhile(t, s, e, command) })
	}
	all.Wait()
}

func withoutForAWhile(t *testing.T, s *redistest.Server, e *env, command string) {
	user, q := "w-"+command, e.Client.Queue(command)
	s.SetUser(t, user, rules(t, "pawl-worker")...)
	c, err := pawl.New(clientAs(t, "pawl-worker", s.Addr(), 0, user), pawl.Config{})
	assert.NoError(t, err)
	const jobs = 12
	for i := range jobs {
		_, err := q.Enqueue(t.Context(), note{i}, pawl.Unique{Key: fmt.Sprint(i)})
		assert.NoError(t, err)
	}
	w, err := pawl.NewWorker(c, pawl.WorkerConfig{Queues: pawl.Queues(command), Concurrency: 4, VisibilityTimeout: 2 * time.Second})
	assert.NoError(t, err)
	var y runs
	end := endings()
	pawl.Handle(w, func(ctx context.Context, j *pawl.Job[note]) error {
		if j.Args.N == 5 && y.add(5) == 1 {
			s.SetUser(t, user, rules(t, "pawl-worker", command)...)
		}
		return end(ctx, j)
	}, pawl.MaxAttempts(100), pawl.Backoff{Steps: []time.Duration{time.Millisecond}})
	stop := e.Start(w)
	var over bool
	redistest.Eventually(t, command+" is missed, or is not needed here", func(ctx context.Context) bool {
		over = ended(ctx, q) == jobs
		return over || strings.Contains(fmt.Sprint(e.Redis.Do(ctx, "acl", "log").Val()), user)
	})
	s.SetUser(t, user, rules(t, "pawl-worker")...)
	back := time.Now()
	redistest.Eventually(t, command+" is there again, and all jobs end", func(ctx context.Context) bool { return ended(ctx, q) == jobs })
	if !over {
		measured(t, "E5", "all jobs had ended, "+command+" given back", time.Since(back))
	}
	assert.NoError(t, stop())
	stats, err := q.Stats(context.Background())
	assert.NoError(t, err)
	assert.EqualValues(t, jobs, stats.Total.Enqueued, command)
	assert.LessOrEqual(t, stats.Total.Done+stats.Total.Dead, int64(jobs), "%s: none ends twice: %+v", command, stats)
	// The page says what is left over where a script is cut short at its end.
	if !slices.Contains([]string{"del", "hdel", "hincrby", "hset"}, command) {
		assert.EqualValues(t, jobs, stats.Total.Done+stats.Total.Dead, "%s: each ends once: %+v", command, stats)
		found, err := q.Check(context.Background())
		assert.NoError(t, err)
		assert.Empty(t, found, command)
	}
	for i := range jobs { // which takes over a key whose job is over
		again, err := q.Enqueue(context.Background(), note{i}, pawl.Unique{Key: fmt.Sprint(i)})
		assert.NoError(t, err)
		assert.False(t, again.Duplicate, command)
	}
}

// ended is how many jobs of the queue are not alive any more.
func ended(ctx context.Context, q *pawl.Queue) int64 {
	s, err := q.Stats(ctx)
	if err != nil {
		return -1
	}
	return s.Total.Enqueued - s.Ready - s.Delayed - s.Running
}
