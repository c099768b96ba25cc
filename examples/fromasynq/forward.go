package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hibiken/asynq"

	"github.com/pawlq/pawl"
)

const (
	// page is how many tasks are moved by one call.
	page = 100
	// remembered is how long pawl knows a task that was moved. Whoever forwards again
	// within it adds nothing twice.
	remembered = 7 * 24 * time.Hour
)

// forwarder moves the tasks that wait in a queue of asynq into one of pawl: pending,
// scheduled and to be retried.
type forwarder struct {
	from *asynq.Inspector
	to   *pawl.Queue
	// enqueued is called when a page is in pawl and not yet gone from asynq. Tests
	// have the forwarder die there; nil does nothing.
	enqueued func() error
}

// forward moves all that waits in the asynq queue, and returns how many tasks those were.
// The queue is paused from then on, so that no server of asynq takes what is about to be
// moved. It may be called again at any time, also after a crash: a task that is in pawl
// already is not added again, only removed from asynq.
//
// Tasks that run, that are archived or in a group are left where they are. One that pawl
// refuses is archived, and counts as moved.
func (f *forwarder) forward(ctx context.Context, queue string) (moved int, err error) {
	// asynq has no error of its own for a queue that is paused already.
	if err := f.from.PauseQueue(queue); err != nil && !strings.Contains(err.Error(), "already paused") {
		return 0, err
	}
	// In this order, since asynq moves tasks from the first two to the third.
	for _, list := range []func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error){
		f.from.ListScheduledTasks, f.from.ListRetryTasks, f.from.ListPendingTasks,
	} {
		for {
			tasks, err := list(queue, asynq.PageSize(page))
			if err != nil {
				return moved, err
			}
			if len(tasks) == 0 {
				break
			}
			if err := f.move(ctx, queue, tasks); err != nil {
				return moved, err
			}
			moved += len(tasks)
		}
	}
	return moved, nil
}

// region fromasynq

// move has the tasks in pawl before they are gone from asynq: in between they are in both,
// and never in none.
func (f *forwarder) move(ctx context.Context, queue string, tasks []*asynq.TaskInfo) error {
	items := make([]pawl.Item, len(tasks))
	for i, task := range tasks {
		items[i] = pawl.Item{Args: pawl.Raw{Name: task.Type, Payload: task.Payload}, Options: options(queue, task)}
	}
	_, err := f.to.EnqueueMany(ctx, items)
	switch {
	case errors.Is(err, pawl.ErrInvalid) && len(tasks) == 1:
		// asynq takes what pawl does not: a type of more than 255 bytes, say. It stays
		// where it can be looked at, and is in nobody's way.
		return f.from.ArchiveTask(queue, tasks[0].ID)
	case errors.Is(err, pawl.ErrInvalid):
		for i := range tasks {
			if err := f.move(ctx, queue, tasks[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	case err != nil:
		return fmt.Errorf("nothing of this page has left asynq: %w", err)
	}
	if f.enqueued != nil {
		if err := f.enqueued(); err != nil {
			return err
		}
	}
	for _, task := range tasks {
		if err := f.from.DeleteTask(queue, task.ID); err != nil && !errors.Is(err, asynq.ErrTaskNotFound) {
			return err
		}
	}
	return nil
}

// options are what is known of a task in asynq, as pawl has it.
func options(queue string, task *asynq.TaskInfo) []pawl.Option {
	opts := []pawl.Option{
		pawl.Unique{Key: pawl.Key("asynq", queue, task.ID), For: remembered},
		// MaxRetry does not count the first attempt. Those that failed are not made again.
		pawl.MaxAttempts(max(1, task.MaxRetry+1-task.Retried)),
	}
	if time.Until(task.NextProcessAt) > 0 {
		opts = append(opts, pawl.At(task.NextProcessAt))
	}
	if task.Timeout > 0 {
		opts = append(opts, pawl.Timeout(task.Timeout))
	}
	if !task.Deadline.IsZero() {
		opts = append(opts, pawl.ExpireIn(max(time.Millisecond, time.Until(task.Deadline))))
	}
	if task.Retention > 0 {
		opts = append(opts, pawl.Retain(task.Retention))
	}
	for key, value := range task.Headers {
		opts = append(opts, pawl.Header{Key: key, Value: value})
	}
	return opts
}

// endregion
