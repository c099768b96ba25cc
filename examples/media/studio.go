package main

import (
	"context"

	"github.com/pawlq/pawl"
)

// studio is the program: in production its producer and its workers would be
// different processes that share a Redis and a blob store.
type studio struct {
	client  *pawl.Client
	queue   *pawl.Queue
	journal *journal
	store   *store
	tmp     string // for scratch files
}

// worker is one that runs. stop has it drain, waits, and gives the error of Run.
type worker struct {
	name   string
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

func (s *studio) start(ctx context.Context, name string) (*worker, error) {
	w, err := pawl.NewWorker(s.client, pawl.WorkerConfig{
		Queues:            pawl.Queues("media"),
		Name:              name,
		VisibilityTimeout: visibility,
		DrainTimeout:      drain,
		Middleware:        []pawl.Middleware{s.journal.endings},
	})
	if err != nil {
		return nil, err
	}
	pawl.Handle(w, s.transcode)
	ctx, cancel := context.WithCancel(ctx)
	running := &worker{name: name, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(running.ended)
		running.err = w.Run(ctx)
	}()
	return running, nil
}

func (w *worker) stop() error {
	w.cancel()
	<-w.ended
	return w.err
}

func (s *studio) enqueue(ctx context.Context, video string, parts int, opts ...pawl.Option) (pawl.ID, error) {
	// Before, since a worker may be quicker than the answer.
	s.journal.line("enqueue", video, "%d parts of %v", parts, partTime)
	job, err := s.queue.Enqueue(ctx, Transcode{Video: video, Parts: parts}, opts...)
	return job.ID, err
}
