package record_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/record"
)

func TestAPlainJobCostsFourBytesMore(t *testing.T) {
	t.Parallel()
	r := record.Record{Kind: "welcome", Payload: make([]byte, 100)}
	require.Len(t, r.Append(nil), 4+len("welcome")+100)
	require.Equal(t, []byte{1, 0, 0, 0}, new(record.Record).Append(nil), "the zero record")
}

func TestHead(t *testing.T) {
	t.Parallel()
	zeros := make([]byte, 12)
	long := func(flags byte, patch map[int]byte) []byte { // patch counts from 1, as Lua does
		b := append([]byte{1, flags}, zeros...)
		for at, value := range patch {
			b[at-1] = value
		}
		return b
	}
	for name, c := range map[string]struct {
		r    record.Record
		head []byte
	}{
		"nothing set":          {record.Record{}, []byte{1, 0}},
		"priority":             {record.Record{Priority: 9}, []byte{1, 9}},
		"started":              {record.Record{Started: true, Priority: 3}, []byte{1, 19}},
		"long head asked for":  {record.Record{LongHead: true}, long(32, nil)},
		"crashes":              {record.Record{Crashes: 1}, long(32, map[int]byte{3: 1})},
		"crashes saturate":     {record.Record{Crashes: 256}, long(32, map[int]byte{3: 255})},
		"max crashes":          {record.Record{MaxCrashes: 3}, long(32, map[int]byte{4: 3})},
		"max crashes saturate": {record.Record{MaxCrashes: 1000}, long(32, map[int]byte{4: 255})},
		"visibility":           {record.Record{Visibility: 258 * time.Millisecond}, long(32, map[int]byte{7: 1, 8: 2})},
		"visibility rounds up": {record.Record{Visibility: 1}, long(32, map[int]byte{8: 1})},
		"visibility saturates": {record.Record{Visibility: math.MaxInt64}, long(32, map[int]byte{5: 255, 6: 255, 7: 255, 8: 255})},
		"due":                  {record.Record{Due: 0x010203040506}, long(32, map[int]byte{9: 1, 10: 2, 11: 3, 12: 4, 13: 5, 14: 6})},
		"due saturates": {record.Record{Due: math.MaxInt64},
			long(32, map[int]byte{9: 255, 10: 255, 11: 255, 12: 255, 13: 255, 14: 255})},
		"priority saturates": {record.Record{Priority: 100}, []byte{1, 9}},
		"negative is not set": {
			record.Record{Priority: -1, Crashes: -1, MaxCrashes: -1, Visibility: -1, Due: -1}, []byte{1, 0}},
		"negative is zero in a long head": {
			record.Record{LongHead: true, Priority: -1, Crashes: -1, MaxCrashes: -1, Visibility: -1, Due: -1}, long(32, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, append(c.head, 0, 0), c.r.Append(nil))
		})
	}
}

func TestAScriptCanPatchTheDueTimeOfALongHead(t *testing.T) {
	t.Parallel()
	r := record.Record{Kind: "k", LongHead: true, Payload: []byte("p")}
	b := r.Append(nil)
	copy(b[8:14], []byte{0x01, 0x97, 0x74, 0x22, 0x62, 0xa0}) // bytes 9..14 in Lua
	got, err := record.Decode(b)
	require.NoError(t, err)
	r.Due = 1750000100000
	require.Equal(t, &r, got)
}

func TestDurationsInMillisecondsAreRoundedUp(t *testing.T) {
	t.Parallel()
	const whole = math.MaxInt64 / 1_000_000 * 1_000_000
	for d, want := range map[time.Duration]time.Duration{
		1:                                time.Millisecond,
		time.Millisecond - 1:             time.Millisecond,
		time.Millisecond:                 time.Millisecond,
		time.Millisecond + 1:             2 * time.Millisecond,
		1500 * time.Microsecond:          2 * time.Millisecond,
		whole:                            whole,
		math.MaxInt64 - time.Microsecond: math.MaxInt64,
		math.MaxInt64:                    math.MaxInt64,
	} {
		got := recode(t, &record.Record{
			Timeout: d, ExpireIn: d,
			Unique: &record.Unique{For: d}, Idempotency: &record.Idempotency{Window: d},
			Backoff: &record.Backoff{Base: d, Max: d, Steps: []time.Duration{d}}, Failures: []record.Failure{{Took: d}},
		})
		require.Equal(t, want, got.Timeout)
		require.Equal(t, want, got.ExpireIn)
		require.Equal(t, want, got.Unique.For)
		require.Equal(t, want, got.Idempotency.Window)
		require.Equal(t, &record.Backoff{Base: d, Max: d, Steps: []time.Duration{d}}, got.Backoff, "exact")
		require.Equal(t, d, got.Failures[0].Took, "exact")
	}
}

func TestNoTimeoutIsNotTheDefaultTimeout(t *testing.T) {
	t.Parallel()
	require.Equal(t, time.Duration(-1), recode(t, &record.Record{Timeout: -1}).Timeout)
	require.Equal(t, time.Duration(-1), recode(t, &record.Record{Timeout: -time.Hour}).Timeout)
	require.Zero(t, recode(t, &record.Record{}).Timeout)
}

func TestNegativeNumbersAreStoredAsNotSet(t *testing.T) {
	t.Parallel()
	require.Equal(t, &record.Record{}, recode(t, &record.Record{
		Attempts: -1, MaxAttempts: -1, ExpireIn: -time.Second, Since: -1, FirstFailedAt: -1,
		Redrives: -1, UnknownSince: -1, PutBacks: -1, Snoozes: -1,
	}))
	got := recode(t, &record.Record{
		Unique:   &record.Unique{Until: -1, For: -time.Second, OnDuplicate: -1},
		Backoff:  &record.Backoff{Base: -1, Max: -1, Jitter: -1},
		Failures: []record.Failure{{Attempt: -1, At: -1, Took: -1}},
	})
	require.Equal(t, &record.Unique{}, got.Unique)
	require.Equal(t, &record.Backoff{}, got.Backoff)
	require.Equal(t, []record.Failure{{}}, got.Failures)
}

func TestEmptyIsReadBackAsNil(t *testing.T) {
	t.Parallel()
	require.Equal(t, &record.Record{}, recode(t, &record.Record{
		Payload: []byte{}, Headers: map[string]string{}, Failures: []record.Failure{}, Extra: []record.Field{},
	}))
	require.Equal(t, &record.Backoff{}, recode(t, &record.Record{Backoff: &record.Backoff{Steps: []time.Duration{}}}).Backoff)
}

func TestEqualRecordsHaveEqualBytes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 16, 17, 100} { // 16 keys are sorted on the stack
		var want []byte
		for range 20 { // maps are walked in another order each time
			headers := map[string]string{}
			for i := range n {
				headers[fmt.Sprint(i)] = "v"
			}
			b := (&record.Record{Headers: headers}).Append(nil)
			if want == nil {
				want = b
			}
			require.Equal(t, want, b)
		}
	}
}

func TestUnknownFieldsSurviveThisBuild(t *testing.T) {
	t.Parallel()
	r := &record.Record{Kind: "k", Extra: []record.Field{
		{Tag: 250, Value: []byte("z")}, {Tag: 200, Value: []byte("first")},
		{Tag: 200, Value: []byte("second")}, {Tag: 201},
	}}
	before := append([]record.Field(nil), r.Extra...)
	got := recode(t, r)
	require.Equal(t, []record.Field{r.Extra[1], r.Extra[2], r.Extra[3], r.Extra[0]}, got.Extra, "by rising tag")
	require.Equal(t, before, r.Extra, "Append sorts a copy")

	got.Attempts++
	require.Equal(t, got, recode(t, got), "a worker that changes the record keeps them")

	// A tag that ends the fields, or is written already, would spoil the rest.
	r = &record.Record{Attempts: 1, Extra: []record.Field{{Tag: 0}, {Tag: 2, Value: []byte{9}}}}
	require.Equal(t, &record.Record{Attempts: 1}, recode(t, r))
}

func TestStringsHoldAnyBytes(t *testing.T) {
	t.Parallel()
	s := "\x00\xff\xfe\n" + strings.Repeat("\x80", 300)
	r := &record.Record{
		Kind: s, Schedule: s, Payload: []byte(s), Headers: map[string]string{s: s, "": s},
		Unique: &record.Unique{Key: s}, Idempotency: &record.Idempotency{Key: s},
		Failures: []record.Failure{{Text: s}}, Dead: &record.PostMortem{Stack: s},
	}
	require.Equal(t, r, recode(t, r))
}

func TestPartsOfTheInputCannotBeAppendedInto(t *testing.T) {
	t.Parallel()
	r := &record.Record{Extra: []record.Field{{Tag: 200, Value: []byte("x")}}, Payload: []byte("payload")}
	b := append(r.Append(nil), "beyond"...)[:len(r.Append(nil))]
	whole := bytes.Clone(b[:cap(b)])
	got, err := record.Decode(b)
	require.NoError(t, err)
	_ = append(got.Payload, '!')
	_ = append(got.Extra[0].Value, '!')
	require.Equal(t, whole, b[:cap(b)])
}

func recode(t *testing.T, r *record.Record) *record.Record {
	t.Helper()
	got, err := record.Decode(r.Append(nil))
	require.NoError(t, err)
	return got
}
