package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pawlq/pawl"
)

// What docs/retries.md says of runs, by running them.

// firstEnd is a hook that ends a worker after the first outcome it stores.
type firstEnd struct {
	stop context.CancelFunc
	wait *time.Duration
}

func (f firstEnd) Done(context.Context, pawl.Event)             { f.stop() }
func (f firstEnd) Discarded(context.Context, pawl.Event)        { f.stop() }
func (f firstEnd) Dead(context.Context, pawl.DeadEvent)         { f.stop() }
func (f firstEnd) Retry(_ context.Context, e pawl.RetryEvent)   { *f.wait = e.Delay; f.stop() }
func (f firstEnd) Snoozed(_ context.Context, e pawl.RetryEvent) { *f.wait = e.Delay; f.stop() }

// fate runs a job once and says what became of it.
func fate(handler func() error, opts ...pawl.Option) (becomes string, failed int64) {
	m := inMemory()
	defer m.stop()
	ctx, stop := context.WithCancel(context.Background())
	var wait time.Duration
	client := must(pawl.New(m.rdb, pawl.Config{Hooks: []pawl.Hook{firstEnd{stop, &wait}}}))
	q := client.Queue("payments")
	job := must(q.Enqueue(context.Background(), Charge{}, opts...))
	w := must(pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("payments"), Backoff: pawl.Backoff{Jitter: pawl.JitterNone}}))
	pawl.Handle(w, func(context.Context, *pawl.Job[Charge]) error { return handler() })
	mustNil(w.Run(ctx))

	n := must(q.Stats(context.Background())).Total
	info, err := q.Get(context.Background(), job.ID)
	switch {
	case errors.Is(err, pawl.ErrNotFound) && n.Discarded == 1:
		becomes = "gone, counted as discarded"
	case errors.Is(err, pawl.ErrNotFound):
		becomes = "gone, counted as done"
	case info.State == pawl.StateDead:
		becomes = "dead, " + string(must(q.Dead().Get(context.Background(), job.ID)).Reason)
	default:
		becomes = "runs again after " + brief(wait)
	}
	return becomes, n.Failed
}

// The outcomes of a run, with the default policy but for its jitter.
func ExamplePermanent_outcomes() {
	err := errors.New("503")
	for _, c := range []struct {
		returns string
		handler func() error
		opts    []pawl.Option
	}{
		{"`nil`", func() error { return nil }, nil},
		{"an error", func() error { return err }, nil},
		{"an error, on the last attempt", func() error { return err }, []pawl.Option{pawl.MaxAttempts(1)}},
		{"a panic", func() error { panic("nil map") }, nil},
		{"`RetryAfter(time.Minute, err)`", func() error { return pawl.RetryAfter(time.Minute, err) }, nil},
		{"`RetryAfter(…)`, on the last attempt", func() error { return pawl.RetryAfter(time.Minute, err) }, []pawl.Option{pawl.MaxAttempts(1)}},
		{"`Snooze(time.Hour)`", func() error { return pawl.Snooze(time.Hour) }, nil},
		{"`Snooze(…)`, on the last attempt", func() error { return pawl.Snooze(time.Hour) }, []pawl.Option{pawl.MaxAttempts(1)}},
		{"`Permanent(err)`", func() error { return pawl.Permanent(err) }, nil},
		{"`Discard(err)`", func() error { return pawl.Discard(err) }, nil},
	} {
		becomes, failed := fate(c.handler, c.opts...)
		row(c.returns, becomes, []string{"no", "yes"}[failed])
	}
	// Output:
	// | `nil` | gone, counted as done | no |
	// | an error | runs again after 5s | yes |
	// | an error, on the last attempt | dead, exhausted | yes |
	// | a panic | runs again after 5s | yes |
	// | `RetryAfter(time.Minute, err)` | runs again after 1m | yes |
	// | `RetryAfter(…)`, on the last attempt | dead, exhausted | yes |
	// | `Snooze(time.Hour)` | runs again after 1h | no |
	// | `Snooze(…)`, on the last attempt | runs again after 1h | no |
	// | `Permanent(err)` | dead, permanent | yes |
	// | `Discard(err)` | gone, counted as discarded | no |
}

// plain and typed are one kind, without and with a policy of the type.
type plain struct{}

func (plain) Kind() string { return "ordered" }

type typed struct{ plain }

func (typed) JobOptions() []pawl.Option { return []pawl.Option{pawl.MaxAttempts(12)} }

// attempts is the MaxAttempts of a job whose policy is given in so many places,
// the last of them first.
func attempts[T pawl.Args](args T, call []pawl.Option, handler []pawl.HandleOption, worker int) (most int) {
	m := inMemory()
	defer m.stop()
	must(m.Queue("q").Enqueue(context.Background(), args, call...))
	w := must(pawl.NewWorker(m.Client, pawl.WorkerConfig{Queues: pawl.Queues("q"), MaxAttempts: worker}))
	pawl.Handle(w, func(_ context.Context, job *pawl.Job[T]) error { most = job.MaxAttempts; return nil }, handler...)
	m.run(w, 1)
	return most
}

// Who wins, if a policy is given in several places.
func ExamplePolicy_order() {
	call, handler := []pawl.Option{pawl.MaxAttempts(14)}, []pawl.HandleOption{pawl.MaxAttempts(13)}
	row("`Enqueue(ctx, job, pawl.MaxAttempts(14))`", attempts(typed{}, call, handler, 11))
	row("`Handle(w, fn, pawl.MaxAttempts(13))`", attempts(typed{}, nil, handler, 11))
	row("`JobOptions`, or `Define`, with `pawl.MaxAttempts(12)`", attempts(typed{}, nil, nil, 11))
	row("`WorkerConfig{MaxAttempts: 11}`", attempts(plain{}, nil, nil, 11))
	row("nowhere: the library's", attempts(plain{}, nil, nil, 0))
	// Output:
	// | `Enqueue(ctx, job, pawl.MaxAttempts(14))` | 14 |
	// | `Handle(w, fn, pawl.MaxAttempts(13))` | 13 |
	// | `JobOptions`, or `Define`, with `pawl.MaxAttempts(12)` | 12 |
	// | `WorkerConfig{MaxAttempts: 11}` | 11 |
	// | nowhere: the library's | 8 |
}

// region retries-func

// waitFor gives a rate limit longer waits than other errors, and gives up early
// on a card that is not found: it may be a new one, so once more is enough.
func waitFor(f pawl.Failure) time.Duration {
	busy, limited := errors.AsType[*busyError](f.Err)
	switch {
	case limited:
		return max(busy.After, pawl.DefaultBackoff.Delay(f.Attempt))
	case errors.Is(f.Err, errNoSuchCard) && f.Attempt >= 2:
		return -1 // dead, reason "permanent"
	default:
		return pawl.DefaultBackoff.Delay(f.Attempt)
	}
}

// endregion

// A RetryFunc is called with what failed, so a test can call it too.
func ExampleRetryFunc_call() {
	var policy pawl.RetryFunc = waitFor
	fmt.Println(policy(pawl.Failure{Attempt: 1, Err: &busyError{After: time.Minute}}))
	fmt.Println(policy(pawl.Failure{Attempt: 2, Err: errNoSuchCard}) < 0)
	// Output:
	// 1m0s
	// true
}

// statusError is an answer of a server, as an error of its client library.
type statusError struct {
	code  int
	after time.Duration // of its Retry-After; 0 if it had none
}

func (e *statusError) Error() string { return fmt.Sprint(e.code, " ", http.StatusText(e.code)) }

// region retries-classify

// classify is what the answers of a server mean, for all handlers of a worker:
// WorkerConfig{Middleware: []pawl.Middleware{pawl.Classify(classify)}}.
func classify(err error) error {
	status, ok := errors.AsType[*statusError](err)
	switch {
	case !ok:
		return err // no answer, or an outcome that the handler chose itself
	case status.after > 0:
		return pawl.RetryAfter(min(status.after, time.Hour), err) // they may ask for a year
	case status.code == http.StatusRequestTimeout, status.code == http.StatusTooManyRequests:
		return err
	case 400 <= status.code && status.code < 500:
		return pawl.Permanent(err) // the same request will get the same answer
	default:
		return err
	}
}

// endregion

// What becomes of a job by the answer of the server.
func ExampleClassify_status() {
	for _, err := range []error{&statusError{code: 400}, &statusError{code: 404}, &statusError{code: 408},
		&statusError{code: 429}, &statusError{429, time.Minute}, &statusError{500, 0}, &statusError{503, 48 * time.Hour}} {
		becomes, _ := fate(func() error { return classify(err) })
		text := err.Error()
		if after := err.(*statusError).after; after > 0 {
			text += ", Retry-After: " + brief(after)
		}
		row(text, becomes)
	}
	// Output:
	// | 400 Bad Request | dead, permanent |
	// | 404 Not Found | dead, permanent |
	// | 408 Request Timeout | runs again after 5s |
	// | 429 Too Many Requests | runs again after 5s |
	// | 429 Too Many Requests, Retry-After: 1m | runs again after 1m |
	// | 500 Internal Server Error | runs again after 5s |
	// | 503 Service Unavailable, Retry-After: 48h | runs again after 1h |
}

// region retries-once

// SendText must rather not be sent than sent twice.
type SendText struct{ To, Text string }

func (SendText) Kind() string { return "text.send" }
func (SendText) JobOptions() []pawl.Option {
	return []pawl.Option{pawl.MaxAttempts(1), pawl.MaxCrashes(1)}
}

// endregion

// At most once: the first failure is the last.
func ExampleMaxCrashes_retries() {
	m := inMemory()
	defer m.stop()
	ctx := context.Background()
	job := must(m.Queue("texts").Enqueue(ctx, SendText{To: "+49 30 1234567"}))
	w := m.worker("texts")
	pawl.Handle(w, func(context.Context, *pawl.Job[SendText]) error { return errors.New("connection reset") })
	m.run(w, 1)
	dead := must(m.Queue("texts").Dead().Get(ctx, job.ID))
	fmt.Println(dead.Reason, "after attempt", dead.Attempt, "of", dead.MaxAttempts)
	// Output: exhausted after attempt 1 of 1
}
