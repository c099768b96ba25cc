package pawl

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// DeadFilter picks dead jobs. Zero fields do not filter. A Reason that is none of
// the constants, a Fingerprint that no DeadGroup can have, and a Since after Until,
// are ErrInvalid.
type DeadFilter struct {
	Kind        string
	Reason      DeadReason
	Error       string    // substring of DeadJob.Error
	Fingerprint string    // of a DeadGroup
	Since       time.Time // died at or after, by the server's clock
	Until       time.Time // died before
	Limit       int       // at most so many; 0 or less: all
}

// check refuses a filter that nothing can match.
func (f *DeadFilter) check() error {
	known := []DeadReason{"", ReasonExhausted, ReasonPermanent, ReasonUndecodable, ReasonCrashed, ReasonCorrupt, ReasonExpired, ReasonUnhandled}
	if !slices.Contains(known, f.Reason) {
		return invalidf("there is no reason %q to die: use one of the Reason constants", f.Reason)
	}
	if f.Fingerprint != "" && !isFingerprint(f.Fingerprint) {
		return invalidf("DeadFilter.Fingerprint %.64q is no fingerprint: it has 16 hex digits, small ones, as a DeadGroup has it", f.Fingerprint)
	}
	return checkSpan(f.Since, f.Until)
}

func (f *DeadFilter) matches(d *DeadJob) bool {
	return (f.Kind == "" || d.Kind == f.Kind) && (f.Reason == "" || d.Reason == f.Reason) &&
		strings.Contains(d.Error, f.Error) && (f.Fingerprint == "" || fingerprint(d.Kind, d.Error) == f.Fingerprint)
}

// span is the first and the last entry to read, of those up to top: their ids
// begin with the millisecond of the death, by the server's clock.
func (f *DeadFilter) span(top string) (from, to string) {
	from, to = "-", top
	if !f.Since.IsZero() {
		from = strconv.FormatInt(max(0, ceilTime(f.Since)), 10)
	}
	if f.Until.IsZero() {
		return from, to
	}
	switch ms := ceilTime(f.Until); {
	case ms <= 0:
		to = "0-0" // which no entry has, and than which none is before
	case !before(top, strconv.FormatInt(ms, 10)+"-0"):
		to = fmt.Sprintf("(%d-0", ms)
	}
	return from, to
}

// List walks the dead jobs that match, in the order of their deaths, in pages.
// It ends with those that were dead when it began. Jobs that are redriven or
// deleted meanwhile may or may not be seen; none is seen twice. An error ends
// the walk: ErrInvalid, a filter that nothing can match; ErrNotFound, the
// queue was never used. Each page waits no longer than ctx, or 5 s if ctx has no
// deadline.
func (d *DeadLetters) List(ctx context.Context, f DeadFilter) iter.Seq2[DeadJob, error] {
	return func(yield func(DeadJob, error) bool) {
		err := d.match(ctx, f, func(page []deadEntry) (more bool, err error) {
			for _, e := range page {
				if !yield(e.job, nil) {
					return false, nil
				}
			}
			return true, nil
		})
		if err != nil {
			yield(DeadJob{}, d.q.wrap("list dead", err))
		}
	}
}

// deadEntry is an entry of the dead-letter stream, and what it says.
type deadEntry struct {
	redis.XMessage
	job DeadJob
}

func messages(entries []deadEntry) []redis.XMessage {
	page := make([]redis.XMessage, len(entries))
	for i, e := range entries {
		page[i] = e.XMessage
	}
	return page
}

// match hands on pages of the entries that match, of those that are there when
// it is called and no more than f.Limit, until take wants no more or fails.
func (d *DeadLetters) match(ctx context.Context, f DeadFilter, take func([]deadEntry) (more bool, err error)) error {
	top, err := d.begin(ctx, f)
	if err != nil || top == "" {
		return err
	}
	return d.matchUpTo(ctx, f, top, take)
}

// begin is the last entry that a walk is to look at, or "" if there is none.
func (d *DeadLetters) begin(ctx context.Context, f DeadFilter) (top string, err error) {
	if err := f.check(); err != nil {
		return "", err
	}
	if err := d.q.exist(ctx); err != nil {
		return "", err
	}
	return d.top(ctx)
}

// matchUpTo is match of the entries up to top.
func (d *DeadLetters) matchUpTo(ctx context.Context, f DeadFilter, top string, take func([]deadEntry) (more bool, err error)) error {
	from, to := f.span(top)
	found := 0
	return d.walk(ctx, from, to, func(page []redis.XMessage) (more bool, err error) {
		var matching []deadEntry
		for _, e := range page {
			if job := d.entry(e); f.matches(&job) {
				matching = append(matching, deadEntry{e, job})
			}
		}
		if f.Limit > 0 {
			matching = matching[:min(len(matching), f.Limit-found)]
		}
		found += len(matching)
		if len(matching) > 0 {
			if more, err = take(matching); err != nil || !more {
				return false, err
			}
		}
		return f.Limit <= 0 || found < f.Limit, nil
	})
}

// top is the id of the last entry, or "" if there is none.
func (d *DeadLetters) top(ctx context.Context) (string, error) {
	return await(ctx, d.q.client.rdb, func(ctx context.Context) (string, error) {
		last, err := d.q.client.rdb.XRevRangeN(ctx, d.q.keys.dead, "+", "-", 1).Result()
		if err != nil || len(last) == 0 {
			return "", err
		}
		return last[0].ID, nil
	})
}

// walk hands on pages of entries until take wants no more or fails.
func (d *DeadLetters) walk(ctx context.Context, from, to string, take func([]redis.XMessage) (more bool, err error)) error {
	for {
		page, err := d.page(ctx, from, to)
		if err != nil || len(page) == 0 {
			return err
		}
		if more, err := take(page); err != nil || !more {
			return err
		}
		from = "(" + page[len(page)-1].ID
	}
}

// page is the next entries, as many as one reply should hold.
func (d *DeadLetters) page(ctx context.Context, from, to string) ([]redis.XMessage, error) {
	parts, err := d.q.read(ctx, scriptDeaths, []string{d.q.keys.dead}, from, to)
	if err != nil {
		return nil, err
	}
	page := make([]redis.XMessage, 0, len(parts))
	for _, part := range parts {
		entry, _ := part.([]any)
		if len(entry) != 2 {
			return nil, fmt.Errorf("script deaths answered %v for an entry", part)
		}
		id, _ := entry[0].(string)
		fields, _ := entry[1].([]any)
		e := redis.XMessage{ID: id, Values: map[string]any{}}
		for i := 0; i+1 < len(fields); i += 2 {
			name, _ := fields[i].(string)
			e.Values[name] = fields[i+1]
		}
		page = append(page, e)
	}
	return page, nil
}

// entry reads an entry of the dead-letter stream.
func (d *DeadLetters) entry(e redis.XMessage) DeadJob {
	body, _ := e.Values["p"].(string)
	id, _ := e.Values["i"].(string)
	return deadJob(d.q, id, e.ID, body)
}

// splitPosition reads the id of an entry: the millisecond, and a number in it.
func splitPosition(s string) (ms, seq uint64, ok bool) {
	first, second, _ := strings.Cut(s, "-")
	ms, err := strconv.ParseUint(first, 10, 64)
	seq, err2 := strconv.ParseUint(second, 10, 64)
	return ms, seq, err == nil && err2 == nil
}

// before compares the ids of two entries.
func before(a, b string) bool {
	aMs, aSeq, _ := splitPosition(a)
	bMs, bSeq, _ := splitPosition(b)
	return aMs < bMs || aMs == bMs && aSeq < bSeq
}
