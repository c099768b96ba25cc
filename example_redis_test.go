package pawl_test

import (
	"context"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
)

// inMemory is a client of a Redis in this process, which stop ends, so that the
// examples need nothing but Go. A program gives pawl.New the client of the Redis
// that it has.
func inMemory() (client *pawl.Client, stop func()) {
	server := miniredis.NewMiniRedis()
	check(server.StartAddr("127.0.0.1:0"))
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	client = must(pawl.New(rdb, pawl.Config{}))
	return client, func() {
		_ = rdb.Close()
		server.Close()
	}
}

// worker is one that runs one job at a time, so that the output of an example is
// the same each time.
func worker(client *pawl.Client, queue string) *pawl.Worker {
	return must(pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues(queue), Concurrency: 1}))
}

// runFor runs w until n of its jobs have ended: done, dead or discarded. The
// client must have the hook ended.
func runFor(w *pawl.Worker, n int, ended endings) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		for range n {
			<-ended
		}
		stop()
	}()
	check(w.Run(ctx))
}

// endings is a hook that tells of each end of a job.
type endings chan struct{}

func (e endings) Done(context.Context, pawl.Event)      { e <- struct{}{} }
func (e endings) Discarded(context.Context, pawl.Event) { e <- struct{}{} }
func (e endings) Dead(context.Context, pawl.DeadEvent)  { e <- struct{}{} }

// watched is inMemory with the hook.
func watched() (client *pawl.Client, ended endings, stop func()) {
	server := miniredis.NewMiniRedis()
	check(server.StartAddr("127.0.0.1:0"))
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	ended = make(endings, 100)
	client = must(pawl.New(rdb, pawl.Config{Hooks: []pawl.Hook{ended}}))
	return client, ended, func() {
		_ = rdb.Close()
		server.Close()
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}
