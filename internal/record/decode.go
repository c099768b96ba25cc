package record

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// Decode reads a record. It takes any bytes: it does not panic, and what it
// allocates is in proportion to len(b), whatever lengths b claims. Its errors
// wrap [ErrCorrupt] and say what was wrong, without quoting b.
//
// Payload and the values of Extra are parts of b, not copies (appending to them
// does not write into b). Decode itself only reads b.
func Decode(b []byte) (*Record, error) {
	v := reader{b: b}
	r := &Record{}
	if r.readHead(&v); v.err != "" {
		return nil, fmt.Errorf("%w: head: %s", ErrCorrupt, v.err)
	}
	if r.Kind = v.string(); v.err != "" {
		return nil, fmt.Errorf("%w: kind: %s", ErrCorrupt, v.err)
	}
	if err := r.readFields(&v); err != nil {
		return nil, err
	}
	r.Payload = part(v.rest())
	return r, nil
}

func (r *Record) readHead(v *reader) {
	version, flags := v.byte(), v.byte()
	r.Priority = int(flags & flagPriority)
	r.Started = flags&flagStarted != 0
	r.LongHead = flags&flagLong != 0
	switch {
	case v.err != "":
	case version != Version:
		v.fail("unknown version")
	case flags&flagsUnused != 0:
		v.fail("unknown flag")
	case r.Priority > maxPriority:
		v.fail("priority above 9")
	case r.LongHead:
		r.readLongHead(v.take(longLen))
	}
}

// readLongHead takes longLen bytes, or nil if there were fewer.
func (r *Record) readLongHead(b []byte) {
	if b == nil {
		return
	}
	r.Crashes = int(b[0])
	r.MaxCrashes = int(b[1])
	r.Visibility = time.Duration(binary.BigEndian.Uint32(b[2:])) * time.Millisecond
	r.Due = int64(binary.BigEndian.Uint16(b[6:]))<<32 | int64(binary.BigEndian.Uint32(b[8:]))
}

// readFields takes fields in any order, as another writer may not sort them. A
// second value for what has only one is refused: which of them holds would be a
// guess.
func (r *Record) readFields(v *reader) error {
	var seen uint64                // a bit for each known tag
	const _ = uint64(1) << lastTag // does not compile once they are too many
	for {
		tag := v.byte()
		if tag == endOfFields {
			break
		}
		f := reader{b: v.take(v.uvarint())}
		if v.err != "" {
			return fmt.Errorf("%w: field %d: %s", ErrCorrupt, tag, v.err)
		}
		if tag > lastTag {
			r.Extra = append(r.Extra, Field{tag, part(f.b)})
			continue
		}
		bit := uint64(1) << tag
		if seen&bit&^repeated != 0 {
			return fmt.Errorf("%w: field %d: there twice", ErrCorrupt, tag)
		}
		seen |= bit
		if r.setField(tag, &f); f.err == "" && len(f.b) > 0 {
			f.fail("bytes left over")
		}
		if f.err != "" {
			return fmt.Errorf("%w: field %d: %s", ErrCorrupt, tag, f.err)
		}
	}
	if v.err != "" {
		return fmt.Errorf("%w: fields: %s", ErrCorrupt, v.err)
	}
	slices.SortStableFunc(r.Extra, byTag)
	return nil
}

// part is a piece of the input that nobody can append into, nil when empty.
func part(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return slices.Clip(b)
}
