package record

import (
	"encoding/binary"
	"math"
	"time"
)

// A reader takes values off the front of b. After the first that is wrong,
// every other is zero and err says what that first one was.
type reader struct {
	b   []byte
	err string // empty: none so far
}

func (v *reader) fail(why string) {
	if v.err == "" {
		v.err = why
	}
	v.b = nil
}

// take is the next n bytes, or nil if there are fewer.
func (v *reader) take(n uint64) []byte {
	if v.err != "" || n > uint64(len(v.b)) {
		v.fail("cut short")
		return nil
	}
	b := v.b[:n]
	v.b = v.b[n:]
	return b
}

func (v *reader) rest() []byte { return v.take(uint64(len(v.b))) }

func (v *reader) string() string { return string(v.take(v.uvarint())) }

func (v *reader) byte() byte {
	if b := v.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (v *reader) uvarint() uint64 {
	n, size := binary.Uvarint(v.b)
	switch {
	case size > 0:
		v.b = v.b[size:]
		return n
	case size < 0:
		v.fail("a number above 64 bits")
	default:
		v.fail("cut short")
	}
	return 0
}

func (v *reader) int64() int64 {
	n := v.uvarint()
	if n > math.MaxInt64 {
		v.fail("a number above 63 bits")
		return 0
	}
	return int64(n)
}

func (v *reader) int() int {
	n := v.int64()
	if n > math.MaxInt {
		v.fail("a number above 31 bits on a 32-bit machine")
		return 0
	}
	return int(n)
}

func (v *reader) nanos() time.Duration { return time.Duration(v.int64()) }

func (v *reader) millis() time.Duration { return v.fromMillis(v.int64()) }

// fromMillis is the inverse of [millis], which rounds the longest duration, 292
// years, up to more than a duration holds.
func (v *reader) fromMillis(ms int64) time.Duration {
	const longest = math.MaxInt64 / int64(time.Millisecond)
	switch {
	case ms < 0 || ms > longest+1:
		v.fail("a duration out of range")
		return 0
	case ms > longest:
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// float refuses what no calculation gets rid of again.
func (v *reader) float() float64 {
	b := v.take(8)
	if b == nil {
		return 0
	}
	f := math.Float64frombits(binary.BigEndian.Uint64(b))
	if math.IsNaN(f) || math.IsInf(f, 0) {
		v.fail("a number that is not finite")
		return 0
	}
	return f
}
