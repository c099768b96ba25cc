package pawl

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzCodecNumbers: no integer is rounded on its way through interface values,
// however it is nested.
func FuzzCodecNumbers(f *testing.F) {
	for _, n := range []int64{0, 1, -1, 1<<53 - 1, 1 << 53, 1<<53 + 1, -(1<<53 + 1), math.MaxInt64, math.MinInt64, 1e18 + 1} {
		f.Add(n, uint64(n))
	}
	f.Add(int64(0), uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, i int64, u uint64) {
		data, err := jsonCodec{}.Encode("kind", map[string]any{"i": i, "list": []any{u, map[string]any{"u": u}}})
		require.NoError(t, err)
		var got any
		require.NoError(t, jsonCodec{}.Decode("kind", data, &got))
		is, us := json.Number(strconv.FormatInt(i, 10)), json.Number(strconv.FormatUint(u, 10))
		require.Equal(t, map[string]any{"i": is, "list": []any{us, map[string]any{"u": us}}}, got)

		again, err := jsonCodec{}.Encode("kind", got)
		require.NoError(t, err)
		require.Equal(t, data, again, "and it is written as it was")
		var typed struct {
			I    int64 `json:"i"`
			List []any `json:"list"`
		}
		require.NoError(t, jsonCodec{}.Decode("kind", data, &typed))
		require.Equal(t, i, typed.I)
		require.Equal(t, us, typed.List[0])
	})
}

// FuzzCodecDecode: what is no JSON value, whole and alone, is refused, and what
// is one is read without loss.
func FuzzCodecDecode(f *testing.F) {
	for _, s := range []string{"", " ", "null", "true", `"a"`, "1", "-0", "1e999", "9007199254740993", "1.10", "[1,2]", `{"a":{"b":[null]}}`,
		" {} \r\n\t", "{}{}", "{} x", "{}\x00", "{}\u00a0", "\ufeff{}", "1 2", "[1", `{"a":1,"a":2}`, `"\ud800"`, "\"\xff\"", "tru", "nul", "01", "+1", "NaN", `{"a":1}//`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := string(data)
		var got any
		err := jsonCodec{}.Decode("kind", data, &got)
		require.Equal(t, before, string(data), "it only reads: the same bytes go into the post-mortem")
		require.Equal(t, json.Valid(data), err == nil, "%v", err)
		if err != nil {
			return
		}
		again, err := jsonCodec{}.Encode("kind", got)
		require.NoError(t, err)
		var back any
		require.NoError(t, jsonCodec{}.Decode("kind", again, &back))
		require.Equal(t, got, back)
	})
}
