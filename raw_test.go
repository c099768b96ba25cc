package pawl

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// choosy is a type with options that its fields decide.
type choosy struct {
	N    int
	opts []Option
}

func (choosy) Kind() string           { return "choosy" }
func (c choosy) JobOptions() []Option { return c.opts }

// TestPrepareMakesTheSameJob compares what is stored of a job that was enqueued
// with what is stored of one that was prepared, kept and enqueued as Raw.
func TestPrepareMakesTheSameJob(t *testing.T) {
	t.Parallel()
	moment := time.Date(2030, 3, 1, 12, 0, 0, 1, time.UTC)
	for name, tc := range map[string]struct{ call, typ []Option }{
		"no options":                   {},
		"all of the call":              {call: []Option{Delay(time.Minute), Priority(3), ExpireIn(time.Hour), Header{"b", "2"}, Header{"a", "1"}, Unique{Key: "k", For: 7, Until: UntilStarted, OnDuplicate: RejectDuplicate}, Idempotency{Key: "i"}, Retain(time.Minute + 1), MaxAttempts(2), Timeout(NoTimeout), MaxCrashes(4), VisibilityTimeout(time.Second), Backoff{Steps: []time.Duration{1, 2}, Max: 9}}},
		"all of the type":              {typ: []Option{Delay(time.Minute), Priority(3), ExpireIn(time.Hour), Header{"b", "2"}, Unique{OnDuplicate: ReplaceWaiting}, Idempotency{"its", time.Hour}, Retain(time.Hour), MaxAttempts(2), Backoff{Factor: 2}}},
		"a time":                       {call: []Option{At(moment)}, typ: []Option{Delay(time.Minute)}},
		"a time long ago":              {call: []Option{At(time.Unix(0, 0))}},
		"a delay of 0 over the type's": {call: []Option{Delay(0), Priority(0)}, typ: []Option{Delay(time.Hour), Priority(9)}},
		"the call's over the type's":   {call: []Option{Priority(1), Header{"a", "1"}, Unique{Key: "mine"}}, typ: []Option{Priority(2), Header{"a", "2"}, Header{"c", "3"}, Unique{Key: "its"}}},
		"a pointer":                    {call: []Option{new(Priority(3))}},
		"a zero policy":                {call: []Option{MaxAttempts(0), Timeout(0), Backoff{}}},
		"follow-ups": {call: []Option{Then{choosy{8, []Option{Delay(time.Second), Unique{}, MaxAttempts(3)}}, []Option{Priority(2), Then{Raw{"last", nil}, nil}}}},
			typ: []Option{Then{Raw{"not", nil}, nil}}},
		"follow-ups of the type":        {typ: []Option{Then{Raw{"next", []byte("x")}, []Option{At(moment), Retain(time.Hour)}}, Then{&Raw{"too", nil}, nil}}},
		"a header of Inject and a call": {call: []Option{Header{"trace", "call"}}},
	} {
		t.Run("with "+name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{Inject: func(_ context.Context, h Headers) { h["trace"], h["tenant"] = "injected", "7" }}
			with, err := New(lazyClient(t), cfg)
			require.NoError(t, err)
			want, err := with.queue("q").prepare(t.Context(), choosy{7, tc.typ}, tc.call)
			require.NoError(t, err)

			raw, opts, err := cfg.Prepare(t.Context(), "q", choosy{7, tc.typ}, tc.call...)
			require.NoError(t, err)
			require.Equal(t, Raw{"choosy", []byte(`{"N":7}`)}, raw)
			later, err := New(lazyClient(t), Config{})
			require.NoError(t, err)
			for _, args := range []Args{raw, &raw} {
				got, err := later.queue("q").prepare(t.Context(), args, opts)
				require.NoError(t, err)
				got.low = want.low
				require.Equal(t, want, got)
			}
		})
	}
}

func TestPrepareRefusesWhatEnqueueRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cfg   Config
		queue string
		args  Args
		opts  []Option
		is    error
	}{
		"a bad name":          {queue: "no spaces", args: choosy{}, is: ErrName},
		"nil arguments":       {queue: "q", is: ErrInvalid},
		"a nil Raw":           {queue: "q", args: (*Raw)(nil), is: ErrInvalid},
		"a Raw without kind":  {queue: "q", args: Raw{}, is: ErrInvalid},
		"a large payload":     {cfg: Config{MaxPayload: 3}, queue: "q", args: choosy{}, is: ErrTooLarge},
		"a large Raw":         {cfg: Config{MaxPayload: 3}, queue: "q", args: Raw{"kind", make([]byte, 4)}, is: ErrTooLarge},
		"a bad option":        {queue: "q", args: choosy{}, opts: []Option{Priority(10)}, is: ErrInvalid},
		"a bad one of a type": {queue: "q", args: choosy{opts: []Option{Delay(-1)}}, is: ErrInvalid},
		"a bad Config":        {cfg: Config{MaxPayload: -1}, queue: "q", args: choosy{}, is: ErrInvalid},
		"a bad header of Inject": {cfg: Config{Inject: func(_ context.Context, h Headers) { h[" "] = "" }},
			queue: "q", args: choosy{}, is: ErrInvalid},
		"a codec that fails": {cfg: Config{Codec: failingCodec{}}, queue: "q", args: choosy{}, is: errEncode},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, opts, err := tc.cfg.Prepare(t.Context(), tc.queue, tc.args, tc.opts...)
			require.ErrorIs(t, err, tc.is)
			require.ErrorIs(t, err, ErrInvalid)
			require.Zero(t, raw)
			require.Nil(t, opts)
		})
	}
}

var errEncode = errors.New("does not encode")

type failingCodec struct{ Codec }

func (failingCodec) Encode(string, any) ([]byte, error) { return nil, errEncode }

func TestRawTravelsPastTheCodec(t *testing.T) {
	t.Parallel()
	c, err := New(lazyClient(t), Config{Codec: failingCodec{}})
	require.NoError(t, err)
	body, value, err := c.encode("q", Raw{"kind", []byte("\xff")}, nil)
	require.NoError(t, err)
	require.Nil(t, value, "nothing was encoded, so there is no type to compare by")
	want, err := c.queue("q").prepare(t.Context(), &Raw{"kind", []byte("\xff")}, nil)
	require.NoError(t, err)
	require.Equal(t, want.record, body)
}
