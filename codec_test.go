package pawl

import (
	"encoding/json"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestJSONCodec(t *testing.T) {
	t.Parallel()
	var c Codec = jsonCodec{}

	t.Run("keeps integers above 2^53, in interfaces too", func(t *testing.T) {
		t.Parallel()
		const big = 1<<53 + 1
		type args struct {
			ID  int64
			Any any
			Map map[string]any
		}
		data, err := c.Encode("k", args{big, big, map[string]any{"deep": []any{int64(math.MaxInt64)}}})
		require.NoError(t, err)
		var got args
		require.NoError(t, c.Decode("k", data, &got))
		require.Equal(t, int64(big), got.ID)
		require.Equal(t, json.Number("9007199254740993"), got.Any)
		require.Equal(t, []any{json.Number("9223372036854775807")}, got.Map["deep"])
		again, err := c.Encode("k", got)
		require.NoError(t, err)
		require.Equal(t, data, again)
	})
	t.Run("ignores unknown fields", func(t *testing.T) {
		t.Parallel()
		var got struct{ A int }
		require.NoError(t, c.Decode("k", []byte(`{"A":1,"B":2}`), &got))
		require.Equal(t, 1, got.A)
	})
	t.Run("takes white space around the value", func(t *testing.T) {
		t.Parallel()
		var got int
		require.NoError(t, c.Decode("k", []byte(" \t\r\n7 \t\r\n"), &got))
		require.Equal(t, 7, got)
	})
	t.Run("treats bytes and raw messages as encoding/json does", func(t *testing.T) {
		t.Parallel()
		data, err := c.Encode("k", []byte("hi"))
		require.NoError(t, err)
		require.JSONEq(t, `"aGk="`, string(data))
		var b []byte
		require.NoError(t, c.Decode("k", data, &b))
		require.Equal(t, "hi", string(b))

		data, err = c.Encode("k", json.RawMessage(`{"a":1}`))
		require.NoError(t, err)
		var raw json.RawMessage
		require.NoError(t, c.Decode("k", data, &raw))
		require.Equal(t, `{"a":1}`, string(raw))
	})
	t.Run("does not keep or change the bytes it decodes", func(t *testing.T) {
		t.Parallel()
		data := []byte(`{"a":"xyz"}`)
		var raw json.RawMessage
		require.NoError(t, c.Decode("k", data, &raw))
		require.Equal(t, `{"a":"xyz"}`, string(data))
		clear(data)
		require.Equal(t, `{"a":"xyz"}`, string(raw))
	})
	for name, data := range map[string]string{
		"a second value":        `1 2`,
		"a brace too many":      `{"A":1}}`,
		"letters after the end": `{"A":1}x`,
		"a NUL after the end":   "1\x00",
		"an unfinished value":   `{"A":`,
		"nothing":               ``,
		"white space alone":     " \n",
		"what is not JSON":      `A=1`,
	} {
		t.Run("refuses "+name, func(t *testing.T) {
			t.Parallel()
			var got any
			require.Error(t, c.Decode("k", []byte(data), &got))
		})
	}
	t.Run("says that an empty payload is empty", func(t *testing.T) {
		t.Parallel()
		var got any
		err := c.Decode("k", nil, &got)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.NotErrorIs(t, err, io.EOF)
		require.ErrorContains(t, err, "empty payload")
	})
	t.Run("returns the error of a type that does not fit", func(t *testing.T) {
		t.Parallel()
		var got struct{ A int }
		var typeErr *json.UnmarshalTypeError
		require.ErrorAs(t, c.Decode("k", []byte(`{"A":"x"}`), &got), &typeErr)
		require.Equal(t, "A", typeErr.Field)
	})
	t.Run("returns an error for what JSON cannot hold", func(t *testing.T) {
		t.Parallel()
		for _, v := range []any{math.NaN(), make(chan int), func() {}} {
			_, err := c.Encode("k", v)
			require.Error(t, err)
		}
	})
	t.Run("gives back what it was given, and the same bytes for it", func(t *testing.T) {
		t.Parallel()
		type args struct {
			I int64
			U uint64
			F float64
			S string
			L []string
			M map[string]int64
		}
		rapid.Check(t, func(t *rapid.T) {
			in := args{
				rapid.Int64().Draw(t, "I"), rapid.Uint64().Draw(t, "U"), rapid.Float64().Draw(t, "F"),
				rapid.String().Draw(t, "S"), rapid.SliceOf(rapid.String()).Draw(t, "L"),
				rapid.MapOf(rapid.String(), rapid.Int64()).Draw(t, "M"),
			}
			data, err := c.Encode("k", in)
			require.NoError(t, err)
			same, err := c.Encode("k", in)
			require.NoError(t, err)
			require.Equal(t, data, same)
			var out args
			require.NoError(t, c.Decode("k", data, &out))
			require.Equal(t, in, out)
		})
	})
}

type linked struct {
	Next *linked
	More map[string][]linked
}

// Where an interface may be deep inside, its numbers must not be rounded; where
// there is none, the faster way is taken.
func TestAnInterfaceIsFoundWhereverItIs(t *testing.T) {
	t.Parallel()
	type deep struct {
		A []map[string][2]*struct{ B any }
	}
	for _, v := range []any{new(any), new(deep), new(map[string]any), new([]any), new(struct{ E error }), new(*deep)} {
		require.True(t, takesAny(reflect.TypeOf(v)), "%T", v)
	}
	require.True(t, takesAny(nil))
	for _, v := range []any{new(int), new(linked), new([]byte), new(struct{ T time.Time }), new(json.RawMessage), new(map[string]string)} {
		require.False(t, takesAny(reflect.TypeOf(v)), "%T", v)
	}
	var got deep
	require.NoError(t, jsonCodec{}.Decode("k", []byte(`{"A":[{"x":[{"B":9007199254740993},null]}]}`), &got))
	require.Equal(t, json.Number("9007199254740993"), got.A[0]["x"][0].B)
}

func BenchmarkDecode(b *testing.B) {
	for _, size := range []int{100, 10_000} {
		data, err := json.Marshal(parcel{strings.Repeat("x", size)})
		require.NoError(b, err)
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var p parcel
				if err := (jsonCodec{}).Decode("parcel", data, &p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
