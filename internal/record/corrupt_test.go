package record_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/record"
)

func TestCorruptRecordsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	huge := binary.AppendUvarint(nil, math.MaxUint64)
	tooWide := bytes.Repeat([]byte{0xff}, 11)
	field := func(tag byte, value ...byte) []byte {
		return slices.Concat([]byte{1, 0, 1, 'k', tag, byte(len(value))}, value, []byte{0})
	}
	double := func(f float64) []byte {
		return binary.BigEndian.AppendUint64([]byte{0, 0, 0}, math.Float64bits(f))
	}
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"nil":                        {nil, "head: cut short"},
		"one byte":                   {[]byte{1}, "head: cut short"},
		"version 0":                  {[]byte{0, 0, 0, 0}, "head: unknown version"},
		"version 2":                  {[]byte{2, 0, 0, 0}, "head: unknown version"},
		"foreign text":               {[]byte(`{"kind":"welcome"}`), "head: unknown version"},
		"flag 64":                    {[]byte{1, 64, 0, 0}, "head: unknown flag"},
		"flag 128":                   {[]byte{1, 128, 0, 0}, "head: unknown flag"},
		"priority 10":                {[]byte{1, 10, 0, 0}, "head: priority above 9"},
		"a short long head":          {append([]byte{1, 32}, make([]byte, 11)...), "head: cut short"},
		"no kind":                    {[]byte{1, 0}, "kind: cut short"},
		"a short kind":               {[]byte{1, 0, 5, 'k'}, "kind: cut short"},
		"a kind of 2^64-1 bytes":     {slices.Concat([]byte{1, 0}, huge, []byte("k")), "kind: cut short"},
		"a length above 64 bits":     {slices.Concat([]byte{1, 0}, tooWide), "kind: a number above 64 bits"},
		"no end of fields":           {[]byte{1, 0, 1, 'k'}, "fields: cut short"},
		"a tag and no length":        {[]byte{1, 0, 1, 'k', 2}, "field 2: cut short"},
		"a field of 2^64-1 bytes":    {slices.Concat([]byte{1, 0, 1, 'k', 1}, huge), "field 1: cut short"},
		"an unknown field cut short": {[]byte{1, 0, 1, 'k', 200, 9, 1}, "field 200: cut short"},
		"an unknown field, huge":     {slices.Concat([]byte{1, 0, 1, 'k', 200}, huge), "field 200: cut short"},
		"a number with no bytes":     {field(2), "field 2: cut short"},
		"half a number":              {field(2, 0x80), "field 2: cut short"},
		"a number and more":          {field(2, 1, 1), "field 2: bytes left over"},
		"a number of 2^64-1":         {field(2, huge...), "field 2: a number above 63 bits"},
		"a number above 64 bits":     {field(2, tooWide...), "field 2: a number above 64 bits"},
		"a timeout of -2 ms":         {field(4, 3), "field 4: a duration out of range"},
		"a timeout of 293 years":     {field(4, binary.AppendVarint(nil, 9223372036856)...), "field 4: a duration out of range"},
		"an expiry of 293 years":     {field(6, binary.AppendUvarint(nil, 9223372036856)...), "field 6: a duration out of range"},
		"half a factor":              {field(5, 0, 0, 0, 1, 2), "field 5: cut short"},
		"a factor of NaN":            {field(5, double(math.NaN())...), "field 5: a number that is not finite"},
		"an infinite factor":         {field(5, double(math.Inf(-1))...), "field 5: a number that is not finite"},
		"half a step":                {field(5, append(double(1), 1, 0x80)...), "field 5: cut short"},
		"a key of 2^64-1 bytes":      {field(8, huge...), "field 8: cut short"},
		"a unique key and no more":   {field(8, 1, 'k'), "field 8: cut short"},
		"a header without value":     {field(1, 1, 'k'), "field 1: cut short"},
		"a failure and more":         {field(9, 0, 0, 0, 0, 0), "field 9: bytes left over"},
		"an empty post-mortem":       {field(17), "field 17: cut short"},
		"a field twice":              {[]byte{1, 0, 1, 'k', 2, 1, 1, 2, 1, 1, 0}, "field 2: there twice"},
		"a field twice, apart":       {[]byte{1, 0, 1, 'k', 2, 1, 1, 3, 1, 1, 2, 1, 1, 0}, "field 2: there twice"},
		"a header twice":             {[]byte{1, 0, 1, 'k', 1, 2, 0, 0, 1, 2, 0, 0, 0}, "field 1: the same header twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := record.Decode(c.b)
			require.ErrorIs(t, err, record.ErrCorrupt)
			require.EqualError(t, err, "record: corrupt: "+c.want)
			require.Nil(t, r)
		})
	}
}

func TestFieldsAreTakenInAnyOrder(t *testing.T) {
	t.Parallel()
	r, err := record.Decode([]byte{1, 0, 1, 'k', 250, 0, 3, 1, 7, 200, 1, 'x', 2, 1, 5, 0, 'p'})
	require.NoError(t, err)
	require.Equal(t, &record.Record{
		Kind: "k", Payload: []byte("p"), Attempts: 5, MaxAttempts: 7,
		Extra: []record.Field{{Tag: 200, Value: []byte("x")}, {Tag: 250}},
	}, r)
}

func TestATruncatedRecordIsCorruptOrHasAShorterPayload(t *testing.T) {
	t.Parallel()
	for name, full := range golden() {
		b := readHex(t, name)
		for n := range b {
			r, err := record.Decode(b[:n:n])
			if n < len(b)-len(full.Payload) {
				require.ErrorIs(t, err, record.ErrCorrupt, "%s cut to %d bytes", name, n)
				continue
			}
			require.NoError(t, err, "%s cut to %d bytes", name, n)
			require.Len(t, r.Payload, n-(len(b)-len(full.Payload)))
		}
	}
}

func TestEachByteChangedIsCorruptOrAnotherRecord(t *testing.T) {
	t.Parallel()
	b := readHex(t, "full")
	for i := range b {
		for _, value := range []byte{0, 1, 0x7f, 0x80, 0xff, b[i] ^ 1, b[i] ^ 0x80} {
			changed := bytes.Clone(b)
			changed[i] = value
			requireTotal(t, changed)
		}
	}
}
