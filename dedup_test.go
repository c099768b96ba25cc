package pawl

import (
	"errors"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestKey(t *testing.T) {
	t.Parallel()

	type userID int64
	type slug string
	number, moment := 42, time.Date(2026, 3, 1, 12, 0, 0, 5, time.FixedZone("", 3600))
	pointer := &number
	for name, tc := range map[string]struct {
		parts []any
		want  string
	}{
		"nothing":             {nil, ""},
		"one text":            {[]any{"order"}, "order"},
		"text and number":     {[]any{"order", 42}, "order:42"},
		"a colon":             {[]any{"a:b"}, `a\:b`},
		"a backslash":         {[]any{`a\b`}, `a\\b`},
		"an empty part":       {[]any{""}, `\e`},
		"empty parts":         {[]any{"", "a", ""}, `\e:a:\e`},
		"what looks empty":    {[]any{`\e`}, `\\e`},
		"bytes":               {[]any{[]byte("a\x00\xff")}, "a\x00\xff"},
		"named types":         {[]any{userID(7), slug("s")}, "7:s"},
		"big integers":        {[]any{int64(math.MinInt64), uint64(math.MaxUint64)}, "-9223372036854775808:18446744073709551615"},
		"floats":              {[]any{0.1, 1.0, 1e300, float32(0.1)}, "0.1:1:1e+300:0.1"},
		"booleans":            {[]any{true, false}, "true:false"},
		"a time in UTC":       {[]any{moment}, `2026-03-01T11\:00\:00.000000005Z`},
		"a pointer to a time": {[]any{&moment}, `2026-03-01T11\:00\:00.000000005Z`},
		"a duration":          {[]any{90 * time.Second}, "1m30s"},
		"a UUID":              {[]any{uuid.UUID{15: 1}}, "00000000-0000-0000-0000-000000000001"},
		"an address":          {[]any{netip.MustParseAddr("::1")}, `\:\:1`},
		"an error":            {[]any{errors.New("x")}, "x"},
		"nil":                 {[]any{nil}, "<nil>"},
		"a pointer":           {[]any{&number, &pointer}, "42:42"},
		"nil pointers":        {[]any{(*int)(nil), (*time.Time)(nil), (*uuid.UUID)(nil)}, "<nil>:<nil>:<nil>"},
		"a list":              {[]any{[]string{"a", "b"}}, `[]string{"a", "b"}`},
		"a struct":            {[]any{struct{ a, B int }{1, 2}}, `struct { a int; B int }{a\:1, B\:2}`},
		"a map":               {[]any{map[string]int{"b": 2, "a": 1}}, `map[string]int{"a"\:1, "b"\:2}`},
	} {
		t.Run("writes "+name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, Key(tc.parts...))
		})
	}

	t.Run("tells apart what joining would not", func(t *testing.T) {
		t.Parallel()
		require.NotEqual(t, Key("a", "bc"), Key("ab", "c"))
		require.NotEqual(t, Key("a:b"), Key("a", "b"))
		require.NotEqual(t, Key(`a\`, "b"), Key(`a\:b`))
		require.NotEqual(t, Key("a", ""), Key("a"))
		require.NotEqual(t, Key([]string{"a b"}), Key([]string{"a", "b"}))
	})
	t.Run("is not empty for an empty part, or Unique would take the arguments", func(t *testing.T) {
		t.Parallel()
		require.NotEmpty(t, Key(""))
	})
	t.Run("is the same for one moment in two zones and with a monotonic clock", func(t *testing.T) {
		t.Parallel()
		now := time.Now()
		require.Equal(t, Key(now), Key(now.UTC().Round(0)))
		require.Equal(t, Key(now), Key(now.In(time.FixedZone("X", -7200))))
	})
	t.Run("survives a Stringer that panics", func(t *testing.T) {
		t.Parallel()
		require.NotPanics(t, func() { Key(panickingText{}) })
	})
	t.Run("differs for different lists of strings", func(t *testing.T) {
		t.Parallel()
		// Few letters, or two lists would never be near each other.
		lists := rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune(`a:\e`)), 0, 3, -1), 0, 3)
		rapid.Check(t, func(t *rapid.T) {
			a, b := lists.Draw(t, "a"), lists.Draw(t, "b")
			require.Equal(t, slices.Equal(a, b), keyOf(a) == keyOf(b), "%q, %q", a, b)
		})
	})
	t.Run("can be taken apart again", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			parts := rapid.SliceOfN(rapid.String(), 1, 5).Draw(t, "parts")
			require.Equal(t, parts, splitKey(keyOf(parts)))
		})
	})
}

func keyOf(parts []string) string {
	list := make([]any, len(parts))
	for i, p := range parts {
		list[i] = p
	}
	return Key(list...)
}

// splitKey undoes Key for strings: that it can be written proves that Key
// loses nothing.
func splitKey(key string) []string {
	parts := []string{""}
	for i := 0; i < len(key); i++ {
		last := &parts[len(parts)-1]
		switch c := key[i]; {
		case c == ':':
			parts = append(parts, "")
		case c == '\\' && key[i+1] == 'e':
			i++
		case c == '\\':
			i++
			*last += string(key[i])
		default:
			*last += string([]byte{c})
		}
	}
	return parts
}

func TestUnique(t *testing.T) {
	t.Parallel()

	for name, u := range map[string]Unique{
		"zero":                         {},
		"a key of any bytes":           {Key: "\x00\xff{}"},
		"a key of the greatest length": {Key: strings.Repeat("k", maxUniqueKey)},
		"everything":                   {Key: "k", Until: UntilStarted, For: time.Hour, OnDuplicate: RejectDuplicate},
		"a replacement":                {Key: "k", Until: UntilStarted, For: time.Hour, OnDuplicate: ReplaceWaiting},
		"the latest":                   {Key: "k", For: time.Hour, OnDuplicate: RunLatestAfter},
	} {
		t.Run("may be "+name, func(t *testing.T) {
			t.Parallel()
			s, err := resolve([]Option{u}, nil)
			require.NoError(t, err)
			require.Equal(t, &u, s.unique)
		})
	}
	for name, tc := range map[string]struct {
		u    Unique
		says string
	}{
		"of a key that is too long":   {Unique{Key: strings.Repeat("k", maxUniqueKey+1)}, "a hash of it"},
		"until something unknown":     {Unique{Until: 2}, "use UntilDone or UntilStarted"},
		"until something negative":    {Unique{Until: -1}, "use UntilDone or UntilStarted"},
		"for a negative time":         {Unique{For: -1}, "leave it out"},
		"for more than 100 years":     {Unique{For: maxWait + 1}, "100 years"},
		"with an unknown OnDuplicate": {Unique{OnDuplicate: 4}, "use KeepExisting, RejectDuplicate, ReplaceWaiting or RunLatestAfter"},
		"with a negative OnDuplicate": {Unique{OnDuplicate: -1}, "use KeepExisting, RejectDuplicate, ReplaceWaiting or RunLatestAfter"},
		"the latest until started":    {Unique{OnDuplicate: RunLatestAfter, Until: UntilStarted}, "leave out one of them"},
	} {
		t.Run("must not be "+name, func(t *testing.T) {
			t.Parallel()
			_, err := resolve([]Option{tc.u}, nil)
			require.ErrorIs(t, err, ErrInvalid)
			require.ErrorContains(t, err, tc.says)
		})
	}
	t.Run("holds its key, or else one made from kind and arguments", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, "mine", uniqueKeyText(Unique{Key: "mine"}, "kind", []byte("x")))
		// From sha256sum, so that a program in another language can agree.
		require.Equal(t, "kind:2d711642b726b04401627ca9fbac32f5", uniqueKeyText(Unique{}, "kind", []byte("x")))
		require.Equal(t, "kind:e3b0c44298fc1c149afbf4c8996fb924", uniqueKeyText(Unique{}, "kind", nil))
		require.NotEqual(t, uniqueKeyText(Unique{}, "a", nil), uniqueKeyText(Unique{}, "b", nil))
	})
	t.Run("can be compared", func(t *testing.T) {
		t.Parallel()
		require.True(t, Option(Unique{Key: "k"}) == Option(Unique{Key: "k"}))
		require.False(t, Option(Unique{Key: "k"}) == Option(Unique{Key: "l"}))
	})
}
