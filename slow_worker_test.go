package pawl_test

import (
	"context"
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// optioned is a note whose options depend on it.
type optioned struct {
	N     int
	Tries int
}

func (optioned) Kind() string { return "optioned" }

func (o optioned) JobOptions() []pawl.Option { return []pawl.Option{pawl.MaxAttempts(max(1, o.Tries))} }

// heavyCodec is the user's code that has its own way with a note of the number 7.
type heavyCodec struct{ decode func() }

func (heavyCodec) Encode(_ string, v any) ([]byte, error) { return json.Marshal(v) }

func (c heavyCodec) Decode(_ string, data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return err
	}
	if o, ok := v.(*optioned); ok && o.N == 7 {
		c.decode()
	}
	return nil
}

// The options of a job's type are asked of the user's code, which holds up, or
// ends, that job's goroutine and no other.
func TestACodecHoldsUpItsJobAlone(t *testing.T) {
	t.Parallel()
	const long = time.Hour
	for name, c := range map[string]struct {
		decode  func()
		timeout time.Duration
		ends    string // the event of the heavy job, once it has been decoded
	}{
		"that takes long":         {decode: func() { <-time.After(long) }, timeout: 3 * long, ends: "done"},
		"that ends its goroutine": {decode: runtime.Goexit, ends: "retry"},
		"that panics":             {decode: func() { panic("no") }, ends: "retry"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				e.Client = e.NewClient(pawl.Config{Codec: heavyCodec{c.decode}})
				q := e.Queue("mail")
				for n := range 20 {
					_, err := q.Enqueue(t.Context(), optioned{N: n, Tries: 3})
					require.NoError(t, err)
				}
				w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 2, Timeout: c.timeout})
				var tries []int
				pawl.Handle(w, func(_ context.Context, job *pawl.Job[optioned]) error {
					if job.Args.N == 7 {
						tries = append(tries, job.MaxAttempts)
					}
					return nil
				})
				begun := time.Now()
				stop := e.Start(w)
				e.Log.Wait(t, "done", 19)
				require.Less(t, time.Since(begun), time.Second, "the others wait for nothing")
				e.Log.Wait(t, c.ends, map[string]int{"done": 20, "retry": 1}[c.ends])
				require.NoError(t, stop())
				if c.ends == "done" {
					require.Equal(t, []int{3}, tries, "its type's options hold")
				}
				require.Empty(t, e.Log.Of("lost"))
			})
		})
	}
}

// slowHook takes its time over bad news.
type slowHook struct{}

func (slowHook) Outage(context.Context, error)         { <-time.After(10 * time.Minute) }
func (slowHook) LeaseLost(context.Context, pawl.Event) { <-time.After(10 * time.Minute) }

// A handler is told by its worker's own clock that its lease is over, however
// long hooks take over what they were told.
func TestASlowHookDoesNotDelayTheEndOfALease(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		const lease = 30 * time.Second
		e.Client = e.NewClient(pawl.Config{Hooks: []pawl.Hook{slowHook{}}})
		fill(t, e, 3, "mail")
		w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 3, VisibilityTimeout: lease})
		begun := time.Now()
		ended := make(chan time.Duration, 3)
		pawl.Handle(w, func(ctx context.Context, _ *pawl.Job[note]) error {
			<-ctx.Done()
			select {
			case ended <- time.Since(begun):
			default: // it runs again
			}
			return context.Cause(ctx)
		})
		stop := e.Start(w)
		e.Log.Wait(t, "started", 3)
		e.Mini.SetError("LOADING it was restarted")
		for range 3 {
			require.Less(t, <-ended, lease+time.Second)
		}
		e.Mini.SetError("")
		_ = stop()
		e.Pass(4 * time.Hour)
	})
}

// A handler is not called for a run that was over before its options were known.
func TestAJobWhoseRunEndsWhileItIsDecodedIsNotHandled(t *testing.T) {
	t.Parallel()
	const long = 2 * time.Minute
	for name, c := range map[string]struct {
		during           func(e *env, q *pawl.Queue, id pawl.ID, stop func() error)
		ends             string
		tries, cancelled int64
	}{
		"it was cancelled": {func(e *env, q *pawl.Queue, id pawl.ID, _ func() error) {
			_ = q.Cancel(context.Background(), id)
			e.Pass(2 * long)
		}, "", 0, 1},
		"its worker stopped": {func(_ *env, _ *pawl.Queue, _ pawl.ID, stop func() error) { _ = stop() }, "", 0, 0},
		"its timeout passed": {func(*env, *pawl.Queue, pawl.ID, func() error) {}, "retry", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, e *env) {
				decoding := make(chan struct{}, 9)
				e.Client = e.NewClient(pawl.Config{Codec: heavyCodec{func() {
					decoding <- struct{}{}
					<-time.After(long)
				}}})
				q := e.Queue("mail")
				timeout := 3 * long
				if c.ends == "retry" {
					timeout = time.Minute
				}
				job, err := q.Enqueue(t.Context(), optioned{N: 7, Tries: 3}, pawl.Timeout(timeout))
				require.NoError(t, err)
				w := e.Worker("mail", pawl.WorkerConfig{})
				handled := 0
				pawl.Handle(w, func(context.Context, *pawl.Job[optioned]) error { handled++; return nil })
				stop := e.Start(w)
				<-decoding
				c.during(e, q, job.ID, stop)
				if c.ends != "" {
					e.Log.Wait(t, c.ends, 1)
				}
				_ = stop()
				e.Pass(2 * long)
				require.Zero(t, handled)
				require.Empty(t, e.Log.Of("started"))
				s, err := q.Stats(t.Context())
				require.NoError(t, err)
				require.Equal(t, c.tries, s.Total.Failed)
				require.Equal(t, c.cancelled, s.Total.Cancelled)
			})
		})
	}
}
