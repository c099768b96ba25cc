package pawl

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClassify(t *testing.T) {
	t.Parallel()

	run := func(m Middleware, err error) error {
		return m(func(context.Context, *RawJob) error { return err })(t.Context(), &RawJob{})
	}
	eofIsPermanent := Classify(func(err error) error {
		if errors.Is(err, io.EOF) {
			return Permanent(err)
		}
		return err
	})

	t.Run("turns an error into an outcome", func(t *testing.T) {
		t.Parallel()
		require.True(t, IsPermanent(run(eofIsPermanent, io.EOF)))
		require.False(t, IsPermanent(run(eofIsPermanent, io.ErrClosedPipe)))
		require.ErrorIs(t, run(eofIsPermanent, io.ErrClosedPipe), io.ErrClosedPipe)
	})
	t.Run("does not ask about success", func(t *testing.T) {
		t.Parallel()
		require.NoError(t, run(Classify(func(err error) error {
			t.Error("asked about", err)
			return io.EOF
		}), nil))
	})
	t.Run("ends the job as done if the answer is nil", func(t *testing.T) {
		t.Parallel()
		require.NoError(t, run(Classify(func(error) error { return nil }), io.EOF))
	})
	t.Run("passes context and job on", func(t *testing.T) {
		t.Parallel()
		type key struct{}
		ctx, job := context.WithValue(t.Context(), key{}, 1), &RawJob{}
		require.NoError(t, eofIsPermanent(func(c context.Context, j *RawJob) error {
			require.Equal(t, ctx, c)
			require.Same(t, job, j)
			return nil
		})(ctx, job))
	})
	t.Run("without a function is no middleware", func(t *testing.T) {
		t.Parallel()
		require.Nil(t, Classify(nil))
	})
}
