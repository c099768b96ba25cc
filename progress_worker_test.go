package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/record"
)

// tellers counts the commands that carry progress, and the values in them.
type tellers struct{ calls, values atomic.Int64 }

func (c *tellers) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *tellers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		n := int64(0)
		for _, arg := range cmd.Args() {
			if text, ok := arg.(string); ok && strings.HasPrefix(text, " ") {
				n++
			}
		}
		err := next(ctx, cmd)
		if n > 0 && (err == nil || !strings.HasPrefix(err.Error(), "NOSCRIPT")) {
			c.calls.Add(1)
			c.values.Add(n)
		}
		return err
	}
}
func (c *tellers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// held runs a worker whose one job has its handler do what do says, and returns
// when that is done; free ends the handler, with an error if it is given one.
func held(t *testing.T, e *env, cfg pawl.WorkerConfig, do func(ctx context.Context, job *pawl.Job[note]), opts ...pawl.Option) (id pawl.ID, free func(error)) {
	t.Helper()
	done, end := make(chan struct{}), make(chan error, 1)
	w := e.Worker("mail", cfg)
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
		do(ctx, job)
		close(done)
		return <-end
	})
	enqueued, err := e.Queue("mail").Enqueue(t.Context(), note{}, opts...)
	require.NoError(t, err)
	e.Start(w)
	t.Cleanup(func() { // if the test has failed
		select {
		case end <- nil:
		default:
		}
	})
	<-done
	return enqueued.ID, func(err error) { end <- err }
}

func TestProgressIsSeenWhileTheJobRuns(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		const said = "5 of 8 | größer\x00\n"
		id, free := held(t, e, pawl.WorkerConfig{}, func(ctx context.Context, job *pawl.Job[note]) {
			require.NoError(t, job.Progress(ctx, 62.5, said))
		})
		q := e.Queue("mail")
		info, err := q.Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, []any{pawl.StateRunning, 62.5, said}, []any{info.State, info.Percent, info.Note})
		for info, err := range q.List(t.Context(), pawl.StateRunning, pawl.Filter{}) {
			require.NoError(t, err)
			require.Equal(t, []any{62.5, said}, []any{info.Percent, info.Note})
		}
		free(nil)
		e.Log.Wait(t, "done", 1)
		require.Zero(t, e.Redis.Exists(t.Context(), "pawl:{mail}:runs").Val())
	})
}

func TestAPostMortemHasTheProgressOfItsRun(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		id, free := held(t, e, pawl.WorkerConfig{}, func(ctx context.Context, job *pawl.Job[note]) {
			require.NoError(t, job.Progress(ctx, 10, "first"))
			require.NoError(t, job.Progress(ctx, 20.25, "second")) // too soon to be sent
		})
		free(pawl.Permanent(errors.New("no")))
		e.Log.Wait(t, "dead", 1)
		ctx, q := t.Context(), e.Queue("mail")
		dead, err := q.Dead().Get(ctx, id)
		require.NoError(t, err)
		require.Equal(t, []any{20.25, "second"}, []any{dead.Percent, dead.Note})

		require.NoError(t, q.Pause(ctx, pawl.Forever))
		_, err = q.Dead().Redrive(ctx, id)
		require.NoError(t, err)
		for _, body := range e.Redis.HGetAll(ctx, "pawl:{mail}:held").Val() {
			rec, err := record.Decode([]byte(body))
			require.NoError(t, err)
			require.Nil(t, rec.Progress, "a job that is alive has none in its record")
		}
	})
}

// What took its workers down says how far it had come.
func TestThePostMortemOfACrashHasTheProgressBeforeIt(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		fill(t, e, 1, "mail")
		ctx := t.Context()
		entry := e.Redis.XRange(ctx, "pawl:{mail}:jobs", "-", "+").Val()[0].ID
		require.NoError(t, e.Redis.ZAdd(ctx, "pawl:{mail}:leases", redis.Z{Score: 1000, Member: entry}).Err())
		require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:runs", entry, "1-x|2|r| 63 row 7\xff8").Err())
		require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:meta", "cursor", entry).Err())
		w := e.Worker("mail", pawl.WorkerConfig{MaxCrashes: 3})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		job := e.Run(w, "dead", 1)[0].Job
		dead, err := e.Queue("mail").Dead().Get(ctx, job.ID)
		require.NoError(t, err)
		require.Equal(t, []any{pawl.ReasonCrashed, 63.0, "row 7|8"}, []any{dead.Reason, dead.Percent, dead.Note})
	})
}

// Nothing is said yet of a run whose predecessor crashed: what that told is shown.
func TestTheProgressOfACrashedRunIsSeenUntilTheNextTells(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		fill(t, e, 1, "mail")
		ctx := t.Context()
		entry := e.Redis.XRange(ctx, "pawl:{mail}:jobs", "-", "+").Val()[0].ID
		require.NoError(t, e.Redis.ZAdd(ctx, "pawl:{mail}:leases", redis.Z{Score: 1000, Member: entry}).Err())
		require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:runs", entry, "1-x|0|| 63 then").Err())
		require.NoError(t, e.Redis.HSet(ctx, "pawl:{mail}:meta", "cursor", entry).Err())
		seen := func(id pawl.ID) string {
			info, err := e.Queue("mail").Get(ctx, id)
			require.NoError(t, err)
			return fmt.Sprint(info.Percent, info.Note)
		}
		var texts []string
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
			texts = append(texts, seen(job.ID))
			require.NoError(t, job.Progress(ctx, 1, "now"))
			texts = append(texts, seen(job.ID))
			return nil
		})
		e.Run(w, "done", 1)
		require.Equal(t, []string{"63then", "1now"}, texts)
	})
}

func TestProgressIsSentOnceASecond(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		var sent tellers
		e.Redis.AddHook(&sent)
		began := time.Now()
		id, free := held(t, e, pawl.WorkerConfig{}, func(ctx context.Context, job *pawl.Job[note]) {
			for i := range 1000 {
				for j := range 100 {
					require.NoError(t, job.Progress(ctx, float64(i)/10, fmt.Sprint(j)))
				}
				<-time.After(10 * time.Millisecond)
				if i%100 == 99 {
					info, err := e.Queue("mail").Get(ctx, job.ID)
					require.NoError(t, err)
					require.InDelta(t, float64(i)/10, info.Percent, 10.1, "what is shown is a second old at most")
				}
			}
		})
		require.WithinDuration(t, began.Add(10*time.Second), time.Now(), time.Second, "100,000 calls in ten seconds")
		require.LessOrEqual(t, sent.calls.Load(), int64(11))
		require.GreaterOrEqual(t, sent.calls.Load(), int64(9))
		e.Pass(time.Second)
		info, err := e.Queue("mail").Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, "99.9 99", fmt.Sprint(info.Percent, " ", info.Note), "the newest is sent though no other came")
		last := sent.calls.Load()
		e.Pass(time.Minute)
		require.Equal(t, last, sent.calls.Load())
		free(nil)
		e.Log.Wait(t, "done", 1)
	})
}

func TestProgressThatIsAsBeforeIsNotSent(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		var sent tellers
		e.Redis.AddHook(&sent)
		_, free := held(t, e, pawl.WorkerConfig{}, func(ctx context.Context, job *pawl.Job[note]) {
			for range 10 {
				require.NoError(t, job.Progress(ctx, 50, "half"))
				<-time.After(3 * time.Second)
			}
			require.NoError(t, job.Progress(ctx, 60, "more"))
			require.NoError(t, job.Progress(ctx, 50, "half")) // not worth a third
			require.NoError(t, job.Progress(ctx, 60, "more"))
			<-time.After(3 * time.Second)
		})
		free(nil)
		e.Log.Wait(t, "done", 1)
		require.EqualValues(t, 2, sent.calls.Load())
	})
}

// All runs of a queue that tell at one time share calls.
func TestTheProgressOfManyRunsSharesCalls(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		var sent tellers
		e.App.AddHook(&sent)
		const jobs = 200
		fill(t, e, jobs, "mail")
		w := e.Worker("mail", pawl.WorkerConfig{Concurrency: jobs})
		var all sync.WaitGroup
		all.Add(jobs)
		pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
			all.Done()
			all.Wait()
			return job.Progress(ctx, 50, "half")
		})
		e.Run(w, "done", jobs)
		require.EqualValues(t, jobs, sent.values.Load())
		require.Less(t, sent.calls.Load(), int64(jobs/2))
	})
}

func TestProgressRefusesWhatIsNoPercentage(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		_, free := held(t, e, pawl.WorkerConfig{}, func(ctx context.Context, job *pawl.Job[note]) {
			for _, percent := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -0.1, 100.0001, math.MaxFloat64} {
				require.ErrorIs(t, job.Progress(ctx, percent, ""), pawl.ErrInvalid, "%v", percent)
				require.ErrorIs(t, new(pawl.RawJob).Progress(ctx, percent, ""), pawl.ErrInvalid)
			}
			for _, percent := range []float64{math.Copysign(0, -1), 100, math.SmallestNonzeroFloat64} {
				require.NoError(t, job.Progress(ctx, percent, ""))
				require.NoError(t, new(pawl.RawJob).Progress(ctx, percent, ""), "a literal")
			}
		})
		free(nil)
		e.Log.Wait(t, "done", 1)
	})
}

func TestANoteIsCut(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		texts := []struct{ said, want string }{
			{strings.Repeat("x", 5000), strings.Repeat("x", 1024)},
			{strings.Repeat("é", 600), strings.Repeat("é", 512)},
			{strings.Repeat("€", 600), strings.Repeat("€", 341)},
			{"a\xffb\xe9", "a?b?"},
			{strings.Repeat("|", 2000), strings.Repeat("|", 1024)},
			{" ", " "},
			{"", ""},
		}
		fill(t, e, len(texts), "mail")
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
			require.NoError(t, job.Progress(ctx, 5, texts[job.Args.N].said))
			return pawl.Permanent(errors.New(fmt.Sprint(job.Args.N)))
		})
		e.Run(w, "dead", len(texts))
		for dead, err := range e.Queue("mail").Dead().List(t.Context(), pawl.DeadFilter{}) {
			require.NoError(t, err)
			n, err := strconv.Atoi(dead.Error)
			require.NoError(t, err)
			require.Equal(t, texts[n].want, dead.Note)
		}
	})
}
