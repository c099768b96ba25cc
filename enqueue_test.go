package pawl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

func TestIdsAreUUIDv7AndSortByAge(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		before := time.Now()
		var last string
		for i := range 300 {
			job, err := q.Enqueue(t.Context(), note{i})
			require.NoError(t, err)
			require.EqualValues(t, 7, job.ID.Version())
			require.Greater(t, job.ID.String(), last)
			require.Equal(t, "mail", job.Queue)
			last = job.ID.String()
		}
		many, err := q.EnqueueMany(t.Context(), pawl.Items(make([]note, 1200)))
		require.NoError(t, err)
		for _, job := range many {
			require.Greater(t, job.ID.String(), last)
			last = job.ID.String()
		}
		info, err := q.Get(t.Context(), many[0].ID)
		require.NoError(t, err)
		require.WithinDuration(t, before, info.EnqueuedAt, time.Minute)
		require.Equal(t, pawl.StateReady, info.State)
	})
}

func TestWhatIsInvalidIsRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Client.Queue("mail")
		for name, c := range map[string]struct {
			opts []pawl.Option
			is   error
		}{
			"a negative delay":        {[]pawl.Option{pawl.Delay(-1)}, pawl.ErrInvalid},
			"delay and at":            {[]pawl.Option{pawl.Delay(1), pawl.At(time.Now())}, pawl.ErrInvalid},
			"a zero time":             {[]pawl.Option{pawl.At(time.Time{})}, pawl.ErrInvalid},
			"a year of five digits":   {[]pawl.Option{pawl.At(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))}, pawl.ErrInvalid},
			"priority 10":             {[]pawl.Option{pawl.Priority(10)}, pawl.ErrInvalid},
			"priority -1":             {[]pawl.Option{pawl.Priority(-1)}, pawl.ErrInvalid},
			"a header with a newline": {[]pawl.Option{pawl.Header{Key: "a\nb", Value: "x"}}, pawl.ErrInvalid},
			"headers too large":       {[]pawl.Option{pawl.Header{Key: "a", Value: strings.Repeat("x", 5000)}}, pawl.ErrInvalid},
			"attempts below zero":     {[]pawl.Option{pawl.MaxAttempts(-3)}, pawl.ErrInvalid},
			"a backoff that shrinks":  {[]pawl.Option{pawl.Backoff{Factor: math.NaN()}}, pawl.ErrInvalid},
			"expiry in the past":      {[]pawl.Option{pawl.ExpireIn(-time.Second)}, pawl.ErrInvalid},
			"expiry before the delay": {[]pawl.Option{pawl.ExpireIn(time.Second), pawl.Delay(time.Minute)}, pawl.ErrInvalid},
			"a nil option":            {[]pawl.Option{nil}, pawl.ErrInvalid},
			"a key too long":          {[]pawl.Option{pawl.Unique{Key: strings.Repeat("k", 600)}}, pawl.ErrInvalid},
		} {
			_, err := q.Enqueue(t.Context(), note{1}, c.opts...)
			require.ErrorIs(t, err, c.is, name)
			require.NotErrorIs(t, err, pawl.ErrUnconfirmed, name)
		}
		_, err := q.Enqueue(t.Context(), nil)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		_, err = q.EnqueueRaw(t.Context(), "kind\x00", nil)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		_, err = q.EnqueueMany(t.Context(), []pawl.Item{{Args: note{1}}, {Args: note{2}, Options: []pawl.Option{pawl.Delay(-1)}}})
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, "item 1")
		require.Empty(t, e.Mini.Keys(), "nothing was sent")
	})
}

func TestABadQueueNameIsTheErrorOfEveryMethod(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		for _, name := range []string{"", "a b", "a{b}", "a\nb", "a*", "é", strings.Repeat("x", 129), "a\x00"} {
			q := e.Client.Queue(name)
			calls := map[string]func() error{
				"Enqueue":     func() error { _, err := q.Enqueue(t.Context(), note{1}); return err },
				"EnqueueMany": func() error { _, err := q.EnqueueMany(t.Context(), pawl.Items([]note{{1}})); return err },
				"EnqueueRaw":  func() error { _, err := q.EnqueueRaw(t.Context(), "k", nil); return err },
				"Stats":       func() error { _, err := q.Stats(t.Context()); return err },
				"Get":         func() error { _, err := q.Get(t.Context(), pawl.ID{}); return err },
				"Cancel":      func() error { return q.Cancel(t.Context(), pawl.ID{}) },
				"Check":       func() error { _, err := q.Check(t.Context()); return err },
				"Dead.Len":    func() error { _, err := q.Dead().Len(t.Context()); return err },
				"Dead.Get":    func() error { _, err := q.Dead().Get(t.Context(), pawl.ID{}); return err },
				"Dead.Delete": func() error { _, err := q.Dead().Delete(t.Context(), pawl.ID{}); return err },
				"Redrive":     func() error { _, err := q.Dead().Redrive(t.Context(), pawl.ID{}); return err },
				"Dead.List": func() error {
					for _, err := range q.Dead().List(t.Context(), pawl.DeadFilter{}) {
						return err
					}
					return nil
				},
			}
			for method, call := range calls {
				require.ErrorIs(t, call(), pawl.ErrName, "%s of %q", method, name)
			}
		}
		require.Empty(t, e.Mini.Keys())
	})
}

func TestPayloadsAreByteExactOrRefused(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		c := e.NewClient(pawl.Config{MaxPayload: 1000})
		q := c.Queue("mail")
		e.Queue("mail")
		big := strings.Repeat("\x00\xff\r\n", 250)
		for _, payload := range []string{"", "x", "\x00", big, `{"n":9007199254740993}`, "\xc3\x28"} {
			job, err := q.EnqueueRaw(t.Context(), "raw", []byte(payload))
			require.NoError(t, err)
			info, err := q.Get(t.Context(), job.ID)
			require.NoError(t, err)
			require.Equal(t, payload, string(info.Payload))
		}
		_, err := q.EnqueueRaw(t.Context(), "raw", []byte(big+"1"))
		require.ErrorIs(t, err, pawl.ErrTooLarge)
		require.ErrorIs(t, err, pawl.ErrInvalid)
		require.ErrorContains(t, err, "store the thing and enqueue its key")
	})
}

func TestEnqueueManyPagesByCountAndBytes(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		kind := pawl.Define[string]("blob")
		var items []pawl.Item
		for i := range 12 {
			items = append(items, pawl.Item{Args: kind.Args(strings.Repeat(fmt.Sprint(i%10), 200<<10))})
		}
		jobs, err := q.EnqueueMany(t.Context(), items)
		require.NoError(t, err)
		require.Len(t, jobs, 12)
		w := e.Worker("mail", pawl.WorkerConfig{Concurrency: 12})
		kind.Handle(w, func(_ context.Context, job *pawl.Job[string]) error {
			require.Len(t, job.Args, 200<<10)
			return nil
		})
		e.Run(w, "done", 12)
		none, err := q.EnqueueMany(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, none)
	})
}

func TestAUniqueKeyIsHeldAsLongAsItSays(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		key := pawl.Unique{Key: pawl.Key("order", 42)}
		first, err := q.Enqueue(t.Context(), note{1}, key)
		require.NoError(t, err)
		second, err := q.Enqueue(t.Context(), note{2}, key)
		require.NoError(t, err)
		require.Equal(t, pawl.Enqueued{ID: first.ID, Queue: "mail", Duplicate: true}, second)
		key.OnDuplicate = pawl.RejectDuplicate
		third, err := q.Enqueue(t.Context(), note{3}, key)
		require.ErrorIs(t, err, pawl.ErrDuplicate)
		require.Equal(t, first.ID, third.ID)

		window := pawl.Unique{Key: "window", For: time.Hour}
		started := pawl.Unique{Key: "started", Until: pawl.UntilStarted}
		_, err = q.EnqueueMany(t.Context(), []pawl.Item{{Args: note{4}, Options: []pawl.Option{window}}, {Args: note{5}, Options: []pawl.Option{started}}})
		require.NoError(t, err)
		w := e.Worker("mail", pawl.WorkerConfig{})
		pawl.Handle(w, func(ctx context.Context, job *pawl.Job[note]) error {
			if job.Args.N == 5 {
				again, err := q.Enqueue(ctx, note{6}, started)
				require.NoError(t, err)
				require.False(t, again.Duplicate, "it has started")
			}
			return nil
		})
		e.Run(w, "done", 4)
		for _, u := range []pawl.Unique{{Key: key.Key}, started} {
			again, err := q.Enqueue(t.Context(), note{7}, u)
			require.NoError(t, err)
			require.False(t, again.Duplicate, "%s is free", u.Key)
		}
		again, err := q.Enqueue(t.Context(), note{8}, window)
		require.NoError(t, err)
		require.True(t, again.Duplicate, "the window holds it")
		e.Pass(time.Hour + time.Millisecond) // ids run ahead of the clock by microseconds
		again, err = q.Enqueue(t.Context(), note{9}, window)
		require.NoError(t, err)
		require.False(t, again.Duplicate, "the window is over")
	})
}

func TestAnEmptyUniqueKeyIsTheKindAndTheArguments(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, e *env) {
		q := e.Queue("mail")
		for i, want := range []bool{false, true, false} {
			job, err := q.Enqueue(t.Context(), note{i / 2}, pawl.Unique{})
			require.NoError(t, err)
			require.Equal(t, want, job.Duplicate)
		}
	})
}

func TestHeadersComeFromTheCallAndFromInject(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		type tenant struct{}
		e.Client = e.NewClient(pawl.Config{Inject: func(ctx context.Context, h pawl.Headers) {
			h["tenant"], _ = ctx.Value(tenant{}).(string)
			h["by"] = "inject"
		}})
		q := e.Queue("mail")
		job, err := q.Enqueue(context.WithValue(t.Context(), tenant{}, "acme"), note{1}, pawl.Header{Key: "by", Value: "call"})
		require.NoError(t, err)
		info, err := q.Get(t.Context(), job.ID)
		require.NoError(t, err)
		require.Equal(t, pawl.Headers{"tenant": "acme", "by": "call"}, info.Headers)
	})
}

func TestACanceledContextEnqueuesNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, e *env) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the user left")
		cancel(cause)
		_, err := e.Queue("mail").Enqueue(ctx, note{1})
		require.ErrorIs(t, err, cause)
		require.NotErrorIs(t, err, pawl.ErrUnconfirmed)
		require.Empty(t, e.Mini.Keys())
	})
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer func() { _ = rdb.Close() }()
	_, err := pawl.New(nil, pawl.Config{})
	require.ErrorIs(t, err, pawl.ErrInvalid)
	_, err = pawl.New((*redis.Client)(nil), pawl.Config{})
	require.ErrorIs(t, err, pawl.ErrInvalid)
	_, err = pawl.New(rdb, pawl.Config{Namespace: "a{b}"})
	require.ErrorIs(t, err, pawl.ErrInvalid)
	require.ErrorContains(t, err, `Config.Namespace "a{b}"`)
	_, err = (*pawl.RawJob)(&pawl.RawJob{}).Client().Queue("q").Enqueue(t.Context(), note{1})
	require.ErrorIs(t, err, pawl.ErrInvalid, "a literal has no client")
	_, err = pawl.New(rdb, pawl.Config{MaxPayload: -1})
	require.ErrorIs(t, err, pawl.ErrInvalid)
	_, err = pawl.New(rdb, pawl.Config{Hooks: []pawl.Hook{struct{}{}}})
	require.ErrorIs(t, err, pawl.ErrInvalid)
}
