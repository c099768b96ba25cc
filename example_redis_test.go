package pawl_test

import (
	"context"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
)

// memory is a Redis in this process and a client of it, so that the examples
// need nothing but Go. A program gives pawl.New the Redis client that it has.
type memory struct {
	*pawl.Client
	rdb   *redis.Client
	stop  func()
	ended chan struct{} // a signal for each job that has ended
}

// inMemory starts one. It lasts until stop is called.
func inMemory() *memory {
	server := miniredis.NewMiniRedis()
	mustNil(server.StartAddr("127.0.0.1:0"))
	m := &memory{rdb: redis.NewClient(&redis.Options{Addr: server.Addr()}), ended: make(chan struct{}, 100)}
	m.stop = func() {
		_ = m.rdb.Close()
		server.Close()
	}
	m.Client = must(pawl.New(m.rdb, pawl.Config{Hooks: []pawl.Hook{m}}))
	return m
}

// worker is one that runs one job at a time, so that an example prints the same
// each time.
func (m *memory) worker(queue string) *pawl.Worker {
	return must(pawl.NewWorker(m.Client, pawl.WorkerConfig{Queues: pawl.Queues(queue), Concurrency: 1}))
}

// run runs w until n jobs have ended: done, skipped, dead or discarded.
func (m *memory) run(w *pawl.Worker, n int) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for range n {
			<-m.ended
		}
		cancel()
	}()
	mustNil(w.Run(ctx))
}

// These make memory a pawl.Hook.

func (m *memory) Done(context.Context, pawl.Event)      { m.ended <- struct{}{} }
func (m *memory) Skipped(context.Context, pawl.Event)   { m.ended <- struct{}{} }
func (m *memory) Discarded(context.Context, pawl.Event) { m.ended <- struct{}{} }
func (m *memory) Dead(context.Context, pawl.DeadEvent)  { m.ended <- struct{}{} }

func must[T any](v T, err error) T {
	mustNil(err)
	return v
}

func mustNil(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
