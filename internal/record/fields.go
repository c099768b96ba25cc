package record

// The tags of version 1 and the bytes under each. A tag is never used again. A
// new one goes at the end and needs a line here, in appendFields and in setField;
// the golden test of a full record fails without them.
//
// int is a uvarint below 2^63, ms an int of milliseconds, ns an int of
// nanoseconds, str a uvarint length and that many bytes. A lone string has no
// length of its own: it is the whole field.
const (
	tagHeader        = 1 + iota // key str, value str; one field each, by rising key
	tagAttempts                 // int
	tagMaxAttempts              // int
	tagTimeout                  // zig-zag varint of ms; -1: no timeout
	tagBackoff                  // base ns, max ns, jitter int, factor as a big endian IEEE 754 double, steps ns until the end
	tagExpireIn                 // ms
	tagSince                    // ms
	tagUnique                   // key str, until int, for ms, on duplicate int
	tagFailure                  // attempt int, at ms, took ns, text str; one field each, oldest first
	tagFirstFailedAt            // ms
	tagRedrives                 // int
	tagUnknownSince             // ms
	tagPutBacks                 // int
	tagSnoozes                  // int
	tagSchedule                 // the bytes of the id
	tagIdempotency              // key str, window ms
	tagDead                     // reason str, error str, stack str, worker str, build str, at ms, most attempts int
	tagTick                     // ms
	tagRetain                   // ms
	tagThen                     // how str, a record until the end; one field each, in their order
	tagEnd                      // state str, at ms, result str, has a result int (0 or 1)
	tagProgress                 // percent as a big endian IEEE 754 double, note str

	lastTag = iota
)

// repeated has the bits of the tags that may occur more than once.
const repeated = 1<<tagHeader | 1<<tagFailure | 1<<tagThen

// appendFields writes the known fields by rising tag. It is a list of calls and
// not a table of functions: through a table the record would escape to the heap
// in every caller.
func (r *Record) appendFields(b []byte) []byte {
	b = putHeaders(b, r.Headers)
	b = putInt(b, tagAttempts, r.Attempts)
	b = putInt(b, tagMaxAttempts, r.MaxAttempts)
	b = putTimeout(b, r.Timeout)
	b = putBackoff(b, r.Backoff)
	b = putMillis(b, tagExpireIn, r.ExpireIn)
	b = putInt(b, tagSince, r.Since)
	b = putUnique(b, r.Unique)
	b = putFailures(b, r.Failures)
	b = putInt(b, tagFirstFailedAt, r.FirstFailedAt)
	b = putInt(b, tagRedrives, r.Redrives)
	b = putInt(b, tagUnknownSince, r.UnknownSince)
	b = putInt(b, tagPutBacks, r.PutBacks)
	b = putInt(b, tagSnoozes, r.Snoozes)
	b = putString(b, tagSchedule, r.Schedule)
	b = putIdempotency(b, r.Idempotency)
	b = putDead(b, r.Dead)
	b = putInt(b, tagTick, r.Tick)
	b = putMillis(b, tagRetain, r.Retain)
	b = putThen(b, r.Then)
	b = putEnd(b, r.End)
	b = putProgress(b, r.Progress)
	return b
}

// setField reads the value of one field into its place.
func (r *Record) setField(tag byte, v *reader) {
	switch tag {
	case tagHeader:
		r.addHeader(v)
	case tagAttempts:
		r.Attempts = v.int()
	case tagMaxAttempts:
		r.MaxAttempts = v.int()
	case tagTimeout:
		r.Timeout = v.timeout()
	case tagBackoff:
		r.Backoff = v.backoff()
	case tagExpireIn:
		r.ExpireIn = v.millis()
	case tagSince:
		r.Since = v.int64()
	case tagUnique:
		r.Unique = v.unique()
	case tagFailure:
		r.Failures = append(r.Failures, v.failure())
	case tagFirstFailedAt:
		r.FirstFailedAt = v.int64()
	case tagRedrives:
		r.Redrives = v.int()
	case tagUnknownSince:
		r.UnknownSince = v.int64()
	case tagPutBacks:
		r.PutBacks = v.int()
	case tagSnoozes:
		r.Snoozes = v.int()
	case tagSchedule:
		r.Schedule = string(v.rest())
	case tagIdempotency:
		r.Idempotency = v.idempotency()
	case tagDead:
		r.Dead = v.dead()
	case tagTick:
		r.Tick = v.int64()
	case tagRetain:
		r.Retain = v.millis()
	case tagThen:
		r.Then = append(r.Then, v.then())
	case tagEnd:
		r.End = v.end()
	case tagProgress:
		r.Progress = v.progress()
	}
}
