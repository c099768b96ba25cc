package main

import (
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
)

// worker ships orders, in the parent's process. It is not killed; examples/payments has
// a handler that is.
type worker struct {
	stop func() error

	mu    sync.Mutex
	times map[int]int // each order was shipped
}

func startWorker(ctx context.Context, p place) (*worker, error) {
	opts, err := redis.ParseURL(p.Redis)
	if err != nil {
		return nil, err
	}
	rdb := redis.NewClient(opts)
	client, err := pawl.New(rdb, pawl.Config{Namespace: p.Namespace})
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	runner, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues(queue)})
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	w := &worker{times: map[int]int{}}
	pawl.Handle(runner, w.ship)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	w.stop = sync.OnceValue(func() error {
		cancel()
		return errors.Join(<-ended, rdb.Close())
	})
	return w, nil
}

func (w *worker) ship(_ context.Context, job *pawl.Job[Ship]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.times[job.Args.Order]++
	return nil
}

// shipments is how often each order was shipped.
func (w *worker) shipments() map[int]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.times)
}
