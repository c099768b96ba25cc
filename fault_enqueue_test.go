package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// shapes are the forms in which jobs are enqueued, and how many each makes.
var shapes = map[string]struct {
	jobs    int
	options []pawl.Option
}{
	"one":      {1, nil},
	"many":     {3, nil},
	"unique":   {1, []pawl.Option{pawl.Unique{Key: "k"}}},
	"delayed":  {1, []pawl.Option{pawl.Delay(time.Hour)}},
	"priority": {1, []pawl.Option{pawl.Priority(3)}},
}

// N1, case 9. The client is one of go-redis as it is, which resends by itself.
func TestAnEnqueueWithALostAnswerIsOneJob(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for name, fault := range cuts {
		for shape, s := range shapes {
			t.Run(shape+": "+name, func(t *testing.T) {
				t.Parallel()
				f := behindProxy(t, server, 100*time.Millisecond)
				q := f.Queue(freshQueue())
				f.Proxy.On("enqueue", 1, fault)
				got, err := q.EnqueueMany(t.Context(), pawl.Items(make([]note, s.jobs), s.options...))
				require.NoError(t, err)
				if name != "the reply trickles" { // which comes in time, or does not
					require.GreaterOrEqual(t, f.Proxy.Calls("enqueue"), 2, "it is sent again")
				}
				_, err = q.Enqueue(t.Context(), note{}) // a newer call
				require.NoError(t, err)
				f.Proxy.Release()
				require.Equal(t, pawl.Counters{Enqueued: int64(s.jobs + 1)}, f.Total(t, q.Name()))
				for _, job := range got {
					require.False(t, job.Duplicate)
					_, err := f.past.Queue(q.Name()).Get(t.Context(), job.ID)
					require.NoError(t, err, "the first answer is the answer")
				}
			})
		}
	}
}

// N1.
func TestAnEnqueueThatIsNeverAnsweredIsUnconfirmed(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	q := f.Queue("q")
	f.Proxy.On("enqueue", 0, redistest.RunDropReply)
	_, err := q.Enqueue(within(t, 2*time.Second), note{})
	require.ErrorIs(t, err, pawl.ErrUnconfirmed)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, pawl.Counters{Enqueued: 1}, f.Total(t, "q"), "it ran many times, and made one job")
	require.Greater(t, f.Proxy.Calls("enqueue"), 2)
}

// N5.
func TestABlackHoleEndsAnEnqueueAtItsDeadline(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	q := f.Queue("q")
	_, err := q.Enqueue(t.Context(), note{}) // a connection to hang on
	require.NoError(t, err)
	f.Proxy.Blackhole(true)
	start := time.Now()
	_, err = q.Enqueue(within(t, 200*time.Millisecond), note{})
	require.ErrorIs(t, err, pawl.ErrUnconfirmed)
	require.Less(t, time.Since(start), 3*time.Second, "go-redis would wait 5 s")

	f.Proxy.Blackhole(false)
	_, err = q.Enqueue(within(t, 5*time.Second), note{})
	require.NoError(t, err)
	require.EqualValues(t, 2, f.Total(t, "q").Enqueued)
}

func TestAnEnqueueIntoAServerThatIsDownWasRefused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	e := newEnv(t, server.Client(t), nil)
	q := e.Queue("q")
	_, err := q.Enqueue(t.Context(), note{})
	require.NoError(t, err)
	server.Kill()
	deadlines := []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, time.Second, 0}
	errs := make(chan error, len(deadlines))
	for _, d := range deadlines {
		go func() {
			ctx := context.Background() // without a deadline: 5 s
			if d > 0 {
				ctx = within(t, d)
			}
			start := time.Now()
			_, err := q.Enqueue(ctx, note{})
			if took := time.Since(start); d == 0 && (took < 4*time.Second || took > 6*time.Second) {
				t.Errorf("an enqueue without a deadline took %v", took)
			}
			errs <- err
		}()
	}
	for range deadlines {
		err := <-errs
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, pawl.ErrUnconfirmed)
	}
	_, err = q.Enqueue(within(t, time.Second), note{})
	require.ErrorContains(t, err, "refused")
	server.Restart()
	_, err = q.Enqueue(t.Context(), note{})
	require.NoError(t, err)
	s, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, s.Ready, "what was refused is not enqueued when it comes back")
}

func TestRefusalsThatPassAreWaitedOutAndSayNoJobWasMade(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t, "--save", "3600 1000000"), 0)
	q := f.Queue("q")
	set := func(name, value string) { require.NoError(t, f.Direct.ConfigSet(t.Context(), name, value).Err()) }
	for _, c := range []struct {
		word      string
		make, end func()
	}{
		{"READONLY", func() { require.NoError(t, f.Direct.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err()) },
			func() { require.NoError(t, f.Direct.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err()) }},
		{"NOREPLICAS", func() { set("min-replicas-to-write", "1") }, func() { set("min-replicas-to-write", "0") }},
		{"MISCONF", func() { f.breakSaving(t) }, func() { set("stop-writes-on-bgsave-error", "no") }},
	} {
		c.make()
		var err error
		for i := range 10 { // the deadline may find an attempt under way, or none made
			_, err = q.Enqueue(within(t, time.Duration(i+1)*300*time.Millisecond), note{})
			if !errors.Is(err, pawl.ErrUnconfirmed) && strings.Contains(fmt.Sprint(err), c.word) {
				break
			}
		}
		require.ErrorIs(t, err, context.DeadlineExceeded, c.word)
		require.NotErrorIs(t, err, pawl.ErrUnconfirmed, c.word)
		require.ErrorContains(t, err, c.word)
		done := make(chan error)
		sent := f.Proxy.Seen("enqueue", f.Proxy.Calls("enqueue")+1)
		go func() {
			_, err := q.Enqueue(within(t, 10*time.Second), note{})
			done <- err
		}()
		<-sent
		c.end()
		require.NoError(t, <-done, c.word)
	}
	require.EqualValues(t, 3, f.Total(t, "q").Enqueued)
}

// breakSaving has a background save fail, so that Redis refuses to write.
func (f *faulty) breakSaving(t *testing.T) {
	t.Helper()
	require.NoError(t, os.RemoveAll(f.Server.Dir()))
	_ = f.Direct.BgSave(t.Context()).Err()
	redistest.Eventually(t, "the save fails", func(ctx context.Context) bool {
		info, _ := f.Direct.Info(ctx, "persistence").Result()
		return strings.Contains(info, "rdb_last_bgsave_status:err")
	})
}

func TestAFullRedisRefusesAtOnce(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	q := f.Queue("q")
	require.NoError(t, f.Direct.ConfigSet(t.Context(), "maxmemory", "1").Err())
	start := time.Now()
	_, err := q.Enqueue(t.Context(), note{})
	require.ErrorIs(t, err, pawl.ErrFull)
	require.Less(t, time.Since(start), time.Second)

	// The first attempt is under way still: it could arrive when there is room.
	f.Proxy.On("enqueue", f.Proxy.Calls("enqueue")+1, redistest.Late)
	_, err = q.Enqueue(t.Context(), note{})
	require.ErrorIs(t, err, pawl.ErrUnconfirmed)
	require.ErrorIs(t, err, pawl.ErrFull)
	require.NoError(t, f.Direct.ConfigSet(t.Context(), "maxmemory", "0").Err())
	f.Proxy.Release()
	require.LessOrEqual(t, f.Total(t, "q").Enqueued, int64(1))
}

// N7.
func TestAPoolThatRanDryRefuses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 1, PoolTimeout: 50 * time.Millisecond})
	t.Cleanup(func() { _ = rdb.Close() })
	e := newEnv(t, rdb, nil)
	q := e.Queue("q")
	held := rdb.Conn()
	require.NoError(t, held.Ping(t.Context()).Err())
	_, err := q.Enqueue(within(t, 200*time.Millisecond), note{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, pawl.ErrUnconfirmed)
	require.NoError(t, held.Close())
	_, err = q.Enqueue(within(t, 5*time.Second), note{})
	require.NoError(t, err)
	s, err := q.Stats(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, s.Ready)
}

func TestScriptsThatAreForgottenAreSentAgain(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	q := f.Queue("q")
	flushing, stop := context.WithCancel(t.Context())
	var flusher sync.WaitGroup
	flusher.Go(func() {
		for flushing.Err() == nil {
			_ = f.Direct.ScriptFlush(context.Background()).Err()
		}
	})
	var handled runs
	w := f.Worker("q", pawl.WorkerConfig{Concurrency: 5, Backoff: pawl.Backoff{Base: time.Millisecond, Jitter: pawl.JitterNone}})
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
		if handled.add(job.Args.N) == 1 {
			return errors.New("the first attempt fails")
		}
		return nil
	})
	end := f.Start(w)
	const jobs = 100
	var producers sync.WaitGroup
	for p := range 4 {
		producers.Go(func() {
			for i := range jobs / 4 {
				_, err := q.Enqueue(context.Background(), note{jobs/4*p + i})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	producers.Wait()
	f.Log.Wait(t, "done", jobs)
	stop()
	flusher.Wait()
	require.NoError(t, end())
	handled.each(t, jobs, 2)
	require.Equal(t, pawl.Counters{Enqueued: jobs, Started: 2 * jobs, Retried: jobs, Failed: jobs, Done: jobs}, f.Total(t, "q"))
}
