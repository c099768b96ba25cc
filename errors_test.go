package pawl

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrors(t *testing.T) {
	t.Parallel()

	all := []error{
		ErrInvalid, ErrName, ErrTooLarge, ErrDuplicate, ErrFull, ErrUnconfirmed, ErrNotFound,
		ErrState, ErrTimeout, ErrCancelled, ErrShutdown, ErrLeaseLost,
	}

	t.Run("begin with the name of the package", func(t *testing.T) {
		t.Parallel()
		for _, err := range all {
			require.Regexp(t, "^pawl: ", err.Error())
		}
	})
	t.Run("are told apart, except that what is refused is invalid", func(t *testing.T) {
		t.Parallel()
		for i, a := range all {
			for j, b := range all {
				refused := b == ErrInvalid && (a == ErrName || a == ErrTooLarge)
				require.Equal(t, i == j || refused, errors.Is(a, b), "%v is %v", a, b)
			}
		}
	})
	t.Run("of invalidf are ErrInvalid and keep their cause", func(t *testing.T) {
		t.Parallel()
		err := invalidf("part %d: %w", 2, io.ErrUnexpectedEOF)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.EqualError(t, err, "pawl: invalid: part 2: unexpected EOF")
	})
	t.Run("say the name of the package once", func(t *testing.T) {
		t.Parallel()
		q := &queueState{name: "mail"}
		require.NoError(t, q.wrap("schedule", nil))
		err := q.wrap("schedule", &placed{`schedule "x"`, invalidf("it: %w", io.ErrUnexpectedEOF)})
		require.EqualError(t, err, `pawl: schedule mail: schedule "x": invalid: it: unexpected EOF`)
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.EqualError(t, q.wrap("get", ErrNotFound), "pawl: get mail: not found")
	})
}
