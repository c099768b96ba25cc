package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawltest"
)

// computed are the files whose Examples print the tables of docs/retries.md.
var computed = []string{"example_retries_doc_test.go", "example_retries_run_test.go"}

// ofRuns is the header of the table that TestWhatSpendsAnAttempt computes.
const ofRuns = "| what happened | attempt spent | crashes counted | the job comes again |"

func retriesPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("docs/retries.md")
	require.NoError(t, err)
	return string(text)
}

// TestTheTablesOfTheRetriesPageAreComputed holds each row of the page against
// the output of an Example, which go test compares with what it prints.
func TestTheTablesOfTheRetriesPageAreComputed(t *testing.T) {
	t.Parallel()
	printed := map[string]bool{}
	for _, file := range computed {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(source)) {
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), "// | "); ok {
				printed["| "+text] = true
			}
		}
	}
	require.NotEmpty(t, printed)

	shown := map[string]bool{}
	for _, table := range tables(retriesPage(t)) {
		if table[0] == ofRuns {
			continue
		}
		for _, row := range table[2:] {
			shown[row] = true
			if !printed[row] {
				t.Errorf("docs/retries.md: no Example prints this row:\n%s", row)
			}
		}
	}
	for row := range printed {
		if !shown[row] {
			t.Errorf("docs/retries.md: this row, which an Example prints, is not on the page:\n%s", row)
		}
	}
}

// tables is the lines of each table: header, rule, rows.
func tables(markdown string) (all [][]string) {
	inTable := false
	for line := range strings.Lines(markdown) {
		line = strings.TrimSpace(line)
		isRow := strings.HasPrefix(line, "|")
		switch {
		case isRow && !inTable:
			all = append(all, []string{line})
		case isRow:
			all[len(all)-1] = append(all[len(all)-1], line)
		}
		inTable = isRow
	}
	return all
}

// story is what happens to the first run of a job.
type story struct {
	what  string
	first func(s *stage) error // in the handler
	play  func(s *stage)       // all of the first run; nil: a drain of one worker
}

// stage is where a story plays.
type stage struct {
	*pawltest.Env
	ctx    context.Context // of the handler
	worker *pawl.Worker    // the first
	stop   context.CancelFunc
}

var errFailed = errors.New("failed")

func untilItsContextEnds(s *stage) error {
	<-s.ctx.Done()
	return context.Cause(s.ctx)
}

var stories = []story{
	{"an error, or a panic", func(*stage) error { panic(errFailed) }, nil},
	{"`RetryAfter`", func(*stage) error { return pawl.RetryAfter(time.Minute, errFailed) }, nil},
	{"its `Timeout` was over", untilItsContextEnds, nil},
	{"`Snooze`", func(*stage) error { return pawl.Snooze(time.Hour) }, nil},
	{"its worker was shut down", func(s *stage) error { s.stop(); return untilItsContextEnds(s) }, func(s *stage) {
		ctx, stop := context.WithCancel(context.Background())
		s.stop = stop
		err := s.worker.Run(ctx)
		if late, ok := errors.AsType[*pawl.DrainError](err); !ok || len(late.Released) != 1 {
			panic(fmt.Sprint("not released: ", err))
		}
	}},
	{"its worker knows no handler for it", nil, func(s *stage) {
		other := must(pawl.NewWorker(s.Client, pawl.WorkerConfig{Queues: pawl.Queues("q")}))
		pawl.Handle(other, func(context.Context, *pawl.Job[Welcome]) error { return nil })
		s.DrainReady(other)
	}},
	{"its worker died", func(s *stage) error { s.Crash(s.worker); return errFailed }, nil},
	{"its lease was lost", untilItsContextEnds, func(s *stage) {
		s.Start(s.worker)
		s.Advance(time.Second)
		// As if the worker had been silent for too long.
		mustNil(s.Redis.ZAdd(context.Background(), "pawl:{q}:leases", redis.Z{Score: 1, Member: leaseMember(s)}).Err())
	}},
}

// leaseMember is the only job that is leased.
func leaseMember(s *stage) string {
	return must(s.Redis.ZRange(context.Background(), "pawl:{q}:leases", 0, 0).Result())[0]
}

func TestWhatSpendsAnAttempt(t *testing.T) {
	t.Parallel()
	var table []string
	for _, rows := range tables(retriesPage(t)) {
		if rows[0] == ofRuns {
			table = rows[2:]
		}
	}
	require.Len(t, table, len(stories))
	for i, s := range stories {
		t.Run(s.what, func(t *testing.T) {
			t.Parallel()
			attempts, crashes := live(t, s)
			row := fmt.Sprintf("| %s | %s | %d | ", s.what, []string{"no", "yes"}[attempts], crashes)
			require.True(t, strings.HasPrefix(table[i], row), "%s\nis on the page, and came to\n%s", table[i], row)
		})
	}
}

// live has a job live through the story, and then run again in another worker:
// so many attempts were spent by then, and so many crashes counted.
func live(t *testing.T, told story) (attempts, crashes int) {
	pawltest.Run(t, func(t *testing.T, env *pawltest.Env) {
		s := &stage{Env: env}
		var runs atomic.Int32
		worker := func() *pawl.Worker {
			w := must(pawl.NewWorker(env.Client, pawl.WorkerConfig{Queues: pawl.Queues("q"), Concurrency: 1}))
			pawl.Handle(w, func(ctx context.Context, job *pawl.Job[plain]) error {
				if runs.Add(1) == 1 && told.first != nil {
					s.ctx = ctx
					return told.first(s)
				}
				attempts, crashes = job.Attempt-1, job.Crashes
				return nil
			}, pawl.Timeout(time.Minute))
			return w
		}
		must(env.Client.Queue("q").Enqueue(t.Context(), plain{}))
		s.worker = worker()
		if told.play != nil {
			told.play(s)
		} else {
			env.Drain(s.worker)
		}
		env.Drain(worker())
		require.EqualValues(t, 1, must(env.Client.Queue("q").Stats(t.Context())).Total.Done)
	})
	return attempts, crashes
}
