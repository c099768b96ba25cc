// Package record is the stored layout of a job, version 1: what the values of
// the jobs stream, the held hash and the dead stream look like.
//
// A record is a head, which Lua scripts read and patch in place, and a body,
// which only Go reads. Numbers of the head are big endian; a uvarint is that of
// encoding/binary (LEB128).
//
//	head   byte 1        1, the version
//	       byte 2        flags: bits 0-3 priority 0..9, bit 4 (16) started,
//	                     bit 5 (32) a long head follows, bits 6 and 7 are 0
//	long   byte 3        crashes, 255 means that or more
//	       byte 4        max crashes, 0 = not set
//	       bytes 5..8    visibility timeout in ms, 0 = not set
//	       bytes 9..14   due in ms since the epoch, 0 = the time in the job's id
//	body   kind          uvarint length, bytes
//	       fields        any number of: tag (1..255), uvarint length, bytes
//	       0             ends the fields
//	       payload       the rest
//
// So a plain job costs four bytes beside its kind and payload. Bytes are counted
// from 1, as Lua does. The tags and what their bytes hold are in fields.go.
//
// The layout is an API: workers of different builds and other languages share a
// queue. A field that is added takes the next tag, and a build that does not
// know it keeps it (see [Record.Extra]). What cannot be added so, be it one more
// value inside a field or one more flag, is a new version, and no build reads a
// version it does not know.
package record

import (
	"errors"
	"time"
)

// ErrCorrupt is what every error of [Decode] wraps: the bytes are not a record
// of a version this build knows. Nothing of them may be trusted.
var ErrCorrupt = errors.New("record: corrupt")

// Version is the first byte of every record.
const Version = 1

// A Record is one job as it is stored. In each field zero means "not set" and
// takes no space.
//
// Times are milliseconds since the epoch. A duration said to be in ms is rounded
// up when it is stored, so that nothing happens early; the others are exact.
//
// The caller has checked what it puts in, since encoding cannot fail: a number
// that does not fit is stored as the nearest that does, and a negative one as
// not set, except where a field says otherwise.
type Record struct {
	Priority   int           // 0..9, 9 first
	Started    bool          // it has been leased at least once
	Crashes    int           // workers it took down; 255 is the most that is kept
	MaxCrashes int           // at most 255; 0: the worker's policy
	Visibility time.Duration // in ms, below 2^32 of them (49 days); 0: the worker's
	Due        int64         // ms, below 2^48; 0: the time in the job's id
	// LongHead writes the long head even if all it holds is zero: a script that
	// is to set the due time needs the bytes to be there. Decode sets it
	// whenever there is one, so a record never loses its long head by itself.
	LongHead bool

	Kind    string
	Payload []byte // nil when empty
	Headers map[string]string

	Attempts    int           // failed ones so far
	MaxAttempts int           // 0: the worker's policy
	Timeout     time.Duration // of one run, in ms; negative: none, read back as -1
	Backoff     *Backoff      // nil: the worker's policy
	ExpireIn    time.Duration // in ms; 0: never
	Since       int64         // ms from which ExpireIn counts; 0: the time in the id
	Unique      *Unique
	Idempotency *Idempotency
	Schedule    string        // id of the schedule that made the job
	Tick        int64         // ms: the time of the schedule for which it was made
	Retain      time.Duration // in ms: for how long it is kept once it is over
	Then        []Then        // what follows it, in order

	Failures      []Failure // oldest first
	FirstFailedAt int64     // ms; outlives the failures that were cut off
	Redrives      int
	Snoozes       int
	PutBacks      int         // times it was put back because its kind was unknown
	UnknownSince  int64       // ms of the first of those
	Dead          *PostMortem // only in the dead stream
	End           *End        // only of a job that is over and kept
	Progress      *Progress   // of the last run; only in the dead stream

	// Extra holds the fields that this build does not know, by rising tag, the
	// order kept among equal ones. They are written back as they were, so that
	// an older worker does not destroy what a newer producer stored. Fields
	// with a tag that this build does know are not written.
	Extra []Field
}

// A Field is a tag and the bytes stored under it.
type Field struct {
	Tag   byte
	Value []byte
}

// Backoff is the wait before a retry, as pawl.Backoff has it. Durations are
// exact.
type Backoff struct {
	Base, Max time.Duration
	Factor    float64 // finite
	Jitter    int
	Steps     []time.Duration
}

// Unique is the deduplication key that a job holds.
type Unique struct {
	Key         string
	Until       int
	For         time.Duration // in ms
	OnDuplicate int
}

// Idempotency is the key that is checked around the handler.
type Idempotency struct {
	Key    string
	Window time.Duration // in ms
}

// Failure is one failed attempt.
type Failure struct {
	Attempt int           // from 1
	At      int64         // ms
	Took    time.Duration // exact
	Text    string
}

// Then is a job that is enqueued once this one is done.
type Then struct {
	How    string // "", at once, or "d <ms>", after a delay, or "a <ms>", at a time
	Record []byte
}

// End is how a job ended that is kept.
type End struct {
	State     string // done, cancelled, discarded
	At        int64  // ms
	Result    []byte // nil when empty
	HasResult bool   // an empty one is another thing than none
}

// Progress is what a run said of itself.
type Progress struct {
	Percent float64 // finite
	Note    string
}

// PostMortem is why, when and where a job died.
type PostMortem struct {
	Reason, Error, Stack string
	Worker, Build        string
	At                   int64 // ms
	MaxAttempts          int   // that applied to its last run
}
