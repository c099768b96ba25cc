package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl"
)

// with is a client of m that tells a hook too.
func (m *memory) with(hook pawl.Hook) *pawl.Client {
	return must(pawl.New(m.rdb, pawl.Config{Hooks: []pawl.Hook{hook, m}}))
}

// producer sees each enqueue of this process.
type producer struct{}

var _ pawl.OnEnqueued = producer{}

func (producer) Enqueued(_ context.Context, e pawl.EnqueuedEvent) {
	fmt.Println(e.Queue, e.Kind, "duplicate:", e.Duplicate, "failed:", e.Err != nil, "timed:", e.Took > 0)
}

func ExampleOnEnqueued() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	payments := m.with(producer{}).Queue("payments")

	must(payments.Enqueue(ctx, Charge{Order: 7}, pawl.Unique{}))
	must(payments.Enqueue(ctx, Charge{Order: 7}, pawl.Unique{}))
	_, err := payments.Enqueue(ctx, Charge{Order: 7}, pawl.Unique{OnDuplicate: pawl.RejectDuplicate})
	fmt.Println(errors.Is(err, pawl.ErrDuplicate))
	// Output:
	// payments charge duplicate: false failed: false timed: true
	// payments charge duplicate: true failed: false timed: true
	// payments charge duplicate: true failed: true timed: true
	// true
}

// times measures: Wait is what the job lay ready, Took what the handler needed.
type times struct{}

var (
	_ pawl.OnStarted = times{}
	_ pawl.OnDone    = times{}
)

func (times) Started(_ context.Context, e pawl.Event) {
	fmt.Println(e.Job.Kind, "starts; it waited:", e.Wait >= 0)
}

func (times) Done(_ context.Context, e pawl.Event) {
	fmt.Println(e.Job.Kind, "is done; it took:", e.Took > 0)
}

func ExampleOnDone() {
	m := inMemory()
	defer m.stop()
	client := m.with(times{})
	must(client.Queue("emails").Enqueue(context.Background(), Welcome{UserID: 42}))

	w := must(pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("emails")}))
	pawl.Handle(w, sendWelcome)
	m.run(w, 1)
	// Output:
	// welcome starts; it waited: true
	// welcome, user 42
	// welcome is done; it took: true
}

// verdicts sees what becomes of a run that did not end in nil.
type verdicts struct{}

var (
	_ pawl.OnRetry     = verdicts{}
	_ pawl.OnSnoozed   = verdicts{}
	_ pawl.OnDiscarded = verdicts{}
	_ pawl.OnDead      = verdicts{}
)

func (verdicts) Retry(_ context.Context, e pawl.RetryEvent) {
	fmt.Printf("retry after %v: %v\n", e.Delay, e.Err)
}

func (verdicts) Snoozed(_ context.Context, e pawl.RetryEvent) {
	fmt.Printf("snoozed for %v in attempt %d\n", e.Delay, e.Job.Attempt)
}

func (verdicts) Discarded(_ context.Context, e pawl.Event) { fmt.Println("discarded:", e.Err) }

func (verdicts) Dead(_ context.Context, e pawl.DeadEvent) {
	fmt.Printf("dead, %s: %v\n", e.Reason, e.Err)
}

func ExampleOnRetry() {
	m := inMemory()
	defer m.stop()
	client := m.with(verdicts{})
	must(client.Queue("payments").Enqueue(context.Background(), Charge{Order: 7}))
	must(client.Queue("payments").Enqueue(context.Background(), Charge{Order: 8}))

	w := must(pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("payments"), Concurrency: 1}))
	answers := []error{pawl.RetryAfter(0, errors.New("busy")), pawl.Snooze(0), pawl.Permanent(errDeclined)}
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[Charge]) error {
		if job.Args.Order == 8 {
			return pawl.Discard(errPaid)
		}
		answer := answers[0]
		answers = answers[1:]
		return answer
	})
	m.run(w, 2)
	// Unordered output:
	// retry after 0s: busy
	// snoozed for 0s in attempt 2
	// dead, permanent: card declined
	// discarded: paid already
}

// handover hears of jobs that a stopping worker gives back.
type handover struct{}

var _ pawl.OnReleased = handover{}

func (handover) Released(_ context.Context, e pawl.Event) {
	fmt.Println("given back:", e.Job.Kind, "attempt", e.Job.Attempt)
}

func ExampleOnReleased() {
	m := inMemory()
	defer m.stop()
	ctx, stop := context.WithCancel(context.Background())
	client := m.with(handover{})
	emails := client.Queue("emails")
	must(emails.Enqueue(ctx, Welcome{UserID: 42}))

	w := must(pawl.NewWorker(client, pawl.WorkerConfig{
		Queues:       pawl.Queues("emails"),
		DrainTimeout: time.Millisecond,
	}))
	pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[Welcome]) error {
		stop()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	err := w.Run(ctx)
	stats := must(emails.Stats(context.Background()))
	fmt.Println(err != nil, stats.Ready, "ready,", stats.Total.Failed, "failed")
	// Output:
	// given back: welcome attempt 1
	// true 1 ready, 0 failed
}

// deaf hears of handlers that do not heed their contexts.
type deaf chan pawl.Event

var _ pawl.OnStuck = deaf(nil)

func (d deaf) Stuck(_ context.Context, e pawl.Event) { d <- e }

func ExampleOnStuck() {
	m := inMemory()
	defer m.stop()
	stuck := make(deaf, 1)
	client := m.with(stuck)
	must(client.Queue("emails").Enqueue(context.Background(), Welcome{UserID: 42}))

	w := must(pawl.NewWorker(client, pawl.WorkerConfig{
		Queues:     pawl.Queues("emails"),
		Timeout:    time.Millisecond,
		StuckAfter: time.Millisecond,
	}))
	pawl.Handle(w, func(context.Context, *pawl.Job[Welcome]) error {
		e := <-stuck // it could have been ctx.Done()
		fmt.Println(e.Job.Kind, "is stuck:", e.Err)
		return nil
	})
	m.run(w, 1)
	// Output: welcome is stuck: pawl: timeout
}

// trouble hears of what goes wrong around the handlers.
type trouble struct{ outages, losses, crashes chan string }

func newTrouble() trouble {
	return trouble{make(chan string, 10), make(chan string, 10), make(chan string, 10)}
}

var (
	_ pawl.OnOutage    = trouble{}
	_ pawl.OnLeaseLost = trouble{}
	_ pawl.OnCrashed   = trouble{}
)

func (t trouble) Outage(_ context.Context, err error) {
	if err != nil {
		t.outages <- "Redis is away"
	}
}

func (t trouble) LeaseLost(_ context.Context, e pawl.Event) { t.losses <- "lost " + e.Job.Kind }

func (t trouble) Crashed(_ context.Context, e pawl.Event) {
	t.crashes <- fmt.Sprintf("took %s over, crashes: %d", e.Job.Kind, e.Job.Crashes)
}

// line is a connection to Redis that can be cut: a redis.Limiter.
type line struct{ cut atomic.Bool }

func (l *line) Allow() error {
	if l.cut.Load() {
		return errors.New("no route to host")
	}
	return nil
}

func (*line) ReportResult(error) {}

// A worker that is cut off from Redis loses its job to another, and each says
// so. The outcome of the first run is not recorded.
func ExampleOnLeaseLost() {
	m := inMemory()
	defer m.stop()
	ctx, stop := context.WithCancel(context.Background())
	emails := m.Queue("emails")
	must(emails.Enqueue(ctx, Welcome{UserID: 42}, pawl.VisibilityTimeout(time.Second)))

	second := newTrouble()
	another := must(pawl.NewWorker(m.with(second), pawl.WorkerConfig{Queues: pawl.Queues("emails")}))
	pawl.Handle(another, func(context.Context, *pawl.Job[Welcome]) error { return nil })

	first := newTrouble()
	options := *m.rdb.Options()
	toRedis := new(line)
	options.Limiter = toRedis
	rdb := redis.NewClient(&options)
	defer func() { _ = rdb.Close() }()
	client := must(pawl.New(rdb, pawl.Config{Hooks: []pawl.Hook{first}}))
	w := must(pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("emails")}))
	pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[Welcome]) error {
		toRedis.cut.Store(true)
		fmt.Println("first:", <-first.outages)
		<-ctx.Done()
		fmt.Println("first:", context.Cause(ctx))
		m.run(another, 1)
		toRedis.cut.Store(false)
		stop()
		return errors.New("nobody wants to know")
	})
	_ = w.Run(ctx)
	fmt.Println("first:", <-first.losses)
	fmt.Println("second:", <-second.crashes)
	stats := must(emails.Stats(context.Background()))
	fmt.Println(stats.Total.Done, "done,", stats.Total.Failed, "failed")
	// Output:
	// first: Redis is away
	// first: pawl: lease lost
	// first: lost welcome
	// second: took welcome over, crashes: 1
	// 1 done, 0 failed
}
