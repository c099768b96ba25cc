package pawl

import (
	"context"
	"errors"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// ID is a job's id: a UUIDv7 made by the server, so ids of one queue sort by
// age. Its time is when the job was enqueued, by the server's clock. The zero
// ID is no job's. uuid.Parse of github.com/google/uuid makes one of its text.
type ID = uuid.UUID

// Headers travel with a job, outside its payload: trace context, tenant,
// request id. A key is 1 to 128 bytes of printable ASCII without spaces, and
// case counts; a value is UTF-8; keys and values come to at most 4 KiB
// together. A nil Headers is empty.
type Headers map[string]string

const (
	maxHeaderKey = 128     // bytes
	maxHeaders   = 4 << 10 // bytes, keys and values together
)

// check refuses what could not be shown or carried in a header of HTTP.
func (h Header) check() error {
	if h.Key == "" || len(h.Key) > maxHeaderKey {
		return invalidf("Header key %.40q has %d bytes: use 1 to %d", h.Key, len(h.Key), maxHeaderKey)
	}
	for i := range len(h.Key) {
		if c := h.Key[i]; c <= ' ' || c > '~' {
			return invalidf("Header key %q: use printable ASCII without spaces", h.Key)
		}
	}
	if !utf8.ValidString(h.Value) {
		return invalidf("Header %q has a value that is not UTF-8: encode it, as in base64", h.Key)
	}
	return nil
}

// over is h, and what q has beside it. It adds to h.
func (h Headers) over(q Headers) Headers {
	if len(h) == 0 {
		return q
	}
	for k, v := range q {
		if _, ok := h[k]; !ok {
			h[k] = v
		}
	}
	return h
}

// checkHeaders is for headers that did not come as options: those of Config.Inject.
func checkHeaders(h Headers) error {
	var errs []error
	for k, v := range h {
		errs = append(errs, Header{k, v}.check())
	}
	return errors.Join(append(errs, h.checkSize())...)
}

func (h Headers) checkSize() error {
	n := 0
	for k, v := range h {
		n += len(k) + len(v)
	}
	if n > maxHeaders {
		return invalidf("the headers have %d bytes together: use at most %d", n, maxHeaders)
	}
	return nil
}

// RawJob is one run of a job as middleware and untyped handlers see it.
// A zero RawJob, or a literal with a few fields, is enough to call a handler
// in a unit test: its methods then record or do nothing.
//
// Its fields belong to the run and are to be read. Its methods are safe for
// concurrent use, as long as nobody changes the fields.
type RawJob struct {
	ID      ID
	Queue   string
	Kind    string
	Payload []byte  // as the codec, or EnqueueRaw's caller, made it
	Headers Headers // nil if there are none

	Attempt     int // this run, from 1; snoozes, releases and crashes do not count
	MaxAttempts int // after as many failures the job is dead
	Crashes     int // workers this job has taken down
	Redrives    int // times it came back from the dead-letter queue

	EnqueuedAt time.Time // by the server's clock
	DueAt      time.Time // when it could first have run; queue latency counts from here
	LastError  string    // of the attempt before; "" on the first

	// Schedule is the ID of the Schedule that made the job, and ScheduledAt the time
	// for which it did, however late the job was enqueued; of Trigger's it is when that was
	// called. No two jobs of a schedule have the same. It is in UTC, whatever the zone of
	// the schedule: for its day or month there, convert first, with ScheduledAt.In(zone).
	// Both are zero for other jobs.
	Schedule    string
	ScheduledAt time.Time

	// Run is the fencing token: it rises with every lease of the job. Give it
	// to a resource that can refuse an older one.
	Run int64

	idempotency string // the key of its Idempotency; "" if it has none

	client *Client      // nil for a literal
	log    *slog.Logger // nil for a literal
	run    *run         // nil but for the job of a handler
}

// IdempotencyKey is the same for every run of the job, retries, crashes and
// redrives included: the key of its Idempotency, or else its id as text. Pass it
// to payment and messaging APIs, and to an inbox. A literal without an ID has
// none: "".
func (j *RawJob) IdempotencyKey() string {
	switch {
	case j.idempotency != "":
		return j.idempotency
	case j.ID == (ID{}):
		return ""
	default:
		return j.ID.String()
	}
}

// LastAttempt reports whether a failure of this run is final: whether the job
// is dead if the handler returns an ordinary error. A Snooze or a shutdown
// still brings it back. It is false where MaxAttempts is not known, as in a
// literal.
func (j *RawJob) LastAttempt() bool {
	return j.MaxAttempts > 0 && j.Attempt >= j.MaxAttempts
}

// Logger logs to Config.Logger with queue, kind, job and attempt already set.
// The logger of a literal discards.
func (j *RawJob) Logger() *slog.Logger {
	if j.log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return j.log.With(
		slog.String("queue", j.Queue),
		slog.String("kind", j.Kind),
		slog.String("job", j.ID.String()),
		slog.Int("attempt", j.Attempt),
	)
}

// Client is the client of the worker, to enqueue more from a handler, or nil
// for a literal.
func (j *RawJob) Client() *Client { return j.client }

// Job is a run with its decoded arguments. A literal with Args alone is enough
// to call a handler in a unit test.
//
// Its fields and methods are those of its RawJob: IdempotencyKey, LastAttempt, Logger and
// Client; Progress, SetResult; Then and ThenOn.
type Job[T any] struct {
	RawJob
	Args T
}

type jobKey struct{}

// withJob makes the context of a handler.
func withJob(ctx context.Context, j *RawJob) context.Context {
	return context.WithValue(ctx, jobKey{}, j)
}

// FromContext is the job a handler's context belongs to, for log handlers and
// code deep below the handler. Handlers themselves have it as an argument. It
// is nil and false for any other context.
func FromContext(ctx context.Context) (*RawJob, bool) {
	j, ok := ctx.Value(jobKey{}).(*RawJob)
	return j, ok && j != nil
}
