package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// ran collects the numbers of the notes that were run, in order.
type ran struct {
	mu   sync.Mutex
	list []int
}

func (r *ran) add(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, n)
}

func (r *ran) all() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]int(nil), r.list...)
}

// after is a follow-up.
func after(n int, opts ...pawl.Option) pawl.Then { return pawl.Then{Args: note{n}, Options: opts} }

func TestAFollowUpRunsOnceItsJobIsDone(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		var got ran
		w := e.Worker("q", pawl.WorkerConfig{Concurrency: 1})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			got.add(job.Args.N)
			switch job.Args.N {
			case 1:
				if job.Attempt == 1 {
					job.Then(note{99})
					return errors.New("again")
				}
				job.Then(note{4}, pawl.Header{Key: "by", Value: "the handler"})
			case 4:
				require.Equal(t, pawl.Headers{"by": "the handler"}, job.Headers)
			case 2:
				require.Empty(t, job.Headers, "it inherits none")
			}
			return nil
		}, pawl.Backoff{Base: time.Millisecond})
		put(t, q, 1, pawl.Header{Key: "own", Value: "x"}, after(2, after(5), after(6)), after(3))
		e.Run(w, "done", 6)
		require.Equal(t, []int{1, 1, 2, 3, 4}, got.all()[:5])
		require.ElementsMatch(t, []int{5, 6}, got.all()[5:])
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, pawl.Counters{Enqueued: 6, Started: 7, Done: 6, Failed: 1, Retried: 1}, s.Total)
	})
}

// Only a run that is acknowledged as done has follow-ups: none else does.
func TestNothingFollowsAJobThatIsNotDone(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]struct {
		err   error
		event string
		opts  []pawl.Option
	}{
		"discarded": {pawl.Discard(errors.New("no")), "discarded", nil},
		"dead":      {pawl.Permanent(errors.New("no")), "dead", nil},
		"snoozed":   {pawl.Snooze(time.Hour), "snoozed", nil},
		"retried":   {pawl.RetryAfter(time.Hour, errors.New("no")), "retry", nil},
		"skipped":   {nil, "skipped", []pawl.Option{once(7)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			contract(t, func(t *testing.T, e *env) {
				q := e.Queue("q")
				w := e.Worker("q", pawl.WorkerConfig{Concurrency: 1})
				pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
					if job.Args.N == 0 {
						return nil
					}
					job.Then(note{2})
					job.ThenOn("other", note{3})
					return end.err
				})
				stop := e.Start(w)
				if name == "skipped" {
					put(t, q, 0, once(7))
					e.Log.Wait(t, "done", 1)
				}
				id := put(t, q, 1, append(end.opts, after(4), retained)...)
				e.Log.Wait(t, end.event, 1)
				require.NoError(t, stop())
				s, err := q.Stats(t.Context())
				require.NoError(t, err)
				require.EqualValues(t, len(e.Log.Of("done"))+1, s.Total.Enqueued)
				_, err = e.Queue("other").Purge(t.Context(), pawl.StateReady, pawl.Filter{})
				require.ErrorIs(t, err, pawl.ErrNotFound)
				if name == "dead" {
					_, err := q.Dead().Redrive(t.Context(), id)
					require.NoError(t, err)
					again := e.Worker("q", pawl.WorkerConfig{})
					pawl.Handle(again, func(context.Context, *pawl.Job[note]) error { return nil })
					e.Run(again, "done", 2)
					s, err := q.Stats(t.Context())
					require.NoError(t, err)
					require.EqualValues(t, 2, s.Total.Enqueued, "its own follow-up has waited for it")
				}
			})
		})
	}
}

func TestAFollowUpWaitsByTheServersClockAndUnderItsKey(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		held := put(t, q, 9, pawl.Delay(time.Hour), pawl.Unique{Key: "held"})
		var told []pawl.EnqueuedEvent
		var mu sync.Mutex
		e.Client = e.NewClient(pawl.Config{Hooks: []pawl.Hook{enqueuedHook(func(event pawl.EnqueuedEvent) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, event)
		})}})
		q = e.Queue("q")
		w := e.Worker("q", pawl.WorkerConfig{Concurrency: 1})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			if job.Args.N != 1 {
				return nil
			}
			<-time.After(30 * time.Second)
			job.Then(note{2}, pawl.Delay(time.Minute))
			job.Then(note{3}, pawl.Unique{Key: "held", OnDuplicate: pawl.RejectDuplicate})
			job.Then(note{4}, pawl.Unique{Key: "own"})
			job.Then(note{5}, pawl.Unique{Key: "own"})
			job.Then(note{6}, pawl.Priority(3), pawl.At(time.Now().Add(2*time.Hour)))
			return nil
		})
		first := put(t, q, 1, pawl.Unique{Key: "own"})
		begun := time.Now()
		stop := e.Start(w)
		e.Log.Wait(t, "done", 2)
		e.Log.Wait(t, "done", 3)
		require.WithinDuration(t, begun.Add(90*time.Second), time.Now(), 2*time.Second)
		require.NoError(t, stop())
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, told, 6)
		require.Equal(t, first, told[0].ID)
		require.False(t, told[1].Duplicate)
		require.Equal(t, "note", told[1].Kind)
		require.True(t, told[2].Duplicate)
		require.Equal(t, held, told[2].ID)
		require.ErrorIs(t, told[2].Err, pawl.ErrDuplicate)
		require.False(t, told[3].Duplicate, "the key of the job that ended is free")
		require.True(t, told[4].Duplicate)
		require.Equal(t, told[3].ID, told[4].ID)
		info := get(t, q, told[5].ID)
		require.Equal(t, pawl.StateDelayed, info.State)
		require.Equal(t, 3, info.Priority)
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Total.Duplicate)
		require.EqualValues(t, 5, s.Total.Enqueued)
	})
}

type enqueuedHook func(pawl.EnqueuedEvent)

func (h enqueuedHook) Enqueued(_ context.Context, e pawl.EnqueuedEvent) { h(e) }

// There is nobody to return an error to: the run has failed for good.
func TestAFollowUpThatCannotBeEndsItsJobForGood(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		e.Client = e.NewClient(pawl.Config{MaxPayload: 1000})
		q := e.Queue("q")
		wrong := []struct {
			says  string
			stage func(*pawl.Job[note])
		}{
			{"Then 1: pawl: invalid: Priority(10)", func(job *pawl.Job[note]) { job.Then(note{2}, pawl.Priority(10)) }},
			{"the arguments are nil", func(job *pawl.Job[note]) { job.Then(nil) }},
			{"too large", func(job *pawl.Job[note]) { job.Then(pawl.Raw{Name: "k", Payload: make([]byte, 1001)}) }},
			{"more than 250 follow-ups", func(job *pawl.Job[note]) {
				for range 251 {
					job.Then(note{2})
				}
			}},
			{`ThenOn "no spaces"`, func(job *pawl.Job[note]) { job.ThenOn("no spaces", note{2}) }},
			{"it has a key of its own", func(job *pawl.Job[note]) { job.ThenOn("other", note{2}, pawl.Unique{Key: "k"}) }},
		}
		var ids []pawl.ID
		for n := range wrong {
			ids = append(ids, put(t, q, n))
		}
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			job.Then(note{100})
			job.ThenOn("other", note{100})
			wrong[job.Args.N].stage(job)
			return nil
		})
		e.Run(w, "dead", len(wrong))
		for n, id := range ids {
			dead, err := q.Dead().Get(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, pawl.ReasonPermanent, dead.Reason)
			require.Contains(t, strings.Replace(dead.Error, "Then 2:", "Then 1:", 1), wrong[n].says)
			require.Equal(t, 1, dead.Attempt)
		}
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, len(wrong), s.Total.Enqueued)
		require.NotContains(t, fmt.Sprint(e.Redis.Keys(t.Context(), "*").Val()), "{other}")
	})
}

// endless follows itself.
type endless struct{}

func (endless) Kind() string { return "endless" }
func (endless) JobOptions() []pawl.Option {
	return []pawl.Option{pawl.Then{Args: endless{}}, pawl.Then{Args: endless{}}}
}

func TestChainsHaveBounds(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		ctx, q := t.Context(), e.NewClient(pawl.Config{MaxPayload: 1000}).Queue("q")
		_, err := q.Enqueue(ctx, endless{})
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, "does a type follow itself?")
		deep := func(levels int) (opts []pawl.Option) {
			for range levels {
				opts = []pawl.Option{after(1, opts...)}
			}
			return opts
		}
		_, err = q.Enqueue(ctx, note{1}, deep(16)...)
		require.NoError(t, err)
		_, err = q.Enqueue(ctx, note{1}, deep(17)...)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		var wide []pawl.Option
		for range 16 {
			wide = append(wide, after(1))
		}
		_, err = q.Enqueue(ctx, note{1}, wide...)
		require.NoError(t, err)
		_, err = q.Enqueue(ctx, note{1}, append(wide, after(1))...)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		_, err = q.Enqueue(ctx, note{1}, after(1, after(1, pawl.Priority(10))))
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, "Then 1 of 1: Then 1 of 1: pawl: invalid: Priority(10)")
		large := pawl.Raw{Name: "k", Payload: make([]byte, 500)}
		_, err = q.Enqueue(ctx, large, pawl.Then{Args: pawl.Raw{Name: "k", Payload: make([]byte, 484)}})
		require.NoError(t, err)
		_, err = q.Enqueue(ctx, large, pawl.Then{Args: pawl.Raw{Name: "k", Payload: make([]byte, 485)}})
		require.ErrorIs(t, err, pawl.ErrTooLarge)
	})
}

func TestAFollowUpInAnotherQueueIsThereOnceHoweverOftenItsJobRuns(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, other := e.Queue("q"), e.Queue("other")
		id := put(t, q, 1)
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			job.ThenOn("other", note{2}, pawl.Header{Key: "a", Value: "b"})
			job.ThenOn("other", note{2})
			job.ThenOn("q", note{3}, pawl.Delay(time.Hour))
			return nil
		})
		e.Run(w, "done", 1)
		s, err := other.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Ready)
		require.EqualValues(t, 2, s.Total.Enqueued)
		s, err = q.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Delayed, "its own queue's name is Then")
		for _, n := range []string{"1", "2"} {
			require.EqualValues(t, 1, e.Redis.Exists(t.Context(), "pawl:{other}:unique:"+pawl.Key("then", id, n)).Val())
		}
	})
}

// If it cannot be enqueued the attempt has failed, and the next one adds what is missing.
func TestAFollowUpThatWasRefusedIsTriedAgain(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q, bad, other := e.Queue("q"), e.Client.Queue("bad"), e.Queue("other")
		require.NoError(t, e.Redis.Set(t.Context(), "pawl:{bad}:jobs", "x", 0).Err())
		put(t, q, 1)
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			job.Then(note{4}, pawl.Delay(time.Hour))
			job.ThenOn("other", note{2})
			job.ThenOn("bad", note{3})
			return nil
		}, pawl.Backoff{Base: 100 * time.Millisecond})
		stop := e.Start(w)
		failed := e.Log.Wait(t, "retry", 1)[0]
		require.ErrorContains(t, failed.Err, "ThenOn, 2 of 2: pawl: enqueue bad")
		require.NoError(t, e.Redis.Del(t.Context(), "pawl:{bad}:jobs").Err())
		e.Log.Wait(t, "done", 1)
		require.NoError(t, stop())
		for _, queue := range []*pawl.Queue{bad, other} {
			s, err := queue.Stats(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 1, s.Ready)
			require.EqualValues(t, 1, s.Total.Enqueued)
		}
		s, err := q.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Delayed)
	})
}

func TestConfigInjectIsAskedWithTheHandlersContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		e.Client = e.NewClient(pawl.Config{Inject: func(ctx context.Context, h pawl.Headers) {
			if job, ok := pawl.FromContext(ctx); ok {
				h["cause"] = job.ID.String()
			}
		}})
		q := e.Queue("q")
		id := put(t, q, 1, after(7))
		w := e.Worker("q", pawl.WorkerConfig{Concurrency: 1})
		var causes ran
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			switch job.Args.N {
			case 1:
				job.Then(note{2})
			case 2:
				require.Equal(t, id.String(), job.Headers["cause"])
				causes.add(2)
			case 7:
				require.Empty(t, job.Headers, "that of the enqueue was asked")
				causes.add(7)
			}
			return nil
		})
		e.Run(w, "done", 3)
		require.ElementsMatch(t, []int{2, 7}, causes.all())
	})
}

func TestALiteralHasNoFollowUps(t *testing.T) {
	t.Parallel()
	job := &pawl.RawJob{}
	job.Then(note{1})
	job.ThenOn("other", note{1})
	job.ThenOn("", note{1})
}

// A follow-up's key of a wrong type does not hold up the end of the job: it is enqueued
// without one.
func TestAFollowUpWhoseKeyIsOfAWrongTypeIsEnqueuedAllTheSame(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		require.NoError(t, e.Redis.SAdd(t.Context(), "pawl:{q}:unique:k", "x").Err())
		put(t, q, 1, after(2, pawl.Unique{Key: "k"}, pawl.Delay(time.Millisecond)))
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(context.Context, *pawl.Job[note]) error { return nil })
		e.Run(w, "done", 2)
		require.NoError(t, e.Redis.Del(t.Context(), "pawl:{q}:unique:k").Err())
	})
}

// A result that cannot be stored is found before anything is handed on.
func TestNothingIsHandedOnByARunThatCannotBeStored(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("q")
		put(t, q, 1, retained)
		w := e.Worker("q", pawl.WorkerConfig{})
		pawl.Handle(w, func(_ context.Context, job *pawl.Job[note]) error {
			job.ThenOn("other", note{2})
			job.SetResult(func() {})
			return nil
		})
		e.Run(w, "dead", 1)
		s, err := e.Queue("other").Stats(t.Context())
		require.NoError(t, err)
		require.Zero(t, s)
	})
}

// A run whose lease was lost hands nothing on, though its handler returns nil.
func TestNothingIsHandedOnByARunThatLostItsLease(t *testing.T) {
	t.Parallel()
	f := behindProxy(t, redistest.Start(t), 0)
	f.put(t, "q", 1)
	w := f.Worker("q", pawl.WorkerConfig{VisibilityTimeout: 300 * time.Millisecond})
	pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
		job.Then(note{2})
		job.ThenOn("other", note{3})
		f.Proxy.Blackhole(true)
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), pawl.ErrLeaseLost)
		f.Proxy.Blackhole(false)
		f.Proxy.CutAll()
		return nil
	})
	other, err := pawl.NewWorker(f.past, pawl.WorkerConfig{Queues: pawl.Queues("q"), VisibilityTimeout: time.Second})
	require.NoError(t, err)
	pawl.Handle(other, func(context.Context, *pawl.Job[note]) error { return nil })
	stop := f.Start(w)
	f.Log.Wait(t, "lost", 1)
	_ = stop() // it may have leased the job again, and gives it back
	end := f.Start(other)
	redistest.Eventually(t, "the job is done, by the other", func(context.Context) bool { return f.Total(t, "q").Done == 1 })
	require.NoError(t, end())
	require.EqualValues(t, 1, f.Total(t, "q").Enqueued)
	require.Zero(t, f.Total(t, "other"))
}
