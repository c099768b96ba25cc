package pawl

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/pawlq/pawl/internal/jobid"
	"github.com/pawlq/pawl/internal/record"
)

// item is a job on its way into a queue: all but the half of its id and the
// times that only the server can give.
type item struct {
	kind   string
	low    uint64
	record []byte

	when     byte // 'd' delay or 'a' absolute; 0: at once, without a priority
	ms       int64
	priority int
	unique   *Unique // with its key filled in

	queue  string
	result Enqueued
}

func (it *item) size() int { return len(it.record) + 64 }

func (it *item) rejected() error {
	if it.result.Duplicate && it.unique.OnDuplicate == RejectDuplicate {
		return fmt.Errorf("%w of %s", ErrDuplicate, it.result.ID)
	}
	return nil
}

// how is the script's word for when the job may run and which key it holds.
func (it *item) how(uniqueIndex int) string {
	if it.when == 0 && it.unique == nil {
		return ""
	}
	when, mode, window, change := it.when, byte('d'), int64(0), ""
	if when == 0 {
		when = 'd'
	}
	if it.unique != nil {
		window = ceilMillis(it.unique.For)
		if it.unique.Until == UntilStarted {
			mode = 's'
		}
		switch it.unique.OnDuplicate {
		case ReplaceWaiting:
			change = " r"
		case RunLatestAfter:
			change = " l"
		}
	}
	return fmt.Sprintf("%c %d %d %d %c %d%s", when, it.ms, it.priority, uniqueIndex, mode, window, change)
}

// replaces is whether the job may come to stand in another's place, or behind it.
func (it *item) replaces() bool {
	return it.unique != nil && it.unique.OnDuplicate >= ReplaceWaiting
}

func (q *queueState) prepare(ctx context.Context, args Args, opts []Option) (*item, error) {
	raw, s, err := q.draft(ctx, args, opts)
	if err != nil {
		return nil, err
	}
	return q.item(raw, s), nil
}

// draft is all that can be known of a job before it is sent.
func (q *queueState) draft(ctx context.Context, args Args, opts []Option) (Raw, settings, error) {
	if q.err != nil { // perhaps there is no client
		return Raw{}, settings{}, q.err
	}
	return q.draftIn(ctx, args, opts, &chain{bytes: q.client.max})
}

func (q *queueState) draftIn(ctx context.Context, args Args, opts []Option, c *chain) (Raw, settings, error) {
	payload, err := q.encodeArgs(args)
	if err != nil {
		return Raw{}, settings{}, err
	}
	var own []Option
	if o, ok := args.(Optioner); ok {
		own = o.JobOptions()
	}
	raw := Raw{args.Kind(), payload}
	s, err := q.settings(ctx, opts, own)
	if err == nil && (len(s.then) > 0 || c.depth > 0) {
		err = q.follow(ctx, raw, &s, c)
	}
	return raw, s, err
}

// encodeArgs is the payload of args, which are then known to have a kind.
func (q *queueState) encodeArgs(args Args) ([]byte, error) {
	if err := checkArgs(args); err != nil {
		return nil, err
	}
	kind := args.Kind()
	if raw, ok := asRaw(args); ok {
		return raw.Payload, q.checkSize(kind, raw.Payload)
	}
	payload, err := q.client.codec.Encode(kind, argsPayload(args))
	if err != nil {
		return nil, invalidf("arguments of kind %q do not encode: %w", kind, err)
	}
	return payload, q.checkSize(kind, payload)
}

func (q *queueState) checkSize(kind string, payload []byte) error {
	if len(payload) > q.client.max {
		return fmt.Errorf("%w: %d bytes of kind %q, at most %d: store the thing and enqueue its key",
			ErrTooLarge, len(payload), kind, q.client.max)
	}
	return nil
}

// settings are what the options come to, with the headers of Config.Inject.
func (q *queueState) settings(ctx context.Context, opts, own []Option) (settings, error) {
	s, err := resolve(opts, own)
	if err != nil {
		return settings{}, err
	}
	s.headers, err = q.headers(ctx, s.headers)
	return s, err
}

func (q *queueState) item(raw Raw, s settings) *item {
	kind, payload := raw.Name, raw.Payload
	it := &item{kind: kind, low: jobid.NewLow(), priority: s.priority, queue: q.name}
	switch {
	case !s.at.IsZero():
		it.when, it.ms = 'a', max(0, ceilTime(s.at))
	case s.delay > 0 || s.priority > 0:
		it.when, it.ms = 'd', ceilMillis(s.delay)
	}
	r := record.Record{Kind: kind, Payload: payload, Headers: s.headers, Priority: s.priority, ExpireIn: s.expireIn, Retain: s.retain,
		Then: q.stored(s.chain)}
	s.policy.store(&r)
	s.idempotency.store(&r)
	if s.unique != nil {
		u := *s.unique
		u.Key = uniqueKeyText(u, kind, payload)
		it.unique = &u
		r.Unique = &record.Unique{Key: u.Key, Until: int(u.Until), For: u.For, OnDuplicate: int(u.OnDuplicate)}
	}
	r.LongHead = it.when != 0 || it.replaces() // with a place for the due time
	it.record = r.Append(make([]byte, 0, len(payload)+len(kind)+64))
	return it
}

func (q *queueState) headers(ctx context.Context, given Headers) (Headers, error) {
	if q.client.inject == nil {
		return given, nil
	}
	h := Headers{}
	q.client.inject(ctx, h)
	maps.Copy(h, given)
	return h, checkHeaders(h)
}

// store writes the policies that travel with a job.
func (p policy) store(r *record.Record) {
	r.MaxAttempts, r.Timeout, r.MaxCrashes, r.Visibility = p.maxAttempts, p.timeout, p.maxCrashes, p.visibility
	if p.backoff != nil {
		b := p.backoff
		r.Backoff = &record.Backoff{Base: b.Base, Factor: b.Factor, Max: b.Max, Jitter: int(b.Jitter), Steps: b.Steps}
	}
}

// storedPolicy is what store wrote.
func storedPolicy(r *record.Record) policy {
	p := policy{maxAttempts: r.MaxAttempts, timeout: r.Timeout, maxCrashes: r.MaxCrashes, visibility: r.Visibility}
	if b := r.Backoff; b != nil {
		p.backoff = &Backoff{Base: b.Base, Factor: b.Factor, Max: b.Max, Jitter: Jitter(b.Jitter), Steps: b.Steps}
	}
	return p
}

// lastMilli is the last of the year 9999, beyond which no time is looked at.
const lastMilli = 253402300799999

// ceilTime is t in milliseconds since the epoch, rounded up: never early.
func ceilTime(t time.Time) int64 {
	switch y := t.UTC().Year(); { // far beyond, milliseconds wrap
	case y > 9999:
		return lastMilli
	case y < 1:
		return 0
	}
	ms := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	return ms
}
