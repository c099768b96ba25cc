package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// victim is a worker process of a test that kills it, freezes it or sends it
// SIGTERM. It tells on its standard output what happens.
type victim struct {
	Addr, Queue       string
	Visibility, Drain time.Duration
	Concurrency       int
	Do                string // what its handlers do: see deeds
	Took              time.Duration
	HoldStart         bool // the hook Started never returns
	Second            bool // a second SIGTERM is not caught
	Silent            bool // it does not tell: the test does not read
}

// run starts the worker and returns when it serves.
func (v victim) run(t *testing.T) *process {
	t.Helper()
	words, err := json.Marshal(v)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=victim %s", childEnv, words), "GORACE=atexit_sleep_ms=10")
	return spawn(t, cmd)
}

// deeds are handlers. Those that end by themselves say how.
var deeds = map[string]func(context.Context, victim, *redis.Client, int) error{
	"nothing": func(context.Context, victim, *redis.Client, int) error { return nil },
	"fail":    func(context.Context, victim, *redis.Client, int) error { return errors.New("failed") },
	"give up": func(context.Context, victim, *redis.Client, int) error { return pawl.Permanent(errors.New("no")) },
	"exit":    func(context.Context, victim, *redis.Client, int) error { os.Exit(3); return nil },
	"heed":    func(ctx context.Context, _ victim, _ *redis.Client, _ int) error { <-ctx.Done(); return ctx.Err() },
	"ignore":  ignore,
	"tell": func(ctx context.Context, v victim, rdb *redis.Client, n int) error {
		job, _ := pawl.FromContext(ctx)
		_ = job.Progress(ctx, 50, "half")
		return ignore(ctx, v, rdb, n)
	},
	"work": func(ctx context.Context, v victim, _ *redis.Client, _ int) error {
		select {
		case <-time.After(v.Took):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	},
	"effect": func(ctx context.Context, v victim, rdb *redis.Client, n int) error {
		return rdb.HIncrBy(ctx, effects(v.Queue), fmt.Sprint(n), 1).Err()
	},
	"follow": func(ctx context.Context, v victim, rdb *redis.Client, n int) error {
		job, _ := pawl.FromContext(ctx)
		follows(job, n, "other")
		return rdb.HIncrBy(ctx, effects(v.Queue), fmt.Sprint(n), 1).Err()
	},
	"follow, then wait": func(ctx context.Context, _ victim, _ *redis.Client, n int) error {
		job, _ := pawl.FromContext(ctx)
		follows(job, n, "other")
		fmt.Println("effect", n)
		<-ctx.Done()
		return ctx.Err()
	},
	"effect, then wait": func(ctx context.Context, v victim, rdb *redis.Client, n int) error {
		if err := rdb.HIncrBy(ctx, effects(v.Queue), fmt.Sprint(n), 1).Err(); err != nil {
			return err
		}
		fmt.Println("effect", n)
		<-ctx.Done()
		return ctx.Err()
	},
}

func ignore(ctx context.Context, _ victim, _ *redis.Client, _ int) error {
	<-ctx.Done()
	fmt.Println("cause", context.Cause(ctx))
	select {}
}

// effects is the key outside of pawl's where handlers count what they did.
func effects(queue string) string { return "effects:" + queue }

func beVictim(words string) {
	var v victim
	if err := json.Unmarshal([]byte(words), &v); err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: v.Addr, PoolSize: 64})
	cfg := pawl.Config{}
	if !v.Silent {
		cfg.Hooks = []pawl.Hook{crier{}}
	}
	if v.HoldStart {
		cfg.Hooks = append(cfg.Hooks, startHolder{})
	}
	c, err := pawl.New(rdb, cfg)
	if err != nil {
		panic(err)
	}
	w, err := pawl.NewWorker(c, pawl.WorkerConfig{Queues: pawl.Queues(v.Queue), VisibilityTimeout: v.Visibility,
		DrainTimeout: v.Drain, Concurrency: v.Concurrency,
		Backoff: pawl.Backoff{Base: time.Hour, Max: time.Hour, Jitter: pawl.JitterNone}})
	if err != nil {
		panic(err)
	}
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
		return deeds[v.Do](ctx, v, rdb, job.Args.N)
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() {
		if v.Second {
			stop()
		}
		fmt.Println("told to end")
	})
	fmt.Println("run", w.Run(ctx))
}

// crier is a hook that tells.
type crier struct{}

func (crier) Started(_ context.Context, e pawl.Event)    { fmt.Println("started", e.Job.ID) }
func (crier) Done(_ context.Context, e pawl.Event)       { fmt.Println("done", e.Job.ID) }
func (crier) Retry(_ context.Context, e pawl.RetryEvent) { fmt.Println("retry", e.Job.ID) }
func (crier) Dead(_ context.Context, e pawl.DeadEvent)   { fmt.Println("dead", e.Job.ID) }
func (crier) Released(_ context.Context, e pawl.Event)   { fmt.Println("released", e.Job.ID) }
func (crier) LeaseLost(_ context.Context, e pawl.Event)  { fmt.Println("lost", e.Err) }

// startHolder keeps a job between its lease and its handler.
type startHolder struct{}

func (startHolder) Started(context.Context, pawl.Event) { select {} }
