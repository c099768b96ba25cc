package pawl

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestRawJob(t *testing.T) {
	t.Parallel()

	t.Run("as a literal can be given to a handler", func(t *testing.T) {
		t.Parallel()
		job := &Job[plainArgs]{Args: plainArgs{1}}
		require.Empty(t, job.IdempotencyKey())
		require.False(t, job.LastAttempt())
		require.Nil(t, job.Client())
		require.NotPanics(t, func() { job.Logger().Error("discarded") })
		require.False(t, job.Logger().Enabled(t.Context(), slog.LevelError))
	})
	t.Run("has its id as idempotency key", func(t *testing.T) {
		t.Parallel()
		id := uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8057")
		require.Equal(t, "01890a5d-ac96-774b-bcce-b302099a8057", (&RawJob{ID: id}).IdempotencyKey())
		require.Equal(t, (&RawJob{ID: id}).IdempotencyKey(), (&RawJob{ID: id, Attempt: 3, Redrives: 1}).IdempotencyKey())
	})
	t.Run("has the key of its Idempotency instead, if it was enqueued with one", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, "charge:7", (&RawJob{ID: uuid.New(), idempotency: "charge:7"}).IdempotencyKey())
	})
	t.Run("knows its last attempt", func(t *testing.T) {
		t.Parallel()
		for attempt, last := range map[int]bool{1: false, 7: false, 8: true, 9: true} {
			require.Equal(t, last, (&RawJob{Attempt: attempt, MaxAttempts: 8}).LastAttempt(), "attempt %d", attempt)
		}
		require.True(t, (&RawJob{Attempt: 1, MaxAttempts: 1}).LastAttempt())
	})
	t.Run("logs what it is", func(t *testing.T) {
		t.Parallel()
		var out strings.Builder
		id := uuid.New()
		job := RawJob{ID: id, Queue: "emails", Kind: "welcome", Attempt: 2, log: slog.New(slog.NewJSONHandler(&out, nil))}
		job.Logger().Info("hello", "user", 42)
		var line map[string]any
		require.NoError(t, json.Unmarshal([]byte(out.String()), &line))
		delete(line, "time")
		require.Equal(t, map[string]any{
			"level": "INFO", "msg": "hello", "user": 42.0,
			"queue": "emails", "kind": "welcome", "job": id.String(), "attempt": 2.0,
		}, line)
	})
	t.Run("gives the client it was made with", func(t *testing.T) {
		t.Parallel()
		c := new(Client)
		require.Same(t, c, (&RawJob{client: c}).Client())
	})
}

func TestFromContext(t *testing.T) {
	t.Parallel()

	t.Run("finds the job of a handler, below it too", func(t *testing.T) {
		t.Parallel()
		job := &RawJob{Kind: "welcome"}
		ctx, cancel := context.WithCancel(withJob(t.Context(), job))
		defer cancel()
		got, ok := FromContext(ctx)
		require.True(t, ok)
		require.Same(t, job, got)
	})
	t.Run("finds nothing elsewhere", func(t *testing.T) {
		t.Parallel()
		for _, ctx := range []context.Context{t.Context(), withJob(t.Context(), nil)} {
			got, ok := FromContext(ctx)
			require.False(t, ok)
			require.Nil(t, got)
		}
	})
}

func TestHeaders(t *testing.T) {
	t.Parallel()

	key := strings.Repeat("k", maxHeaderKey)
	for name, h := range map[string]Headers{
		"none":                             nil,
		"the usual":                        {"traceparent": "00-4bf9-00f0-01", "tenant": "a b\tc\né"},
		"an empty value":                   {"k": ""},
		"a key of the greatest length":     {key: "v"},
		"as much as there may be together": {key: strings.Repeat("v", maxHeaders-maxHeaderKey)},
	} {
		t.Run("may have "+name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, checkHeaders(h))
		})
	}
	for name, h := range map[string]Headers{
		"an empty key":                      {"": "v"},
		"a key that is too long":            {key + "k": "v"},
		"a key with a space":                {"a b": "v"},
		"a key with a line break":           {"a\n": "v"},
		"a key with DEL":                    {"a\x7f": "v"},
		"a key that is not ASCII":           {"é": "v"},
		"a value that is not UTF-8":         {"k": "\xff"},
		"a byte more than allowed together": {key: strings.Repeat("v", maxHeaders-maxHeaderKey+1)},
		"too much in many":                  {"a": strings.Repeat("v", maxHeaders/2), "b": strings.Repeat("v", maxHeaders/2)},
	} {
		t.Run("must not have "+name, func(t *testing.T) {
			t.Parallel()
			require.ErrorIs(t, checkHeaders(h), ErrInvalid)
		})
	}
	t.Run("are refused without their values, which may be secret", func(t *testing.T) {
		t.Parallel()
		err := checkHeaders(Headers{"token": "s3cret\xff", "tok en": "s3cret", "t": "s3cret" + strings.Repeat("v", maxHeaders)})
		require.ErrorIs(t, err, ErrInvalid)
		require.NotContains(t, err.Error(), "s3cret")
	})
}
