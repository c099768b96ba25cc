package record

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// Each field of more than one value: how it is written and, below, read. A
// value cannot be added to one of these, only a tag to the list (a build that
// expects less finds bytes left over, and one that expects more finds too few).

// putHeaders sorts, so that equal records have equal bytes.
func putHeaders(b []byte, headers map[string]string) []byte {
	var few [16]string // on the stack
	keys := few[:0]
	for k := range headers {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		var start int
		b, start = begin(b, tagHeader)
		b = appendString(b, k)
		b = appendString(b, headers[k])
		b = end(b, start)
	}
	return b
}

func (r *Record) addHeader(v *reader) {
	key, value := v.string(), v.string()
	if _, twice := r.Headers[key]; twice {
		v.fail("the same header twice")
		return
	}
	if r.Headers == nil {
		r.Headers = make(map[string]string)
	}
	r.Headers[key] = value
}

// putTimeout keeps "no timeout", any negative one, apart from "not set".
func putTimeout(b []byte, d time.Duration) []byte {
	if d == 0 {
		return b
	}
	b, start := begin(b, tagTimeout)
	if d < 0 {
		b = binary.AppendVarint(b, -1)
	} else {
		b = binary.AppendVarint(b, millis(d))
	}
	return end(b, start)
}

func (v *reader) timeout() time.Duration {
	z := v.uvarint()
	ms := int64(z>>1) ^ -int64(z&1) // zig-zag
	if ms == -1 {
		return -1
	}
	return v.fromMillis(ms)
}

func putBackoff(b []byte, p *Backoff) []byte {
	if p == nil {
		return b
	}
	b, start := begin(b, tagBackoff)
	b = appendUint(b, p.Base.Nanoseconds())
	b = appendUint(b, p.Max.Nanoseconds())
	b = appendUint(b, p.Jitter)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(p.Factor))
	for _, step := range p.Steps {
		b = appendUint(b, step.Nanoseconds())
	}
	return end(b, start)
}

func (v *reader) backoff() *Backoff {
	p := &Backoff{Base: v.nanos(), Max: v.nanos(), Jitter: v.int(), Factor: v.float()}
	for len(v.b) > 0 {
		p.Steps = append(p.Steps, v.nanos())
	}
	return p
}

func putUnique(b []byte, u *Unique) []byte {
	if u == nil {
		return b
	}
	b, start := begin(b, tagUnique)
	b = appendString(b, u.Key)
	b = appendUint(b, u.Until)
	b = appendUint(b, millis(u.For))
	b = appendUint(b, u.OnDuplicate)
	return end(b, start)
}

func (v *reader) unique() *Unique {
	return &Unique{Key: v.string(), Until: v.int(), For: v.millis(), OnDuplicate: v.int()}
}

func putFailures(b []byte, failures []Failure) []byte {
	for i := range failures {
		f := &failures[i]
		var start int
		b, start = begin(b, tagFailure)
		b = appendUint(b, f.Attempt)
		b = appendUint(b, f.At)
		b = appendUint(b, f.Took.Nanoseconds())
		b = appendString(b, f.Text)
		b = end(b, start)
	}
	return b
}

func (v *reader) failure() Failure {
	return Failure{Attempt: v.int(), At: v.int64(), Took: v.nanos(), Text: v.string()}
}

func putIdempotency(b []byte, i *Idempotency) []byte {
	if i == nil {
		return b
	}
	b, start := begin(b, tagIdempotency)
	b = appendString(b, i.Key)
	b = appendUint(b, millis(i.Window))
	return end(b, start)
}

func (v *reader) idempotency() *Idempotency {
	return &Idempotency{Key: v.string(), Window: v.millis()}
}

func putDead(b []byte, p *PostMortem) []byte {
	if p == nil {
		return b
	}
	b, start := begin(b, tagDead)
	b = appendString(b, p.Reason)
	b = appendString(b, p.Error)
	b = appendString(b, p.Stack)
	b = appendString(b, p.Worker)
	b = appendString(b, p.Build)
	b = appendUint(b, p.At)
	b = appendUint(b, int64(p.MaxAttempts))
	return end(b, start)
}

func (v *reader) dead() *PostMortem {
	return &PostMortem{
		Reason: v.string(), Error: v.string(), Stack: v.string(),
		Worker: v.string(), Build: v.string(), At: v.int64(), MaxAttempts: v.int(),
	}
}

func putThen(b []byte, followers []Then) []byte {
	for i := range followers {
		var start int
		b, start = begin(b, tagThen)
		b = appendString(b, followers[i].How)
		b = append(b, followers[i].Record...)
		b = end(b, start)
	}
	return b
}

func (v *reader) then() Then {
	return Then{How: v.string(), Record: part(v.rest())}
}

func putEnd(b []byte, e *End) []byte {
	if e == nil {
		return b
	}
	has := 0
	if e.HasResult {
		has = 1
	}
	b, start := begin(b, tagEnd)
	b = appendString(b, e.State)
	b = appendUint(b, e.At)
	b = binary.AppendUvarint(b, uint64(len(e.Result)))
	b = append(b, e.Result...)
	b = appendUint(b, has)
	return end(b, start)
}

// Field is an end as it stands in a record, for a script that has the record itself and
// puts it in.
func (e *End) Field() []byte { return putEnd(nil, e) }

func (v *reader) end() *End {
	return &End{State: v.string(), At: v.int64(), Result: part(v.take(v.uvarint())), HasResult: v.int() > 0}
}

func putProgress(b []byte, p *Progress) []byte {
	if p == nil {
		return b
	}
	b, start := begin(b, tagProgress)
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(p.Percent))
	b = appendString(b, p.Note)
	return end(b, start)
}

func (v *reader) progress() *Progress {
	return &Progress{Percent: v.float(), Note: v.string()}
}
