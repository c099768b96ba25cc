package pawl

import (
	"strconv"
	"strings"
	"time"

	"github.com/pawlq/pawl/internal/record"
)

// options are those of a schedule's jobs, as Prepare would return them: of what is
// stored, so that those of the type are among them. OverlapSkip's own key is not.
func (d *definition) options(rec *record.Record) []Option {
	s := storedSettings(rec, maxDepth)
	s.delay = time.Duration(d.delay) * time.Millisecond
	if d.overlap == OverlapSkip {
		s.unique = nil
	}
	return s.options()
}

// storedSettings is what item made a record of, but for its time, which lies beside it.
// A Unique without a key has the one that its arguments gave it. Follow-ups more than so
// many deep, which only another hand has stored, are left out.
func storedSettings(rec *record.Record, deep int) settings {
	s := settings{priority: rec.Priority, headers: rec.Headers, expireIn: rec.ExpireIn, retain: rec.Retain, policy: storedPolicy(rec)}
	if u := rec.Unique; u != nil {
		s.unique = &Unique{Key: u.Key, Until: UniqueUntil(u.Until), For: u.For, OnDuplicate: OnDuplicate(u.OnDuplicate)}
	}
	if i := rec.Idempotency; i != nil {
		s.idempotency = &Idempotency{Key: i.Key, Window: i.Window}
	}
	if deep == 0 {
		return s
	}
	for _, t := range rec.Then {
		next, err := record.Decode(t.Record)
		if err != nil {
			continue
		}
		f := follower{Raw{next.Kind, next.Payload}, storedSettings(next, deep-1)}
		when, text, _ := strings.Cut(t.How, " ")
		if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms > 0 && ms <= lastMilli {
			if when == "a" {
				f.at = time.UnixMilli(ms).UTC()
			} else {
				f.delay = time.Duration(min(ms, maxWait.Milliseconds())) * time.Millisecond
			}
		}
		s.chain = append(s.chain, f)
	}
	return s
}
