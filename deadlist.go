package pawl

import (
	"context"
	"iter"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// DeadFilter picks dead jobs. Zero fields do not filter.
type DeadFilter struct {
	Kind        string
	Reason      DeadReason
	Error       string    // substring of DeadJob.Error
	Fingerprint string    // of a DeadGroup
	Since       time.Time // died at or after, by the server's clock
	Until       time.Time // died before
	Limit       int       // at most so many; 0 or less: all
}

func (f *DeadFilter) matches(d *DeadJob) bool {
	return (f.Kind == "" || d.Kind == f.Kind) && (f.Reason == "" || d.Reason == f.Reason) &&
		strings.Contains(d.Error, f.Error) && (f.Fingerprint == "" || fingerprint(d.Kind, d.Error) == f.Fingerprint)
}

// span is the bounds of the entries to read: their ids begin with the
// millisecond of the death, by the server's clock.
func (f *DeadFilter) span() (from, to string) {
	from, to = "-", "+"
	if !f.Since.IsZero() {
		from = deadBound(f.Since, true)
	}
	if !f.Until.IsZero() {
		to = "(" + deadBound(f.Until, true) + "-0"
	}
	return from, to
}

// deadBound is a time as the beginning of an entry's id: that of the millisecond
// in which t falls, or, rounded up, of the first one that began at t or later.
func deadBound(t time.Time, up bool) string {
	ms := t.UnixMilli()
	if up {
		ms = ceilTime(t)
	}
	return strconv.FormatInt(max(0, ms), 10)
}

// List walks the dead jobs that match, in the order of their deaths, in pages.
// It ends with those that were dead when it began. Jobs that are redriven or
// deleted meanwhile may or may not be seen; none is seen twice. An error ends
// the walk: ErrNotFound if the queue never had a job or a worker. Each page
// waits no longer than ctx, or 5 s if ctx has no deadline.
func (d *DeadLetters) List(ctx context.Context, f DeadFilter) iter.Seq2[DeadJob, error] {
	return func(yield func(DeadJob, error) bool) {
		found := 0
		err := d.match(ctx, f, func(page []deadEntry) bool {
			for _, e := range page {
				if found++; !yield(e.job, nil) || found == f.Limit {
					return false
				}
			}
			return true
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

// match hands on pages of the entries that match, of those that are there when
// it is called, until one is refused. It knows nothing of f.Limit.
func (d *DeadLetters) match(ctx context.Context, f DeadFilter, take func([]deadEntry) bool) error {
	top, err := d.begin(ctx)
	if err != nil || top == "" {
		return err
	}
	return d.matchUpTo(ctx, f, top, take)
}

// begin is the last entry that a walk is to look at, or "" if there is none.
func (d *DeadLetters) begin(ctx context.Context) (top string, err error) {
	if err := d.q.exist(ctx); err != nil {
		return "", err
	}
	return d.top(ctx)
}

func (d *DeadLetters) matchUpTo(ctx context.Context, f DeadFilter, top string, take func([]deadEntry) bool) error {
	from, to := f.span()
	if to == "+" || !before(strings.TrimPrefix(to, "("), top) {
		to = top
	}
	return d.walk(ctx, from, to, func(page []redis.XMessage) bool {
		var matching []deadEntry
		for _, e := range page {
			if job := d.entry(e); f.matches(&job) {
				matching = append(matching, deadEntry{e, job})
			}
		}
		return len(matching) == 0 || take(matching)
	})
}

// top is the id of the last entry, or "" if there is none.
func (d *DeadLetters) top(ctx context.Context) (string, error) {
	return await(ctx, func(ctx context.Context) (string, error) {
		last, err := d.q.client.rdb.XRevRangeN(ctx, d.q.keys.dead, "+", "-", 1).Result()
		if err != nil || len(last) == 0 {
			return "", err
		}
		return last[0].ID, nil
	})
}

// walk hands on pages of entries until one is refused. A page grows to 500
// entries, and shrinks where they are large: some may hold a payload of
// megabytes, and a reply of a few takes milliseconds of Redis.
func (d *DeadLetters) walk(ctx context.Context, from, to string, take func([]redis.XMessage) bool) error {
	for n := 16; ; {
		page, err := await(ctx, func(ctx context.Context) ([]redis.XMessage, error) {
			return d.q.client.rdb.XRangeN(ctx, d.q.keys.dead, from, to, int64(n)).Result()
		})
		if err != nil || len(page) == 0 || !take(page) || len(page) < n {
			return err
		}
		bytes := 0
		for _, e := range page {
			body, _ := e.Values["p"].(string)
			bytes += len(body) + 64
		}
		from = "(" + page[len(page)-1].ID
		n = max(1, min(4*n, maxCallItems, maxCallBytes*len(page)/bytes))
	}
}

// entry reads an entry of the dead-letter stream.
func (d *DeadLetters) entry(e redis.XMessage) DeadJob {
	body, _ := e.Values["p"].(string)
	id, _ := e.Values["i"].(string)
	return deadJob(d.q, id, e.ID, body)
}

var positionPattern = regexp.MustCompile(`^\d{1,20}-\d{1,20}$`)

// before compares ids of a stream; one without a second half is the first of its
// millisecond.
func before(a, b string) bool {
	split := func(s string) (ms, seq uint64) {
		first, second, _ := strings.Cut(s, "-")
		ms, err := strconv.ParseUint(first, 10, 64)
		if err != nil {
			ms = math.MaxUint64
		}
		seq, _ = strconv.ParseUint(second, 10, 64)
		return ms, seq
	}
	aMs, aSeq := split(a)
	bMs, bSeq := split(b)
	return aMs < bMs || aMs == bMs && aSeq < bSeq
}
