package pawl_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// beginWait begins a wait and returns a function that waits for what it returned.
func beginWait(q *pawl.Queue, ctx context.Context, id pawl.ID) (result func() (pawl.JobInfo, error)) {
	type end struct {
		info pawl.JobInfo
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		info, err := q.Wait(ctx, id)
		ended <- end{info, err}
	}()
	return func() (pawl.JobInfo, error) { e := <-ended; return e.info, e.err }
}

// 10,000 wait for 10,000 jobs: each hears of its own, by some hundred calls and over a
// connection that listens and one that asks.
func TestTenThousandWaits(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		const jobs = 10_000
		ctx := within(t, 2*time.Minute)
		waits := redis.NewClient(&redis.Options{Addr: e.Redis.Options().Addr, PoolSize: 100})
		t.Cleanup(func() { _ = waits.Close() })
		var looks lookers
		waits.AddHook(&looks)
		c, err := pawl.New(waits, pawl.Config{})
		require.NoError(t, err)
		e.Queue("mail")
		enqueued, err := e.Client.Queue("mail").EnqueueMany(ctx, pawl.Items(make([]note, jobs), retained))
		require.NoError(t, err)
		began := time.Now()
		var waiting sync.WaitGroup
		for _, job := range enqueued {
			waiting.Go(func() {
				info, err := c.Queue("mail").Wait(ctx, job.ID)
				if err != nil || info.ID != job.ID || info.State != pawl.StateDone {
					t.Errorf("%s: %v %v", job.ID, info, err)
				}
			})
		}
		listens(t, e)
		w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 200})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Start(w)
		waiting.Wait()
		t.Logf("%d waits, in %v, took %d calls for %d ids", jobs, time.Since(began), looks.calls.Load(), looks.ids.Load())
		require.Less(t, looks.calls.Load(), int64(900))
		stats := waits.PoolStats()
		require.LessOrEqual(t, stats.TotalConns, uint32(2))
		require.EqualValues(t, 1, stats.PubSubStats.Created)
	})
}

// P1. Redis dies and comes back while somebody waits: the wait goes on, and is told.
func TestAWaitOutlivesARestart(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	e := newEnv(t, s.Client(t), nil)
	q, ctx := e.Queue("mail"), within(t, time.Minute)
	id, free := held(t, e, pawl.WorkerConfig{}, func(context.Context, *pawl.Job[note]) {}, retained)
	result := beginWait(q, ctx, id)
	listens(t, e)
	s.Kill()
	s.Restart()
	up := time.Now()
	listens(t, e)
	measured(t, "P1 wait", "it listens again", time.Since(up))
	free(nil)
	info, err := result()
	require.NoError(t, err)
	require.Equal(t, pawl.StateDone, info.State)
}

// P1. Redis stays away: the wait ends with its context, and says what is the matter.
func TestAWaitDuringAnOutageEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 200*time.Millisecond)
	job := f.put(t, "mail", 1)[0]
	q := f.Queue("mail")
	long := within(t, time.Minute)
	result := beginWait(q, long, job.ID)
	listens(t, f.env)
	f.Proxy.Blackhole(true)
	short := within(t, 3*time.Second)
	began := time.Now()
	_, err := q.Wait(short, job.ID)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), 4*time.Second)
	require.Regexp(t, "wait mail: context deadline exceeded: .*(timeout|EOF|closed)", err.Error())
	f.Proxy.Blackhole(false)
	require.NoError(t, f.past.Queue("mail").Cancel(long, job.ID))
	_, err = result()
	require.ErrorIs(t, err, pawl.ErrNotFound, "and the other one is told, once Redis is back")
}

// E8. The connection that listens is killed: what ends until it is back is found by
// looking, and then it listens again.
func TestAWaitOutlivesTheLossOfItsSubscription(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), within(t, time.Minute)
		gate := make(chan struct{})
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { <-gate; return nil })
		e.Start(w)
		for range 5 {
			job, err := q.Enqueue(ctx, note{}, retained)
			require.NoError(t, err)
			result := beginWait(q, ctx, job.ID)
			listens(t, e)
			require.NoError(t, e.Redis.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub").Err())
			began := time.Now()
			gate <- struct{}{}
			_, err = result()
			require.NoError(t, err)
			measured(t, "E8 wait", "a job that ended as the subscription was lost is told", time.Since(began))
		}
		job, err := q.Enqueue(ctx, note{}, retained)
		require.NoError(t, err)
		result := beginWait(q, ctx, job.ID)
		listens(t, e)
		require.NoError(t, e.Redis.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub").Err())
		listens(t, e)
		gate <- struct{}{}
		_, err = result()
		require.NoError(t, err)
	})
}

// E8. CLIENT PAUSE and a server that stands still: the wait goes on.
func TestAWaitOutlivesAPause(t *testing.T) {
	t.Parallel()
	onRedis(t, func(t *testing.T, e *env) {
		q, ctx := e.Queue("mail"), within(t, time.Minute)
		id, free := held(t, e, pawl.WorkerConfig{}, func(context.Context, *pawl.Job[note]) {}, retained)
		result := beginWait(q, ctx, id)
		listens(t, e)
		require.NoError(t, e.Redis.Do(ctx, "CLIENT", "PAUSE", 3000, "ALL").Err())
		free(nil)
		_, err := result()
		require.NoError(t, err)
	})
}

// E5. A user who may not subscribe waits all the same; it is logged once.
func TestAWaitWithoutTheRightToSubscribe(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	e := newEnv(t, s.Client(t), nil)
	for name, user := range map[string][]string{"without the command": rules(t, "pawl", "subscribe"), "without the channels": rules(t, "pawl", "&pawl:*")} {
		s.SetUser(t, "pawl", user...)
		log := new(logLines)
		c, err := pawl.New(clientAs(t, "pawl", s.Addr(), 0), pawl.Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
		require.NoError(t, err)
		q, ctx := c.Queue("mail"), within(t, time.Minute)
		e.Queue("mail")
		w, err := pawl.NewWorker(e.Client, pawl.WorkerConfig{Queues: pawl.Queues("mail")})
		require.NoError(t, err)
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		stop := e.Start(w)
		for range 3 {
			job, err := e.Client.Queue("mail").Enqueue(ctx, note{}, retained, pawl.Delay(300*time.Millisecond))
			require.NoError(t, err)
			_, err = q.Wait(ctx, job.ID)
			require.NoError(t, err, name)
		}
		require.NoError(t, stop())
		require.Len(t, log.all(), 1, name)
		require.Regexp(t, "SUBSCRIBE is refused.*NOPERM", log.all()[0])
	}
}

// logLines is a log that many write.
type logLines struct {
	mu   sync.Mutex
	text []string
}

func (l *logLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(line))
	return len(line), nil
}

func (l *logLines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.text)
}

// A wait that Redis will never answer ends with what it said.
func TestAWaitThatCanNeverBeAnsweredEnds(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		ctx := within(t, time.Minute)
		job, err := e.Client.Queue("bad").Enqueue(ctx, note{})
		require.NoError(t, err)
		require.NoError(t, e.Redis.Set(ctx, "pawl:{bad}:dead:index", "x", 0).Err())
		_, err = e.Client.Queue("bad").Wait(ctx, job.ID)
		require.ErrorContains(t, err, "WRONGTYPE")
		require.False(t, errors.Is(err, pawl.ErrNotFound))
	})
}
