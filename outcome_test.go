package pawl

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOutcome(t *testing.T) {
	t.Parallel()

	wrap := func(err error) error { return fmt.Errorf("outer: %w", err) }
	for name, tc := range map[string]struct {
		err   error
		kind  outcomeKind
		delay time.Duration
		text  string // of the cause; "" is none
	}{
		"no error is done":                       {nil, outcomeDone, 0, ""},
		"an error is retried":                    {io.EOF, outcomeRetry, 0, "EOF"},
		"a permanent nil is done":                {Permanent(nil), outcomeDone, 0, ""},
		"a permanent error is permanent":         {Permanent(io.EOF), outcomePermanent, 0, "EOF"},
		"a wrapped permanent error is permanent": {wrap(Permanent(wrap(io.EOF))), outcomePermanent, 0, "outer: outer: EOF"},
		"RetryAfter brings its delay":            {RetryAfter(time.Minute, io.EOF), outcomeRetryAfter, time.Minute, "EOF"},
		"RetryAfter needs no cause":              {RetryAfter(time.Minute, nil), outcomeRetryAfter, time.Minute, "retry asked for"},
		"a negative RetryAfter is at once":       {RetryAfter(-1, io.EOF), outcomeRetryAfter, 0, "EOF"},
		"a wrapped RetryAfter brings its delay":  {wrap(RetryAfter(time.Minute, io.EOF)), outcomeRetryAfter, time.Minute, "outer: EOF"},
		"the outer of two RetryAfter decides":    {RetryAfter(1, RetryAfter(2, io.EOF)), outcomeRetryAfter, 1, "EOF"},
		"the first of two RetryAfter decides":    {errors.Join(RetryAfter(1, nil), RetryAfter(2, nil)), outcomeRetryAfter, 1, "retry asked for\nretry asked for"},
		"Snooze alone has no cause":              {Snooze(time.Hour), outcomeSnooze, time.Hour, ""},
		"a negative Snooze is at once":           {Snooze(-time.Hour), outcomeSnooze, 0, ""},
		"a wrapped Snooze keeps the text":        {wrap(Snooze(time.Hour)), outcomeSnooze, time.Hour, "outer: snooze for 1h0m0s"},
		"Discard needs no cause":                 {Discard(nil), outcomeDiscard, 0, "discarded"},
		"Discard keeps its cause":                {wrap(Discard(io.EOF)), outcomeDiscard, 0, "outer: EOF"},
		"a panic is retried":                     {&PanicError{Value: "boom"}, outcomeRetry, 0, "panic: boom"},
		"a panic with an outcome has it":         {&PanicError{Value: Permanent(io.EOF)}, outcomePermanent, 0, "panic: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind, delay, cause := verdict(tc.err)
			require.Equal(t, tc.kind, kind)
			require.Equal(t, tc.delay, delay)
			if tc.text == "" {
				require.NoError(t, cause)
			} else {
				require.EqualError(t, cause, tc.text)
			}
			require.Equal(t, kind == outcomePermanent, IsPermanent(tc.err))
		})
	}

	t.Run("of several in one error is the strongest, however they are put together", func(t *testing.T) {
		t.Parallel()
		mark := map[outcomeKind]func(error) error{
			outcomeRetry:      wrap,
			outcomeRetryAfter: func(err error) error { return RetryAfter(time.Second, err) },
			outcomeSnooze:     func(err error) error { return errors.Join(Snooze(time.Minute), err) },
			outcomePermanent:  Permanent,
			outcomeDiscard:    Discard,
		}
		weakFirst := []outcomeKind{outcomeRetry, outcomeRetryAfter, outcomeSnooze, outcomePermanent, outcomeDiscard}
		for i, weak := range weakFirst {
			for _, strong := range weakFirst[i:] {
				for _, err := range []error{
					mark[weak](mark[strong](io.EOF)),
					mark[strong](mark[weak](io.EOF)),
					errors.Join(mark[weak](io.EOF), mark[strong](io.EOF)),
					errors.Join(mark[strong](io.EOF), mark[weak](io.EOF)),
					wrap(mark[weak](wrap(errors.Join(io.ErrClosedPipe, mark[strong](io.EOF))))),
				} {
					kind, _, cause := verdict(err)
					require.Equal(t, strong, kind, "%v with %v", weak, strong)
					require.ErrorIs(t, cause, io.EOF)
				}
			}
		}
	})
	t.Run("takes the delay from the mark that decides", func(t *testing.T) {
		t.Parallel()
		_, delay, _ := verdict(RetryAfter(time.Second, Snooze(time.Minute)))
		require.Equal(t, time.Minute, delay)
	})
	t.Run("lets the cause be seen through the mark", func(t *testing.T) {
		t.Parallel()
		for _, err := range []error{Permanent(io.EOF), RetryAfter(1, io.EOF), Discard(io.EOF)} {
			require.ErrorIs(t, err, io.EOF)
			require.EqualError(t, err, "EOF")
		}
	})
}

func TestIsPermanent(t *testing.T) {
	t.Parallel()

	t.Run("is false where a Discard leaves no post-mortem", func(t *testing.T) {
		t.Parallel()
		require.False(t, IsPermanent(Discard(Permanent(io.EOF))))
	})
	t.Run("is true for a Permanent in a RetryAfter, which it outweighs", func(t *testing.T) {
		t.Parallel()
		require.True(t, IsPermanent(RetryAfter(time.Second, Permanent(io.EOF))))
	})
}

type panickingText struct{}

func (panickingText) String() string { panic("again") }

func TestPanicError(t *testing.T) {
	t.Parallel()

	t.Run("unwraps to the error it was called with", func(t *testing.T) {
		t.Parallel()
		err := error(&PanicError{Value: fmt.Errorf("read: %w", io.EOF)})
		require.ErrorIs(t, err, io.EOF)
		require.EqualError(t, err, "panic: read: EOF")
	})
	t.Run("unwraps to nothing for another value", func(t *testing.T) {
		t.Parallel()
		require.NoError(t, (&PanicError{Value: "boom"}).Unwrap())
		require.NoError(t, (&PanicError{}).Unwrap())
	})
	t.Run("has a text even if its value cannot be printed", func(t *testing.T) {
		t.Parallel()
		require.NotPanics(t, func() { _ = (&PanicError{Value: panickingText{}}).Error() })
	})
}
