// Package jobid maps a job's id, a UUIDv7, to the id of the stream entry that
// holds the job, and back.
//
// A stream entry is found by its id in O(log n), so a job whose id is its
// address needs no index. The two forms carry the same bits:
//
//	stream entry   us "-" low
//	UUID           ms<<16 | 7<<12 | us mod 1000, then low
//
// us is microseconds since the epoch and ms = us/1000. low is the low half of
// the UUID, printed as an unsigned decimal: two variant bits (10), ten bits of
// partition, 52 random bits. The variant bit makes it at least 2^63, so it has
// 19 or 20 digits.
//
// RFC 9562 leaves the twelve bits after the version free (rand_a); they hold
// the microseconds of the millisecond here (its section 6.2, method 3), which
// is why only 1,000 of the 4,096 values belong to a job.
package jobid

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	version = 7
	variant = 2 // the two bits 10

	variantBits   = variant << 62
	partitionBits = 10
	randomBits    = 62 - partitionBits

	perMilli  = 1000
	maxMicros = 1<<48*perMilli - 1 // the UUID has 48 bits of milliseconds

	maxText = 18 + len("-") + 20
)

// FromText is the id of the job in the stream entry text. It is false for
// anything that [Text] cannot have made. That includes other spellings of the
// same numbers: two texts for one job would be two addresses.
func FromText(text string) (uuid.UUID, bool) {
	if len(text) > maxText { // strconv copies what it refuses into its error
		return uuid.Nil, false
	}
	left, right, ok := strings.Cut(text, "-")
	if !ok {
		return uuid.Nil, false
	}
	us, ok := canonical(left)
	if !ok || us > maxMicros {
		return uuid.Nil, false
	}
	low, ok := canonical(right)
	if !ok || low>>62 != variant {
		return uuid.Nil, false
	}
	return FromParts(int64(us), low), true
}

// Text is the id of the stream entry that holds the job. It is false for a
// UUID that is not a job's: another version or variant, or a fraction of 1000
// or more, whose text would be that of a later id.
func Text(id uuid.UUID) (string, bool) {
	high, low := halves(id)
	if high>>12&0xf != version || low>>62 != variant || high&0xfff >= perMilli {
		return "", false
	}
	b := make([]byte, 0, maxText)
	b = strconv.AppendInt(b, Micros(id), 10)
	b = append(b, '-')
	b = strconv.AppendUint(b, low, 10)
	return string(b), true
}

// FromParts is the id made of microseconds since the epoch and the low half.
// It checks nothing: us has to be in [0, 2^48*1000) and low to come from
// [NewLow] or from an id.
func FromParts(us int64, low uint64) uuid.UUID {
	var id uuid.UUID
	high := uint64(us/perMilli)<<16 | version<<12 | uint64(us%perMilli)
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], low)
	return id
}

// Micros is when the job was enqueued, in microseconds since the epoch, by the
// clock of its Redis server. Of a UUID that [Text] refuses it means nothing.
func Micros(id uuid.UUID) int64 {
	high, _ := halves(id)
	return int64(high>>16)*perMilli + int64(high&0xfff)
}

// Time is [Micros] as a time, in the local zone as time.UnixMicro has it.
func Time(id uuid.UUID) time.Time { return time.UnixMicro(Micros(id)) }

// NewLow is a fresh low half: the variant, partition 0, and 52 bits from
// crypto/rand, since an id must not be guessed from its neighbours. Microseconds
// grow strictly within a queue, so the bits need to differ only between queues.
// It may be called from several goroutines.
func NewLow() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return variantBits | binary.BigEndian.Uint64(b[:])>>(64-randomBits)
}

func halves(id uuid.UUID) (high, low uint64) {
	return binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
}

// canonical reads a decimal that is written the way strconv writes it.
func canonical(s string) (uint64, bool) {
	if len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64) // refuses signs, spaces, underscores
	return n, err == nil
}
