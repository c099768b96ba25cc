package record

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

const (
	flagPriority = 0x0f
	flagStarted  = 1 << 4
	flagLong     = 1 << 5
	flagsUnused  = 0xff &^ (flagPriority | flagStarted | flagLong)

	maxPriority = 9
	longLen     = 12        // bytes of the long head
	maxDue      = 1<<48 - 1 // six bytes

	endOfFields = 0

	// plainLen is what a job without long texts or many headers needs beside
	// its kind and payload.
	plainLen = 2 + longLen + 2 + 64
)

// Append appends the record to b and returns the longer slice. Equal records
// give equal bytes. It allocates only to make b longer, and to sort more than
// sixteen headers; a nil b is made long enough for a plain job at once.
func (r *Record) Append(b []byte) []byte {
	if cap(b) == 0 {
		b = make([]byte, 0, plainLen+len(r.Kind)+len(r.Payload))
	}
	b = r.appendHead(b)
	b = appendString(b, r.Kind)
	b = r.appendFields(b)
	b = r.appendExtra(b)
	b = append(b, endOfFields)
	return append(b, r.Payload...)
}

func (r *Record) appendHead(b []byte) []byte {
	flags := byte(clamp(int64(r.Priority), maxPriority))
	if r.Started {
		flags |= flagStarted
	}
	if !r.LongHead && r.Crashes <= 0 && r.MaxCrashes <= 0 && r.Visibility <= 0 && r.Due <= 0 {
		return append(b, Version, flags)
	}
	b = append(b, Version, flags|flagLong,
		byte(clamp(int64(r.Crashes), math.MaxUint8)),
		byte(clamp(int64(r.MaxCrashes), math.MaxUint8)))
	b = binary.BigEndian.AppendUint32(b, uint32(clamp(millis(r.Visibility), math.MaxUint32)))
	due := uint64(clamp(r.Due, maxDue))
	b = binary.BigEndian.AppendUint16(b, uint16(due>>32))
	return binary.BigEndian.AppendUint32(b, uint32(due))
}

// appendExtra needs no merging with the known fields: tags are given out
// without gaps, so an unknown one is above them all.
func (r *Record) appendExtra(b []byte) []byte {
	extra := r.Extra
	if !slices.IsSortedFunc(extra, byTag) {
		extra = slices.Clone(extra)
		slices.SortStableFunc(extra, byTag)
	}
	for _, f := range extra {
		if f.Tag > lastTag {
			b = append(b, f.Tag)
			b = binary.AppendUvarint(b, uint64(len(f.Value)))
			b = append(b, f.Value...)
		}
	}
	return b
}

func byTag(a, b Field) int { return int(a.Tag) - int(b.Tag) }

// Values.

// clamp keeps a number that does not fit from becoming a small one.
func clamp(n, most int64) int64 { return min(max(n, 0), most) }

// millis rounds up, so that nothing that waits is early.
func millis(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

func appendUint[T ~int | ~int64](b []byte, n T) []byte {
	return binary.AppendUvarint(b, uint64(max(n, 0)))
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// Whole fields. Zero writes nothing.

func putInt[T ~int | ~int64](b []byte, tag byte, n T) []byte {
	if n <= 0 {
		return b
	}
	b, start := begin(b, tag)
	return end(appendUint(b, n), start)
}

func putMillis(b []byte, tag byte, d time.Duration) []byte {
	return putInt(b, tag, millis(d))
}

func putString(b []byte, tag byte, s string) []byte {
	if s == "" {
		return b
	}
	return appendString(append(b, tag), s)
}

// begin opens a field whose length is not known yet, end closes it. Few values
// are longer than 127 bytes, so one byte is left for the length and those few
// are moved: cheaper than encoding elsewhere and copying, or measuring first.
func begin(b []byte, tag byte) (_ []byte, start int) {
	return append(b, tag, 0), len(b) + 2
}

func end(b []byte, start int) []byte {
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(b)-start))
	b[start-1] = length[0]
	return slices.Insert(b, start, length[1:n]...)
}
