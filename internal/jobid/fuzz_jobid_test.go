package jobid_test

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/jobid"
)

// canonicalText is the form that Text writes. What it does not say, the ranges
// of the two numbers, is what Text itself must accept.
var canonicalText = regexp.MustCompile(`^(0|[1-9][0-9]{0,17})-[1-9][0-9]{18,19}$`)

func FuzzFromText(f *testing.F) {
	for _, s := range []string{
		"", "-", "0-9223372036854775808", "281474976710655999-13835058055282163711",
		"1750000000123456-9223372036854775809", "01-9223372036854775808", "+1-9223372036854775808",
		"281474976710656000-9223372036854775808", "1-9223372036854775807", "1-13835058055282163712",
		"1-18446744073709551616", "18446744073709551617-9223372036854775808", "1-9223372036854775808-0",
		"1-9223372036854775808\n", " 1-9223372036854775808", "1_0-9223372036854775808", "٣-9223372036854775808",
		strings.Repeat("9", 40), strings.Repeat("0", 1000) + "1-9223372036854775808",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, ok := jobid.FromText(s)
		if !ok {
			require.Equal(t, uuid.Nil, id)
			return
		}
		require.Regexp(t, canonicalText, s)
		text, ok := jobid.Text(id)
		require.True(t, ok)
		require.Equal(t, s, text)
	})
}

func FuzzText(f *testing.F) {
	for _, s := range []string{
		"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
		"00000000-0000-7000-8000-000000000000", "ffffffff-ffff-73e7-bfff-ffffffffffff",
		"01977420-dc7b-71c8-8001-23456789abcd", "01977420-dc7b-73e8-8000-000000000001",
		"01977420-dc7b-41c8-8000-000000000001", "01977420-dc7b-71c8-c000-000000000001",
	} {
		id := uuid.MustParse(s)
		f.Add(id[:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var id uuid.UUID
		copy(id[:], b)
		fraction := int(id[6]&0xf)<<8 | int(id[7])
		text, ok := jobid.Text(id)
		require.Equal(t, id.Version() == 7 && id.Variant() == uuid.RFC4122 && fraction < 1000, ok)
		if !ok {
			require.Empty(t, text)
			return
		}
		require.Regexp(t, canonicalText, text)
		back, ok := jobid.FromText(text)
		require.True(t, ok)
		require.Equal(t, id, back)
	})
}

// FuzzOrder is about the ids that pawl makes, whose partition is 0, so that low
// has 19 digits. With one of 19 and one of 20 the texts 999-… and 1000-… may be
// of equal length and in the wrong order: code that sorts texts relies on this.
func FuzzOrder(f *testing.F) {
	f.Add(int64(0), uint64(0), int64(0), uint64(1))
	f.Add(int64(1750000000123456), uint64(1)<<52-1, int64(1750000000123457), uint64(0))
	f.Add(int64(999), uint64(7), int64(1000), uint64(7)) // another length
	f.Add(int64(1750000000123999), uint64(7), int64(1750000000124000), uint64(7))
	f.Add(microsMax, uint64(0), microsMax-1, uint64(5))
	f.Fuzz(func(t *testing.T, us int64, low uint64, us2 int64, low2 uint64) {
		us, us2 = max(us, 0)%(microsMax+1), max(us2, 0)%(microsMax+1)
		low, low2 = lowMin|low&(1<<52-1), lowMin|low2&(1<<52-1)
		a, b := jobid.FromParts(us, low), jobid.FromParts(us2, low2)
		order := cmp.Or(cmp.Compare(us, us2), cmp.Compare(low, low2))
		require.Equal(t, order, bytes.Compare(a[:], b[:]))
		require.Equal(t, us, jobid.Micros(a))
		require.Equal(t, us, jobid.Time(a).UnixMicro())

		text, ok := jobid.Text(a)
		require.True(t, ok)
		require.Equal(t, fmt.Sprintf("%d-%d", us, low), text)
		text2, ok := jobid.Text(b)
		require.True(t, ok)
		if len(text) == len(text2) {
			require.Equal(t, order, strings.Compare(text, text2))
		} else {
			require.Equal(t, cmp.Compare(len(text), len(text2)), cmp.Compare(us, us2))
		}
	})
}
