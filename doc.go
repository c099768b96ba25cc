// Package pawl is a job queue that lives in your program and keeps its jobs in
// the Redis you already run.
//
// # The guarantee
//
// At-least-once delivery; at most one current lease per job, fenced; an effect
// once where the handler uses an idempotency key with the system it changes.
//
// A job whose Enqueue returned no error runs until it is done, dead, discarded,
// cancelled or expired. It may run twice: when a worker dies after the effect
// and before Redis knows of it, or loses its lease. A worker whose lease is no
// longer current cannot settle the job. docs/guarantees.md has every case, and
// what each rests on.
//
// # Enqueue
//
// A job is a type that names its kind.
//
//	type Welcome struct {
//		UserID int64 `json:"user_id"`
//	}
//
//	func (Welcome) Kind() string { return "welcome" } // stored with each job; finds its handler
//
//	func signUp(ctx context.Context, client *pawl.Client, userID int64) error {
//		_, err := client.Queue("emails").Enqueue(ctx, Welcome{UserID: userID})
//		return err // nothing was enqueued, unless it is pawl.ErrUnconfirmed
//	}
//
// The client is made once, by New, from the go-redis client of the program.
//
// # Run
//
//	func serve(ctx context.Context, client *pawl.Client) error {
//		w, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("emails"), Concurrency: 50})
//		if err != nil {
//			return err
//		}
//		pawl.Handle(w, sendWelcome)
//		return w.Run(ctx) // until ctx ends; then running jobs may finish
//	}
//
//	func sendWelcome(ctx context.Context, job *pawl.Job[Welcome]) error {
//		return mail(ctx, job.Args.UserID, job.IdempotencyKey()) // nil: done; an error: tried again
//	}
//
// # Outcomes
//
// What a handler returns decides what becomes of its job.
//
//	func charge(ctx context.Context, job *pawl.Job[Charge]) error {
//		err := pay(ctx, job.Args.Order, job.IdempotencyKey())
//		if busy, ok := errors.AsType[*busyError](err); ok {
//			return pawl.RetryAfter(busy.After, err) // instead of what the policy says
//		}
//		switch {
//		case errors.Is(err, errDeclined):
//			return pawl.Permanent(err) // dead now, with its post-mortem
//		case errors.Is(err, errClosed):
//			return pawl.Snooze(time.Hour) // not its turn yet: no attempt is spent
//		case errors.Is(err, errPaid):
//			return pawl.Discard(err) // gone, and counted
//		}
//		return err // nil: done. Another error, or a panic: tried again by policy
//	}
//
// # Work over time
//
// A Schedule enqueues a job again and again; Retain keeps a job that is over with its
// result; Await waits for it; Progress tells how far it is; Then enqueues what follows.
//
//	// export is a job that takes a while, has a result, and is followed by another job.
//	func export(ctx context.Context, job *pawl.Job[Export]) (string, error) {
//		if err := job.Progress(ctx, 50, "half of "+job.Args.Table); err != nil { // seen by Get
//			return "", err
//		}
//		file := job.Args.Table + ".csv"
//		job.Then(Publish{File: file}) // enqueued if, and only if, this job is done
//		return file, nil              // kept, if the job was enqueued with Retain
//	}
//
//	// nightly is called at each start, by each process: it is one schedule all the same.
//	func nightly(ctx context.Context, q *pawl.Queue) error {
//		return q.Schedule(ctx, pawl.Schedule{
//			ID:   "nightly",
//			When: pawl.CronIn("Europe/Berlin", "30 2 * * *"), // or pawl.Every(2 * time.Second)
//			Args: Export{Table: "orders"},
//		})
//	}
//
//	// exportNow waits for the file until ctx ends.
//	func exportNow(ctx context.Context, q *pawl.Queue, table string) (string, error) {
//		job, err := q.Enqueue(ctx, Export{Table: table}, pawl.Retain(time.Hour))
//		if err != nil {
//			return "", err
//		}
//		return pawl.Await[string](ctx, q, job.ID)
//	}
//
// Queue.Canary sends a job through the queue every so often, to alarm on.
//
// # Test
//
// A literal is enough to call a handler. Package pawltest runs handlers on the
// real engine, in memory, under a fake clock.
//
//	func TestSendWelcome(t *testing.T) {
//		t.Parallel()
//		job := &pawl.Job[Welcome]{Args: Welcome{UserID: 42}}
//		require.NoError(t, sendWelcome(t.Context(), job))
//	}
//
// # Words of other systems
//
//   - visibility timeout (SQS): asynq's lease duration, BullMQ's lock duration.
//     It bounds how long the crash of a worker goes unnoticed, not how long a
//     job runs: a live worker renews its leases.
//   - crashed, [OnCrashed]: BullMQ's stalled, asynq's lease expired, River's
//     rescued, Sidekiq's orphaned.
//   - settle, done: ack, complete, SQS's DeleteMessage.
//   - [DeadLetters]: asynq's archived tasks, BullMQ's failed set, River's
//     discarded jobs, Sidekiq's dead set.
//   - [DeadLetters.Redrive]: asynq's RunTask, BullMQ's and Sidekiq's retry of a
//     dead job, SQS's redrive.
//   - [Permanent]: asynq's SkipRetry, BullMQ's UnrecoverableError, River's
//     JobCancel.
//   - [Discard]: asynq's RevokeTask.
//   - [Snooze]: River's JobSnooze, BullMQ's moveToDelayed.
//   - [RetryAfter]: asynq's RetryDelayFunc, for one error.
//   - [Unique]: asynq's Unique and TaskID, River's UniqueOpts, BullMQ's
//     deduplication, Sidekiq Enterprise's unique jobs, SQS's deduplication id.
//   - [ReplaceWaiting]: debounce; BullMQ's deduplication with replace and extend.
//   - [RunLatestAfter]: coalescing, "one running, one pending".
//   - [MaxAttempts]: asynq's MaxRetry and Sidekiq's retry count retries, which
//     is one less.
//   - [Delay], [At]: asynq's ProcessIn and ProcessAt, River's ScheduledAt,
//     Sidekiq's perform_in and perform_at.
//   - [Schedule]: asynq's Scheduler and PeriodicTaskManager, BullMQ's job scheduler,
//     River's PeriodicJob, Sidekiq Enterprise's periodic jobs. Its tick is what
//     others call a firing, an occurrence or a fire time.
//   - [Retain], HandleResult: asynq's Retention and ResultWriter, BullMQ's
//     removeOnComplete and return value.
//   - [Queue.Wait], [Await]: BullMQ's waitUntilFinished.
//   - RawJob.Progress: BullMQ's updateProgress.
//   - [Then], RawJob.Then: a follow-up; Celery's link and chain. A BullMQ flow, whose
//     parent waits for its children, is another thing, and is not there.
//   - [Args], kind: asynq's task type, BullMQ's job name, Sidekiq's worker class.
//   - [Handle]: asynq's ServeMux, River's AddWorker.
//   - [Queues], [Weights]: the queues map of asynq's Config. For its
//     StrictPriority set WorkerConfig.Strict and give the order by
//     Queues("first", "second"), not by Weights.
//   - WorkerConfig.DrainTimeout: asynq's ShutdownTimeout, Sidekiq's timeout.
//
// # Where to read on
//
// docs/guarantees.md: what is promised, and on which conditions.
// docs/testing.md: how to test code that enqueues and code that handles.
// docs/retries.md: how retries work, and how to choose them and the timeouts.
// docs/dead-letters.md: what to do about dead jobs.
// docs/scheduling.md: recurring jobs, missed times, overlaps, deploys; the canary.
// docs/results.md: what is kept of a job that is over. docs/waiting.md: waiting for one,
// behind HTTP too. docs/progress.md: how far a job is. docs/follow-ups.md: chains of jobs.
// docs/operations.md: what to call on the first bad day.
// docs/performance.md: where the time goes.
// docs/failure-modes.md: what breaks, what pawl does then, and the test of each.
// docs/security.md: the Redis user that it needs, and no more.
// docs/storage.md: what lies in Redis, and how another language enqueues.
// docs/design.md: how it works inside, and why. The examples folder has programs
// to run; quickstart is the first.
package pawl
