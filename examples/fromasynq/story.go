package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
)

const (
	waiting = 250
	later   = 30
	failed  = 5
)

// region fromasynq-kind

// Welcome is the job. Its kind is the type that the tasks have in asynq, and its fields
// are those of their JSON: so the handler runs old tasks and new jobs alike.
type Welcome struct {
	User string `json:"user"`
}

func (Welcome) Kind() string { return "email:welcome" }

// endregion

type story struct {
	rdb       *redis.Client
	old       string // the queue of asynq
	asynq     *asynq.Client
	client    *pawl.Client
	queue     *pawl.Queue
	forwarder forwarder

	mu   sync.Mutex
	ran  map[string]int // by user
	done chan struct{}  // a job has
}

// before is the past: some tasks have failed once, others wait, or wait for their time.
func (s *story) before(ctx context.Context) error {
	if err := s.fail(ctx); err != nil {
		return err
	}
	for i := range waiting {
		if err := s.add(ctx, fmt.Sprint("waiting-", i)); err != nil {
			return err
		}
	}
	for i := range later {
		if err := s.add(ctx, fmt.Sprint("later-", i), asynq.ProcessIn(2*time.Second), asynq.Timeout(10*time.Second)); err != nil {
			return err
		}
	}
	fmt.Printf("In asynq %d tasks wait, %d of which for their time and %d for their next attempt.\n", waiting+later+failed, later, failed)
	return nil
}

func (s *story) add(ctx context.Context, user string, opts ...asynq.Option) error {
	payload, err := json.Marshal(Welcome{user})
	if err != nil {
		return err
	}
	_, err = s.asynq.EnqueueContext(ctx, asynq.NewTask(Welcome{}.Kind(), payload), append(opts, asynq.Queue(s.old), asynq.MaxRetry(4))...)
	return err
}

// fail has a server of asynq try some tasks, and fail.
func (s *story) fail(ctx context.Context) error {
	for i := range failed {
		if err := s.add(ctx, fmt.Sprint("failed-", i)); err != nil {
			return err
		}
	}
	tried := make(chan struct{}, failed)
	server := asynq.NewServerFromRedisClient(s.rdb, asynq.Config{Queues: map[string]int{s.old: 1}, LogLevel: asynq.FatalLevel,
		TaskCheckInterval: 10 * time.Millisecond,
		RetryDelayFunc:    func(int, error, *asynq.Task) time.Duration { return time.Hour },
		ErrorHandler:      asynq.ErrorHandlerFunc(func(context.Context, *asynq.Task, error) { tried <- struct{}{} })})
	if err := server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return errors.New("the mail server is away") })); err != nil {
		return err
	}
	defer server.Shutdown()
	return await(ctx, tried, failed)
}

// await returns when a channel has said something so many times.
func await(ctx context.Context, said <-chan struct{}, times int) error {
	for range times {
		select {
		case <-said:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

var errKilled = errors.New("killed")

// cutShort is a forwarder that dies at the worst moment: a page is in both.
func (s *story) cutShort(ctx context.Context) error {
	pages := 0
	s.forwarder.enqueued = func() error {
		if pages++; pages == 3 {
			return errKilled
		}
		return nil
	}
	moved, err := s.forwarder.forward(ctx, s.old)
	if !errors.Is(err, errKilled) {
		return fmt.Errorf("the forwarder was to die, not %w", err)
	}
	stats, err := s.queue.Stats(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("The forwarder has moved %d and dies with others in both: pawl has %d.\n", moved, stats.Ready+stats.Delayed)
	return nil
}

func (s *story) again(ctx context.Context) error {
	s.forwarder.enqueued = nil
	moved, err := s.forwarder.forward(ctx, s.old)
	if err != nil {
		return err
	}
	stats, err := s.queue.Stats(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("It is started again and moves %d; %d of them were there already. pawl has %d, %d of them for later.\n",
		moved, stats.Total.Duplicate, stats.Ready+stats.Delayed, stats.Delayed)
	return nil
}

// after has a worker run them all. Who waits for a next attempt in an hour need not.
func (s *story) after(ctx context.Context) error {
	w, err := pawl.NewWorker(s.client, pawl.WorkerConfig{Queues: pawl.Queues(s.queue.Name())})
	if err != nil {
		return err
	}
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Welcome]) error {
		s.mu.Lock()
		s.ran[job.Args.User]++
		s.mu.Unlock()
		s.done <- struct{}{}
		return nil
	})
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for info, err := range s.queue.List(ctx, pawl.StateDelayed, pawl.Filter{}) {
		if err != nil {
			return err
		}
		if time.Until(info.DueAt) < time.Minute {
			continue
		}
		if err := s.queue.RunNow(ctx, info.ID); err != nil {
			return err
		}
	}
	all := await(ctx, s.done, waiting+later+failed)
	stop()
	if err := errors.Join(all, <-ended); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	twice := 0
	for _, n := range s.ran {
		if n > 1 {
			twice++
		}
	}
	fmt.Printf("A worker of pawl has run %d tasks, %d of them twice.\n", len(s.ran), twice)
	if len(s.ran) != waiting+later+failed || twice > 0 {
		return errors.New("that is not what was enqueued")
	}
	return nil
}

// clean removes what asynq has of its queue.
func (s *story) clean() error {
	if err := s.forwarder.from.DeleteQueue(s.old, true); err != nil && !errors.Is(err, asynq.ErrQueueNotFound) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	left := s.rdb.Scan(ctx, 0, "asynq:{"+s.old+"}:*", 1000).Iterator() // counters
	for left.Next(ctx) {
		if err := s.rdb.Unlink(ctx, left.Val()).Err(); err != nil {
			return err
		}
	}
	return left.Err()
}
