package record_test

import (
	"encoding/binary"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/record"
)

// not parallel: testing.AllocsPerRun refuses to run beside other tests.
func TestAppendDoesNotAllocate(t *testing.T) {
	buffer := make([]byte, 0, 4096)
	for name, r := range golden() {
		require.Zero(t, testing.AllocsPerRun(100, func() { buffer = r.Append(buffer[:0]) }), name)
	}
	payload := make([]byte, 100)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r := record.Record{Kind: "welcome", Payload: payload} // stays on the stack
		buffer = r.Append(buffer[:0])
	}))
	plain := golden()["plain"]
	require.Equal(t, 1.0, testing.AllocsPerRun(100, func() { buffer = plain.Append(nil) }))
}

// not parallel: testing.AllocsPerRun refuses to run beside other tests.
func TestHostileLengthsDoNotAllocate(t *testing.T) {
	const runs = 100
	huge := binary.AppendUvarint(nil, math.MaxInt64)
	for _, tag := range []byte{1, 5, 8, 9, 15, 16, 17, 200} {
		claimed := slices.Concat([]byte{1, 0, 1, 'k', tag}, huge, make([]byte, 100))
		inner := slices.Concat([]byte{1, 0, 1, 'k', tag, byte(len(huge))}, huge, []byte{0})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			_, _ = record.Decode(claimed)
			_, _ = record.Decode(inner)
		}
		runtime.ReadMemStats(&after)
		require.Less(t, (after.TotalAlloc-before.TotalAlloc)/runs, uint64(4096), "tag %d", tag)
	}
}

func BenchmarkAppendPlain(b *testing.B) {
	r := &record.Record{Kind: "welcome", Payload: make([]byte, 100)}
	buffer := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		buffer = r.Append(buffer[:0])
	}
}

func BenchmarkAppendFull(b *testing.B) {
	r := fullRecord()
	buffer := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buffer = r.Append(buffer[:0])
	}
}

func BenchmarkDecodePlain(b *testing.B) {
	stored := (&record.Record{Kind: "welcome", Payload: make([]byte, 100)}).Append(nil)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = record.Decode(stored)
	}
}

func BenchmarkDecodeFull(b *testing.B) {
	stored := fullRecord().Append(nil)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = record.Decode(stored)
	}
}
