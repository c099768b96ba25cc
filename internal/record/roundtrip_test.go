package record_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pawlq/pawl/internal/record"
)

func TestEveryRecordIsReadBackAsItWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := anyRecord().Draw(t, "record")
		b := r.Append(nil)
		got, err := record.Decode(b)
		require.NoError(t, err)

		want := *r
		want.LongHead = r.LongHead || r.Crashes > 0 || r.MaxCrashes > 0 || r.Visibility > 0 || r.Due > 0
		require.Equal(t, &want, got)
		require.Equal(t, b, got.Append(nil), "and written again as it was")
		require.Equal(t, append([]byte("kept"), b...), r.Append([]byte("kept")))
	})
}

func anyRecord() *rapid.Generator[*record.Record] {
	return rapid.Custom(func(t *rapid.T) *record.Record {
		return &record.Record{
			Priority:   rapid.IntRange(0, 9).Draw(t, "Priority"),
			Started:    rapid.Bool().Draw(t, "Started"),
			Crashes:    rapid.IntRange(0, 255).Draw(t, "Crashes"),
			MaxCrashes: rapid.IntRange(0, 255).Draw(t, "MaxCrashes"),
			Visibility: time.Duration(rapid.Int64Range(0, math.MaxUint32).Draw(t, "Visibility")) * time.Millisecond,
			Due:        rapid.Int64Range(0, 1<<48-1).Draw(t, "Due"),
			LongHead:   rapid.Bool().Draw(t, "LongHead"),

			Kind:    anyText().Draw(t, "Kind"),
			Payload: anyBytes().Draw(t, "Payload"),
			Headers: orNil(rapid.MapOfN(anyText(), anyText(), 1, 20)).Draw(t, "Headers"),

			Attempts:      anyInt().Draw(t, "Attempts"),
			MaxAttempts:   anyInt().Draw(t, "MaxAttempts"),
			Timeout:       rapid.OneOf(rapid.Just(time.Duration(-1)), anyMillis()).Draw(t, "Timeout"),
			Backoff:       orNil(rapid.Ptr(anyBackoff(), false)).Draw(t, "Backoff"),
			ExpireIn:      anyMillis().Draw(t, "ExpireIn"),
			Since:         anyTime().Draw(t, "Since"),
			Unique:        orNil(rapid.Ptr(anyUnique(), false)).Draw(t, "Unique"),
			Idempotency:   orNil(rapid.Ptr(anyIdempotency(), false)).Draw(t, "Idempotency"),
			Schedule:      anyText().Draw(t, "Schedule"),
			Tick:          anyTime().Draw(t, "Tick"),
			Retain:        anyMillis().Draw(t, "Retain"),
			Then:          orNil(rapid.SliceOfN(anyThen(), 1, 4)).Draw(t, "Then"),
			End:           orNil(rapid.Ptr(anyEnd(), false)).Draw(t, "End"),
			Progress:      orNil(rapid.Ptr(anyProgress(), false)).Draw(t, "Progress"),
			Failures:      orNil(rapid.SliceOfN(anyFailure(), 1, 10)).Draw(t, "Failures"),
			FirstFailedAt: anyTime().Draw(t, "FirstFailedAt"),
			Redrives:      anyInt().Draw(t, "Redrives"),
			Snoozes:       anyInt().Draw(t, "Snoozes"),
			PutBacks:      anyInt().Draw(t, "PutBacks"),
			UnknownSince:  anyTime().Draw(t, "UnknownSince"),
			Dead:          orNil(rapid.Ptr(anyPostMortem(), false)).Draw(t, "Dead"),
			Extra:         anyExtra().Draw(t, "Extra"),
		}
	})
}

func orNil[T any](g *rapid.Generator[T]) *rapid.Generator[T] {
	return rapid.OneOf(rapid.Just(*new(T)), g)
}

// anyText has bytes that are not UTF-8, and lengths that need two bytes.
func anyText() *rapid.Generator[string] {
	return rapid.Map(anyBytes(), func(b []byte) string { return string(b) })
}

func anyBytes() *rapid.Generator[[]byte] {
	return orNil(rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 1, 8), rapid.SliceOfN(rapid.Byte(), 120, 135)))
}

func anyInt() *rapid.Generator[int]    { return rapid.IntRange(0, math.MaxInt) }
func anyTime() *rapid.Generator[int64] { return rapid.Int64Range(0, math.MaxInt64) }

func anyNanos() *rapid.Generator[time.Duration] {
	return rapid.Map(anyTime(), func(n int64) time.Duration { return time.Duration(n) })
}

func anyMillis() *rapid.Generator[time.Duration] {
	whole := rapid.Map(rapid.Int64Range(0, math.MaxInt64/1_000_000), func(n int64) time.Duration {
		return time.Duration(n) * time.Millisecond
	})
	return rapid.OneOf(whole, rapid.Just(time.Duration(math.MaxInt64)))
}

func anyBackoff() *rapid.Generator[record.Backoff] {
	return rapid.Custom(func(t *rapid.T) record.Backoff {
		return record.Backoff{
			Base:   anyNanos().Draw(t, "Base"),
			Max:    anyNanos().Draw(t, "Max"),
			Factor: rapid.Float64().Draw(t, "Factor"),
			Jitter: anyInt().Draw(t, "Jitter"),
			Steps:  orNil(rapid.SliceOfN(anyNanos(), 1, 20)).Draw(t, "Steps"),
		}
	})
}

func anyThen() *rapid.Generator[record.Then] {
	return rapid.Custom(func(t *rapid.T) record.Then {
		return record.Then{How: anyText().Draw(t, "How"), Record: anyBytes().Draw(t, "Record")}
	})
}

func anyEnd() *rapid.Generator[record.End] {
	return rapid.Custom(func(t *rapid.T) record.End {
		return record.End{
			State:     anyText().Draw(t, "State"),
			At:        anyTime().Draw(t, "At"),
			Result:    anyBytes().Draw(t, "Result"),
			HasResult: rapid.Bool().Draw(t, "HasResult"),
		}
	})
}

func anyProgress() *rapid.Generator[record.Progress] {
	return rapid.Custom(func(t *rapid.T) record.Progress {
		return record.Progress{Percent: rapid.Float64().Draw(t, "Percent"), Note: anyText().Draw(t, "Note")}
	})
}

func anyUnique() *rapid.Generator[record.Unique] {
	return rapid.Custom(func(t *rapid.T) record.Unique {
		return record.Unique{
			Key:         anyText().Draw(t, "Key"),
			Until:       anyInt().Draw(t, "Until"),
			For:         anyMillis().Draw(t, "For"),
			OnDuplicate: anyInt().Draw(t, "OnDuplicate"),
		}
	})
}

func anyIdempotency() *rapid.Generator[record.Idempotency] {
	return rapid.Custom(func(t *rapid.T) record.Idempotency {
		return record.Idempotency{Key: anyText().Draw(t, "Key"), Window: anyMillis().Draw(t, "Window")}
	})
}

func anyFailure() *rapid.Generator[record.Failure] {
	return rapid.Custom(func(t *rapid.T) record.Failure {
		return record.Failure{
			Attempt: anyInt().Draw(t, "Attempt"),
			At:      anyTime().Draw(t, "At"),
			Took:    anyNanos().Draw(t, "Took"),
			Text:    anyText().Draw(t, "Text"),
		}
	})
}

func anyPostMortem() *rapid.Generator[record.PostMortem] {
	return rapid.Custom(func(t *rapid.T) record.PostMortem {
		return record.PostMortem{
			Reason: anyText().Draw(t, "Reason"),
			Error:  anyText().Draw(t, "Error"),
			Stack:  anyText().Draw(t, "Stack"),
			Worker: anyText().Draw(t, "Worker"),
			Build:  anyText().Draw(t, "Build"),
			At:     anyTime().Draw(t, "At"),

			MaxAttempts: rapid.IntRange(0, 10000).Draw(t, "MaxAttempts"),
		}
	})
}

// anyExtra has tags far above the known ones, so that a new tag changes nothing.
func anyExtra() *rapid.Generator[[]record.Field] {
	field := rapid.Custom(func(t *rapid.T) record.Field {
		return record.Field{Tag: rapid.ByteRange(100, 255).Draw(t, "Tag"), Value: anyBytes().Draw(t, "Value")}
	})
	return rapid.Map(orNil(rapid.SliceOfN(field, 1, 5)), func(extra []record.Field) []record.Field {
		slices.SortStableFunc(extra, func(a, b record.Field) int { return int(a.Tag) - int(b.Tag) })
		return extra
	})
}
