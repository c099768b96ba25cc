package record_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/record"
)

func FuzzDecode(f *testing.F) {
	for name := range golden() {
		b := readHex(f, name)
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Add([]byte{})
	f.Add([]byte{1, 32, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0})
	f.Add([]byte{1, 0, 1, 'k', 250, 0, 3, 1, 7, 200, 1, 'x', 2, 1, 5, 0, 'p'})
	f.Add([]byte{1, 0, 1, 'k', 200, 1, 'b', 100, 0, 200, 1, 'a', 200, 0, 0}) // one unknown tag three times
	f.Add(slices.Concat([]byte{1, 0, 1, 'k', 1}, binary.AppendUvarint(nil, math.MaxUint64)))
	// The most that a byte can cost: empty fields, steps, failures.
	f.Add(slices.Concat([]byte{1, 0, 0}, bytes.Repeat([]byte{200, 0}, 300), []byte{0}))
	f.Add(slices.Concat([]byte{1, 0, 0, 5, 139, 2, 0, 0, 0, 63, 240, 0, 0, 0, 0, 0, 0}, make([]byte, 256), []byte{0}))
	f.Add(slices.Concat([]byte{1, 0, 0}, bytes.Repeat([]byte{9, 4, 0, 0, 0, 0}, 100), []byte{0}))
	f.Fuzz(func(t *testing.T, b []byte) {
		requireBounded(t, b)
		requireTotal(t, b)
	})
}

// requireBounded holds what is allocated to be in proportion to the bytes. The
// dearest is a field of two bytes that becomes 32, in a slice that grows; no
// other test runs beside a fuzz target.
func requireBounded(t *testing.T, b []byte) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _ = record.Decode(b)
	runtime.ReadMemStats(&after)
	require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<10+128*len(b)))
}

// requireTotal holds what is true of any bytes.
func requireTotal(t *testing.T, b []byte) {
	t.Helper()
	before := bytes.Clone(b)
	r, err := record.Decode(b)
	require.Equal(t, before, b, "Decode only reads")
	if err != nil {
		require.ErrorIs(t, err, record.ErrCorrupt)
		require.Nil(t, r)
		return
	}
	again := r.Append(nil)
	require.LessOrEqual(t, len(again), len(b), "Append writes the shortest form")
	back, err := record.Decode(again)
	require.NoError(t, err)
	require.Equal(t, r, back)
	require.Equal(t, again, back.Append(nil))
	require.Equal(t, unknownFields(b), unknownFields(again), "what this build does not know survives it")
}

// FuzzRoundTrip gives Append any numbers at all. Those that fit come back as
// they were, and the others as the nearest that fits: none ever wraps.
func FuzzRoundTrip(f *testing.F) {
	for _, n := range []int64{0, 1, -1, 127, 128, 255, 256, 1<<31 - 1, 1<<32 - 1, 1 << 32, 1<<48 - 1, 1 << 48,
		999_999, 1_000_000, 1_000_001, math.MaxInt64 - 1, math.MaxInt64, math.MinInt64, math.MinInt64 + 1} {
		f.Add(n, n, n, n, float64(n), true, "k", "v", []byte("p"))
		f.Add(n, int64(0), -n, ^n, 1.5, false, "", "", []byte{})
	}
	f.Add(int64(9), int64(math.MaxUint32*int64(time.Millisecond)), int64(1)<<48, int64(1), math.SmallestNonzeroFloat64, false,
		string(bytes.Repeat([]byte("k"), 128)), "\x00\xff", bytes.Repeat([]byte{0}, 128))
	f.Add(int64(10), int64(time.Millisecond)+1, int64(7), int64(3), math.MaxFloat64, true, "é", string(bytes.Repeat([]byte("v"), 16384)), []byte{1, 0})
	f.Add(int64(3), int64(1), int64(1), int64(1), math.Copysign(0, -1), true, "k", "", []byte{0})
	f.Fuzz(func(t *testing.T, n, d, ms, m int64, factor float64, flag bool, key, text string, payload []byte) {
		if math.IsNaN(factor) || math.IsInf(factor, 0) {
			t.Skip("the caller checks that it is finite")
		}
		wait := time.Duration(d)
		r := record.Record{
			Priority: int(n), Started: flag, Crashes: int(m), MaxCrashes: int(n), Visibility: wait, Due: ms, LongHead: flag,
			Kind: key, Payload: payload, Headers: map[string]string{key: text, "other": ""},
			Attempts: int(n), MaxAttempts: int(m), Timeout: wait, ExpireIn: wait, Since: ms, Schedule: text,
			Backoff:     &record.Backoff{Base: wait, Max: time.Duration(n), Factor: factor, Jitter: int(m), Steps: []time.Duration{wait, 0, time.Duration(m)}},
			Unique:      &record.Unique{Key: key, Until: int(n), For: wait, OnDuplicate: int(m)},
			Idempotency: &record.Idempotency{Key: text, Window: wait},
			Failures:    []record.Failure{{Attempt: int(n), At: ms, Took: wait, Text: text}, {}},
			Redrives:    int(n), Snoozes: int(m), PutBacks: int(n), FirstFailedAt: ms, UnknownSince: m,
			Tick: ms, Retain: wait, Then: []record.Then{{How: key, Record: payload}, {}},
			End: &record.End{State: key, At: ms, Result: payload, HasResult: flag}, Progress: &record.Progress{Percent: factor, Note: text},
			Dead:  &record.PostMortem{Reason: key, Error: text, Stack: key, Worker: text, Build: key, At: ms, MaxAttempts: int(m)},
			Extra: []record.Field{{Tag: 200, Value: payload}, {Tag: 100, Value: []byte(key)}, {Tag: 1, Value: []byte("known, so not written")}},
		}
		b := r.Append([]byte("kept"))
		require.Equal(t, "kept", string(b[:4]))
		got, err := record.Decode(b[4:])
		require.NoError(t, err)
		require.Equal(t, nearest(&r), got)
		require.Equal(t, b[4:], got.Append(nil))
	})
}

// nearest is the record that a build which cannot be wrong would read back.
func nearest(r *record.Record) *record.Record {
	w := *r
	w.LongHead = r.LongHead || r.Crashes > 0 || r.MaxCrashes > 0 || r.Visibility > 0 || r.Due > 0
	most := func(n, most int) int { return min(max(n, 0), most) }
	w.Priority, w.Crashes, w.MaxCrashes = most(r.Priority, 9), most(r.Crashes, 255), most(r.MaxCrashes, 255)
	w.Visibility = min(upToMilli(r.Visibility), math.MaxUint32*time.Millisecond)
	w.Due = min(max(r.Due, 0), 1<<48-1)
	w.Payload = orNone(r.Payload)
	for _, n := range []*int{&w.Attempts, &w.MaxAttempts, &w.Redrives, &w.Snoozes, &w.PutBacks} {
		*n = max(*n, 0)
	}
	w.Since, w.FirstFailedAt, w.UnknownSince = max(w.Since, 0), max(w.FirstFailedAt, 0), max(w.UnknownSince, 0)
	w.ExpireIn, w.Retain = upToMilli(r.ExpireIn), upToMilli(r.Retain)
	w.Tick = max(w.Tick, 0)
	w.Then = []record.Then{{How: r.Then[0].How, Record: orNone(r.Then[0].Record)}, {}}
	w.End = &record.End{State: r.End.State, At: max(r.End.At, 0), Result: orNone(r.End.Result), HasResult: r.End.HasResult}
	if w.Timeout = upToMilli(r.Timeout); r.Timeout < 0 {
		w.Timeout = -1
	}
	b := *r.Backoff
	b.Base, b.Max, b.Jitter, b.Steps = max(b.Base, 0), max(b.Max, 0), max(b.Jitter, 0), slices.Clone(b.Steps)
	for i := range b.Steps {
		b.Steps[i] = max(b.Steps[i], 0)
	}
	w.Backoff = &b
	w.Unique = &record.Unique{Key: r.Unique.Key, Until: max(r.Unique.Until, 0), For: upToMilli(r.Unique.For), OnDuplicate: max(r.Unique.OnDuplicate, 0)}
	w.Idempotency = &record.Idempotency{Key: r.Idempotency.Key, Window: upToMilli(r.Idempotency.Window)}
	w.Failures = slices.Clone(r.Failures)
	for i := range w.Failures {
		f := &w.Failures[i]
		f.Attempt, f.At, f.Took = max(f.Attempt, 0), max(f.At, 0), max(f.Took, 0)
	}
	d := *r.Dead
	d.At, d.MaxAttempts = max(d.At, 0), max(d.MaxAttempts, 0)
	w.Dead = &d
	w.Extra = []record.Field{{Tag: 100, Value: orNone(r.Extra[1].Value)}, {Tag: 200, Value: orNone(r.Extra[0].Value)}}
	return &w
}

// upToMilli is the first whole millisecond that is no earlier, as far as a
// duration holds one.
func upToMilli(d time.Duration) time.Duration {
	switch part := d % time.Millisecond; {
	case d <= 0:
		return 0
	case part == 0:
		return d
	case d > math.MaxInt64-time.Millisecond:
		return math.MaxInt64
	default:
		return d - part + time.Millisecond
	}
}

func orNone(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
