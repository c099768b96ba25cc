package jobid_test

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pawlq/pawl/internal/jobid"
)

const (
	lowMin    = uint64(1) << 63
	lowMax    = uint64(3)<<62 - 1
	microsMax = int64(1)<<48*1000 - 1
)

var (
	anyMicros = rapid.Int64Range(0, microsMax)
	anyLow    = rapid.Uint64Range(lowMin, lowMax)
)

func TestKnownIDs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, id string }{
		{"0-9223372036854775808", "00000000-0000-7000-8000-000000000000"},
		{"999-9223372036854775808", "00000000-0000-73e7-8000-000000000000"},
		{"1000-9223372036854775808", "00000000-0001-7000-8000-000000000000"},
		{"1750000000123456-9223372036854775809", "01977420-dc7b-71c8-8000-000000000001"},
		{"281474976710655999-13835058055282163711", "ffffffff-ffff-73e7-bfff-ffffffffffff"},
	} {
		id, ok := jobid.FromText(c.text)
		require.True(t, ok, c.text)
		require.Equal(t, c.id, id.String())
		text, ok := jobid.Text(uuid.MustParse(c.id))
		require.True(t, ok, c.id)
		require.Equal(t, c.text, text)
	}
}

func TestTextAndIDAreABijection(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		us, low := anyMicros.Draw(t, "us"), anyLow.Draw(t, "low")
		id := jobid.FromParts(us, low)
		require.Equal(t, uuid.Version(7), id.Version())
		require.Equal(t, uuid.RFC4122, id.Variant())
		require.Equal(t, us, jobid.Micros(id))
		require.Equal(t, us, jobid.Time(id).UnixMicro())

		text, ok := jobid.Text(id)
		require.True(t, ok)
		require.Equal(t, fmt.Sprintf("%d-%d", us, low), text)
		back, ok := jobid.FromText(text)
		require.True(t, ok)
		require.Equal(t, id, back)
	})
}

func TestIDsSortAsTheirStreamEntriesDo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		us, low := anyMicros.Draw(t, "us"), anyLow.Draw(t, "low")
		us2 := rapid.OneOf(rapid.Just(us), anyMicros, rapid.Int64Range(us, min(us+2000, microsMax))).Draw(t, "us2")
		low2 := anyLow.Draw(t, "low2")
		a, b := jobid.FromParts(us, low), jobid.FromParts(us2, low2)
		require.Equal(t, cmp.Or(cmp.Compare(us, us2), cmp.Compare(low, low2)), bytes.Compare(a[:], b[:]))
	})
}

func TestAnyUUIDEitherHasATextThatLeadsBackOrNone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var id uuid.UUID
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		if rapid.Bool().Draw(t, "v7") { // or nearly none would be
			id[6], id[8] = 7<<4|id[6]&0xf, 2<<6|id[8]&0x3f
		}
		text, ok := jobid.Text(id)
		fraction := int(id[6]&0xf)<<8 | int(id[7])
		require.Equal(t, id.Version() == 7 && id.Variant() == uuid.RFC4122 && fraction < 1000, ok)
		if ok {
			back, ok := jobid.FromText(text)
			require.True(t, ok)
			require.Equal(t, id, back)
		}
	})
}

func TestMalformedTextIsRefused(t *testing.T) {
	t.Parallel()
	const us, low = "1750000000123456", "9223372036854775809"
	_, ok := jobid.FromText(us + "-" + low)
	require.True(t, ok, "what the cases below are bent from")

	for name, text := range map[string]string{
		"empty":                       "",
		"no low":                      us,
		"empty low":                   us + "-",
		"empty us":                    "-" + low,
		"only a dash":                 "-",
		"two dashes":                  us + "--" + low,
		"three parts":                 us + "-" + low + "-0",
		"leading zero":                "0" + us + "-" + low,
		"leading zero in low":         us + "-0" + low,
		"double zero":                 "00-" + low,
		"plus":                        "+" + us + "-" + low,
		"plus in low":                 us + "-+" + low,
		"minus":                       "-" + us + "-" + low,
		"space before":                " " + us + "-" + low,
		"space after":                 us + "-" + low + " ",
		"newline":                     us + "-" + low + "\n",
		"NUL":                         us + "-" + low + "\x00",
		"underscore":                  "1_750_000-" + low,
		"hexadecimal":                 "0x10-" + low,
		"fraction":                    "1.5-" + low,
		"exponent":                    "1.75e15-" + low,
		"other digits":                "١٧٥-" + low,
		"another separator":           us + "|" + low,
		"stream wildcard":             us + "-*",
		"low of a plain stream id":    us + "-0",
		"variant 0":                   us + "-4611686018427387903",
		"variant 1, the last":         us + "-9223372036854775807",
		"variant 3, the first":        us + "-13835058055282163712",
		"low is 2^64-1":               us + "-18446744073709551615",
		"low is 2^64":                 us + "-18446744073709551616",
		"49 bits of ms":               "281474976710656000-" + low,
		"us is 2^63":                  "9223372036854775808-" + low,
		"us is 2^64":                  "18446744073709551616-" + low,
		"a UUID":                      "01977420-dc7b-71c8-8000-000000000001",
		"a long string":               strings.Repeat("9", 1<<20) + "-" + low,
		"a long string of zeros":      strings.Repeat("0", 1<<20),
		"something else after a dash": us + "-" + low[:18] + "x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, ok := jobid.FromText(text)
			require.False(t, ok)
			require.Equal(t, uuid.Nil, id)
		})
	}
}

func TestUUIDsThatAreNotJobsAreRefused(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{
		"nil":            "00000000-0000-0000-0000-000000000000",
		"max":            "ffffffff-ffff-ffff-ffff-ffffffffffff",
		"version 1":      "01977420-dc7b-11c8-8000-000000000001",
		"version 4":      "01977420-dc7b-41c8-8000-000000000001",
		"version 6":      "01977420-dc7b-61c8-8000-000000000001",
		"version 8":      "01977420-dc7b-81c8-8000-000000000001",
		"variant 0":      "01977420-dc7b-71c8-0000-000000000001",
		"variant 1":      "01977420-dc7b-71c8-7fff-ffffffffffff",
		"variant 3":      "01977420-dc7b-71c8-c000-000000000001",
		"fraction 1000":  "01977420-dc7b-73e8-8000-000000000001",
		"fraction 4095":  "01977420-dc7b-7fff-8000-000000000001",
		"from elsewhere": uuid.NewString(), // v4
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, ok := jobid.Text(uuid.MustParse(id))
			require.False(t, ok)
			require.Empty(t, text)
		})
	}
	for fraction := range 4096 {
		id := jobid.FromParts(0, lowMin)
		id[6], id[7] = 7<<4|byte(fraction>>8), byte(fraction)
		_, ok := jobid.Text(id)
		require.Equal(t, fraction < 1000, ok, "fraction %d", fraction)
	}
}

func TestNewLow(t *testing.T) {
	t.Parallel()
	const n = 1000
	seen := make(map[uint64]bool, n)
	var or, and uint64 = 0, 1<<64 - 1
	for range n {
		low := jobid.NewLow()
		seen[low] = true
		or, and = or|low, and&low
	}
	require.Len(t, seen, n)
	// A bit that should vary is the same 1000 times with odds of 2^-999.
	require.Equal(t, lowMin|(1<<52-1), or, "partition zero, every random bit seen set")
	require.Equal(t, lowMin, and, "variant 10, every random bit seen clear")
}

func TestTimeIsOfTheSameMoment(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 3, 4, 5, 6, 789_123_000, time.UTC)
	id := jobid.FromParts(at.UnixMicro(), jobid.NewLow())
	require.True(t, at.Equal(jobid.Time(id)))
}

// not parallel: testing.AllocsPerRun refuses to run beside other tests.
func TestAllocations(t *testing.T) {
	id := jobid.FromParts(1750000000123456, lowMax)
	text, _ := jobid.Text(id)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { _, _ = jobid.Text(id) }), 1.0)
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = jobid.FromText(text) }))
}

func BenchmarkText(b *testing.B) {
	id := jobid.FromParts(1750000000123456, lowMax)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = jobid.Text(id)
	}
}

func BenchmarkFromText(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = jobid.FromText("1750000000123456-13835058055282163711")
	}
}

func BenchmarkNewLow(b *testing.B) {
	for b.Loop() {
		_ = jobid.NewLow()
	}
}
