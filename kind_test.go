package pawl

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

type plainArgs struct{ N int }

func (plainArgs) Kind() string { return "plain" }

type pointerArgs struct{ name string }

func (a *pointerArgs) Kind() string { return a.name }

type textArgs string

func (a textArgs) Kind() string { return string(a) }

type embeddingArgs struct{ Args }

func TestDefine(t *testing.T) {
	t.Parallel()

	t.Run("wraps a value so that only its codec sees it", func(t *testing.T) {
		t.Parallel()
		a := Define[map[string]int]("counts", Priority(3)).Args(map[string]int{"a": 1})
		require.Equal(t, "counts", a.Kind())
		require.Equal(t, []Option{Priority(3)}, a.(Optioner).JobOptions())
		require.Equal(t, map[string]int{"a": 1}, argsPayload(a))
		require.NoError(t, checkArgs(a))
	})
	t.Run("does not follow later changes of what it was given or gave", func(t *testing.T) {
		t.Parallel()
		opts := []Option{Priority(3)}
		k := Define[string]("text", opts...)
		opts[0] = Priority(4)
		k.Args("x").(Optioner).JobOptions()[0] = Priority(5)
		require.Equal(t, []Option{Priority(3)}, k.Args("x").(Optioner).JobOptions())
	})
	t.Run("takes a nil pointer, whose meaning is the codec's", func(t *testing.T) {
		t.Parallel()
		a := Define[*plainArgs]("boxed").Args(nil)
		require.NoError(t, checkArgs(a))
		require.Equal(t, (*plainArgs)(nil), argsPayload(a))
	})
	t.Run("reports a wrong name at enqueue, the zero Kind included", func(t *testing.T) {
		t.Parallel()
		require.ErrorIs(t, checkArgs(Define[int]("a\nb").Args(1)), ErrInvalid)
		require.ErrorIs(t, checkArgs(Kind[int]{}.Args(1)), ErrInvalid)
	})
	t.Run("reports a policy that makes no sense to the worker too", func(t *testing.T) {
		t.Parallel()
		rdb := redis.NewClient(&redis.Options{})
		defer func() { require.NoError(t, rdb.Close()) }()
		c, err := New(rdb, Config{})
		require.NoError(t, err)
		w, err := NewWorker(c, WorkerConfig{Queues: Queues("q")})
		require.NoError(t, err)
		Define[int]("n", MaxAttempts(-1)).Handle(w, func(context.Context, *Job[int]) error { return nil })
		err = w.Run(t.Context())
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, `kind "n": JobOptions: `)
	})
	t.Run("does not hide a type that has methods of its own", func(t *testing.T) {
		t.Parallel()
		a := Define[plainArgs]("other").Args(plainArgs{7})
		require.Equal(t, "other", a.Kind())
		require.Equal(t, plainArgs{7}, argsPayload(a))
	})
}

func TestArgs(t *testing.T) {
	t.Parallel()

	t.Run("are their own payload", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, plainArgs{7}, argsPayload(plainArgs{7}))
		p := &pointerArgs{"p"}
		require.Same(t, p, argsPayload(p))
	})

	for name, a := range map[string]Args{
		"a value":                        plainArgs{},
		"a pointer":                      &pointerArgs{"p"},
		"a pointer to a value type":      &plainArgs{},
		"an embedded kind":               embeddingArgs{plainArgs{}},
		"a kind of text in any alphabet": textArgs("почта.отправить"),
		"a kind of the greatest length":  textArgs(strings.Repeat("k", 255)),
	} {
		t.Run("may be "+name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, checkArgs(a))
		})
	}
	for name, a := range map[string]Args{
		"nil":                                 nil,
		"a nil pointer to a value type":       (*plainArgs)(nil),
		"a nil pointer whose method reads it": (*pointerArgs)(nil),
		"of a type whose Kind method panics":  embeddingArgs{},
		"without a kind":                      textArgs(""),
		"of a kind that is too long":          textArgs(strings.Repeat("k", 256)),
		"of a kind that is not UTF-8":         textArgs("\xff"),
		"of a kind with a line break":         textArgs("a\nb"),
		"of a kind with a NUL":                textArgs("a\x00"),
		"of a kind with DEL":                  textArgs("a\x7f"),
		"of a kind with a C1 control":         textArgs("a\u0085b"),
	} {
		t.Run("must not be "+name, func(t *testing.T) {
			t.Parallel()
			require.ErrorIs(t, checkArgs(a), ErrInvalid)
		})
	}
}
