package pawltest

import (
	"fmt"
	"reflect"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/record"
)

// differences says which options are not the job's own. want is what the
// options come to when they are stored, so that both are rounded alike.
func differences(opts []pawl.Option, want *record.Record, job waitingJob) (lines []string) {
	for _, o := range opts {
		if same, has := compare(o, want, job); !same {
			lines = append(lines, fmt.Sprintf("%T: want %s, has %s", o, show(o), has))
		}
	}
	return lines
}

func compare(o pawl.Option, want *record.Record, job waitingJob) (same bool, has string) {
	got := job.rec
	switch o := o.(type) {
	case pawl.Delay:
		return sameDelay(time.Duration(o), job), job.DueAt.Sub(job.EnqueuedAt).Round(time.Millisecond).String()
	case pawl.At:
		at := time.Time(o)
		rounded := at.Add(time.Millisecond - 1).Truncate(time.Millisecond)
		now := job.DueAt.Sub(job.EnqueuedAt) <= 0 // it was not delayed
		return rounded.Equal(job.DueAt) || now && !at.After(job.EnqueuedAt), job.DueAt.Format(time.RFC3339Nano)
	case pawl.Priority:
		return want.Priority == got.Priority, own(got.Priority)
	case pawl.Header:
		value, ok := got.Headers[o.Key]
		return ok && value == o.Value, fmt.Sprintf("headers %q", got.Headers)
	case pawl.ExpireIn:
		return want.ExpireIn == got.ExpireIn, own(got.ExpireIn)
	case pawl.Retain:
		return want.Retain == got.Retain, own(got.Retain)
	case pawl.Then: // of all that were given, as their order counts
		return reflect.DeepEqual(want.Then, got.Then), fmt.Sprintf("%d follow-ups, which have other records", len(got.Then))
	case pawl.Unique:
		return reflect.DeepEqual(want.Unique, got.Unique), ownUnique(got.Unique)
	case pawl.Idempotency:
		return reflect.DeepEqual(want.Idempotency, got.Idempotency), ownIdempotency(got.Idempotency)
	case pawl.MaxAttempts:
		return want.MaxAttempts == got.MaxAttempts, own(got.MaxAttempts)
	case pawl.Timeout:
		return want.Timeout == got.Timeout, own(got.Timeout)
	case pawl.MaxCrashes:
		return want.MaxCrashes == got.MaxCrashes, own(got.MaxCrashes)
	case pawl.VisibilityTimeout:
		return want.Visibility == got.Visibility, own(got.Visibility)
	case pawl.Backoff:
		return reflect.DeepEqual(want.Backoff, got.Backoff), ownBackoff(got.Backoff)
	default:
		return false, "what pawltest cannot compare"
	}
}

// sameDelay compares to 10 ms. Ids of one queue differ in their microseconds, so
// of 10,000 jobs that are enqueued at one moment the last seems to be 10 ms late.
func sameDelay(want time.Duration, job waitingJob) bool {
	const spread = 10 * time.Millisecond
	got := job.DueAt.Sub(job.EnqueuedAt)
	if want == 0 || got <= 0 {
		return want == 0 && got <= 0
	}
	want = (want + time.Millisecond - 1).Truncate(time.Millisecond)
	return got > want-spread && got < want+time.Millisecond
}

// show is an option without the name of its type.
func show(o pawl.Option) string {
	switch v := reflect.ValueOf(o); o := o.(type) {
	case pawl.At:
		return time.Time(o).Format(time.RFC3339Nano)
	case pawl.Delay, pawl.ExpireIn, pawl.Retain, pawl.Timeout, pawl.VisibilityTimeout:
		return time.Duration(v.Int()).String()
	default:
		return fmt.Sprintf("%+v", o)
	}
}

// own is a value of a job, whose zero says that it has none.
func own(value any) string {
	if reflect.ValueOf(value).IsZero() {
		return "none of its own"
	}
	return fmt.Sprint(value)
}

func ownUnique(u *record.Unique) string {
	if u == nil {
		return own(0)
	}
	return fmt.Sprintf("%+v", pawl.Unique{Key: u.Key, Until: pawl.UniqueUntil(u.Until), For: u.For, OnDuplicate: pawl.OnDuplicate(u.OnDuplicate)})
}

func ownIdempotency(i *record.Idempotency) string {
	if i == nil {
		return own(0)
	}
	return fmt.Sprintf("%+v", pawl.Idempotency{Key: i.Key, Window: i.Window})
}

func ownBackoff(b *record.Backoff) string {
	if b == nil {
		return own(0)
	}
	return fmt.Sprintf("%+v", pawl.Backoff{Base: b.Base, Factor: b.Factor, Max: b.Max, Jitter: pawl.Jitter(b.Jitter), Steps: b.Steps})
}
