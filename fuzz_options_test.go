package pawl

import (
	"context"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/record"
)

// cancelled is a context with which nothing is sent.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// howPattern is the one by which lua/enqueue.lua takes how a job waits apart.
var howPattern = regexp.MustCompile(`^([a-z]) (\d+) (\d) (\d+) ([a-z]) (\d+) ?([a-z]?)$`)

// upMilli is ns in ms, rounded up, in numbers that cannot overflow.
func upMilli(ns int64) int64 {
	q, r := new(big.Int).DivMod(big.NewInt(ns), big.NewInt(1_000_000), new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q.Int64()
}

// century is the most that a wait may be, in ns.
const century = int64(36525) * 24 * 60 * 60 * 1_000_000_000

// Which of the options are given.
const (
	withDelay = 1 << iota
	withAt
	withPriority
	withExpireIn
	withMaxAttempts
	withTimeout
	withMaxCrashes
	withVisibility
	withUnique
	withIdempotency
	withRetain
)

// FuzzOptions: whatever number an option is given, it is refused with ErrInvalid
// if it is out of the documented range, and else it is in the record and in the
// script's words to the ms: never early, never negative, never wrapped.
func FuzzOptions(f *testing.F) {
	const all = 1<<11 - 1
	for _, n := range []int64{0, 1, -1, 9, 10, 255, 256, 10_000, 10_001, 999_999, 1_000_000, 1_000_001, 99_999_999, 100_000_000, 100_000_001,
		int64(24 * time.Hour), int64(24*time.Hour) + 1, century - 1, century, century + 1, math.MaxInt64 - 999_999, math.MaxInt64, math.MinInt64} {
		for bit := 1; bit <= all; bit <<= 1 {
			f.Add(uint16(bit), n, n, n, n)
		}
	}
	f.Add(uint16(all&^withDelay), int64(5), int64(3), int64(500_000_001), int64(1_750_000_000))
	f.Add(uint16(all&^withAt), int64(1), int64(9), int64(time.Hour)+1, int64(time.Hour))
	f.Add(uint16(withDelay|withExpireIn), int64(0), int64(0), int64(7), int64(7))         // expired before it may run
	f.Add(uint16(withAt), int64(0), int64(0), int64(0), int64(-62_135_596_800))           // the zero time
	f.Add(uint16(withAt), int64(0), int64(0), int64(1), int64(-62_135_596_800))           // just after it
	f.Add(uint16(withAt), int64(0), int64(0), int64(999_999_999), int64(253_402_300_799)) // the end of the year 9999
	f.Add(uint16(withAt), int64(0), int64(0), int64(0), int64(253_402_300_800))           // the year 10000
	f.Add(uint16(withAt), int64(0), int64(0), int64(-1), int64(0))                        // just before 1970
	f.Add(uint16(withAt|withPriority|withUnique), int64(1), int64(1), int64(1), int64(math.MaxInt64))
	f.Add(uint16(withUnique), int64(0), int64(2), int64(0), int64(0)) // it replaces
	f.Add(uint16(withUnique), int64(0), int64(3), int64(0), int64(0)) // it waits behind
	f.Add(uint16(withUnique), int64(1), int64(3), int64(0), int64(0)) // whose start frees the key
	c, err := New(lazyClient(f), Config{})
	require.NoError(f, err)
	q := c.queue("emails")
	f.Fuzz(func(t *testing.T, which uint16, small, other, wait, sec int64) {
		var opts []Option
		bad := false
		give := func(bit uint16, o Option, refused bool) {
			if which&bit != 0 {
				opts, bad = append(opts, o), bad || refused
			}
		}
		at := time.Unix(sec, wait%1_000_000_000)
		year := at.UTC().Year()
		give(withDelay, Delay(wait), wait < 0 || wait > century)
		give(withAt, At(at), at.IsZero() || year < 1 || year > 9999)
		give(withPriority, Priority(other), other < 0 || other > 9)
		give(withExpireIn, ExpireIn(sec), sec <= 0 || sec > century)
		give(withMaxAttempts, MaxAttempts(small), small < 0 || small > 10_000)
		give(withTimeout, Timeout(wait), wait < -1 || wait > century)
		give(withMaxCrashes, MaxCrashes(small), small < 0 || small > 255)
		give(withVisibility, VisibilityTimeout(wait), wait != 0 && (wait < 100e6 || wait > int64(24*time.Hour)))
		give(withUnique, Unique{Key: "k", Until: UniqueUntil(small), For: time.Duration(wait), OnDuplicate: OnDuplicate(other)},
			small < 0 || small > 1 || wait < 0 || wait > century || other < 0 || other > 3 || other == 3 && small == 1)
		give(withIdempotency, Idempotency{Key: "i", Window: time.Duration(wait)}, wait < 0 || wait > century)
		give(withRetain, Retain(sec), sec <= 0 || sec > century)
		has := func(bits uint16) bool { return which&bits == bits }
		bad = bad || has(withDelay|withAt) || has(withDelay|withExpireIn) && wait >= sec

		it, err := q.prepare(t.Context(), Raw{"kind", []byte("p")}, opts)
		if bad {
			require.ErrorIs(t, err, ErrInvalid)
			require.Nil(t, it)
			return
		}
		require.NoError(t, err)
		want := record.Record{Kind: "kind", Payload: []byte("p")}
		// What the record says, in ms: a big number where a wrap would be small.
		ms := func(bit uint16, ns int64) time.Duration {
			if which&bit == 0 {
				return 0
			}
			return time.Duration(upMilli(ns)) * time.Millisecond
		}
		number := func(bit uint16, n int64) int {
			if which&bit == 0 {
				return 0
			}
			return int(n)
		}
		want.Priority = number(withPriority, other)
		want.MaxAttempts, want.MaxCrashes = number(withMaxAttempts, small), number(withMaxCrashes, small)
		want.ExpireIn, want.Visibility, want.Timeout = ms(withExpireIn, sec), ms(withVisibility, wait), ms(withTimeout, wait)
		want.Retain = ms(withRetain, sec)
		if has(withTimeout) && wait == -1 {
			want.Timeout = NoTimeout
		}
		if has(withUnique) {
			want.Unique = &record.Unique{Key: "k", Until: int(small), For: ms(withUnique, wait), OnDuplicate: int(other)}
		}
		if has(withIdempotency) {
			want.Idempotency = &record.Idempotency{Key: "i", Window: ms(withIdempotency, wait)}
			if wait == 0 {
				want.Idempotency.Window = 24 * time.Hour
			}
		}
		waits := has(withDelay) && wait > 0 || has(withAt) || want.Priority > 0
		want.LongHead = waits || want.MaxCrashes > 0 || want.Visibility > 0 || has(withUnique) && other > 1
		got, err := record.Decode(it.record)
		require.NoError(t, err)
		require.Equal(t, &want, got)

		// What follows another job is what would have been enqueued.
		before, err := q.prepare(t.Context(), Raw{"first", nil}, []Option{Then{Raw{"kind", []byte("p")}, opts}})
		require.NoError(t, err)
		first, err := record.Decode(before.record)
		require.NoError(t, err)
		next := q.follower(first.Then[0])
		require.Equal(t, it.record, next.record)
		require.Equal(t, it.how(1), next.how(1))

		words := howPattern.FindStringSubmatch(it.how(0))
		if words == nil {
			require.False(t, waits || has(withUnique), "it says nothing only if there is nothing to say")
			require.Empty(t, it.how(0))
			return
		}
		read := func(i int) int64 {
			n, err := strconv.ParseInt(words[i], 10, 64)
			require.NoError(t, err)
			require.Less(t, n, int64(1)<<48, "six bytes of a head, and exact in Lua")
			return n
		}
		switch due := read(2); {
		case has(withAt):
			require.Equal(t, "a", words[1])
			require.False(t, time.UnixMilli(due).Before(at), "never early")
			require.True(t, due == 0 || time.UnixMilli(due-1).Before(at), "late by less than a millisecond")
		default:
			require.Equal(t, "d", words[1])
			require.Equal(t, ms(withDelay, wait), time.Duration(due)*time.Millisecond)
		}
		require.EqualValues(t, want.Priority, read(3))
		if has(withUnique) {
			require.Equal(t, ms(withUnique, wait), time.Duration(read(6))*time.Millisecond)
			require.Equal(t, []string{"", "", "r", "l"}[other], words[7])
		}
	})
}

// FuzzBackoff: a Backoff is refused or travels exactly; whatever n is, its wait
// is within its bounds, and it does not shrink as n grows. One that somebody
// else wrote into a record is never a negative wait either.
func FuzzBackoff(f *testing.F) {
	add := func(base, most time.Duration, factor float64, jitter int, n int, steps ...byte) {
		f.Add(int64(base), int64(most), factor, jitter, n, steps)
	}
	add(0, 0, 0, 0, 1)
	add(time.Second, time.Hour, 2, 3, 63)
	add(1, math.MaxInt64, 2, 3, 64)
	add(1, math.MaxInt64, 3, 1, math.MaxInt)
	add(math.MaxInt64, math.MaxInt64, 1, 2, math.MinInt)
	add(math.MaxInt64, math.MaxInt64, 1.0000000001, 0, 1<<40)
	add(time.Hour+1, 0, 0, 0, 1)
	add(1, 1, math.NaN(), 0, 2)
	add(1, 1, math.Inf(1), 0, 2)
	add(1, math.MaxInt64, -2.5, 0, 7)
	add(1, math.MaxInt64, math.MaxFloat64, 0, 3)
	add(1, math.MaxInt64, math.MaxInt32, 3, 3)
	add(1, math.MaxInt64, 0.5, 4, 3)
	add(-1, -1, 1, -1, 0)
	add(0, 0, math.Copysign(0, -1), 0, 2)
	add(0, 0, 0, 2, 5, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	add(0, time.Second, 0, 3, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	add(0, 0, 0, 0, 1, make([]byte, 8*101)...)
	f.Fuzz(func(t *testing.T, base, most int64, factor float64, jitter, n int, steps []byte) {
		b := Backoff{Base: time.Duration(base), Max: time.Duration(most), Factor: factor, Jitter: Jitter(jitter)}
		for ; len(steps) >= 8; steps = steps[8:] {
			ns := int64(0)
			for _, c := range steps[:8] {
				ns = ns<<8 | int64(c)
			}
			b.Steps = append(b.Steps, time.Duration(ns))
		}
		var p policy
		if err := b.applyHandle(&p); err != nil {
			require.ErrorIs(t, err, ErrInvalid)
			require.GreaterOrEqual(t, b.Delay(n), time.Duration(0), "even so")
			return
		}
		var r record.Record
		p.store(&r)
		back, err := record.Decode(r.Append(nil))
		require.NoError(t, err)
		stored := storedPolicy(back)
		require.Equal(t, &b, stored.backoff, "exact to the nanosecond")

		_, _, bound := b.defaults()
		if len(b.Steps) > 0 && b.Max == 0 {
			bound = math.MaxInt64
		}
		lo, hi := b.span(n)
		d := b.Delay(n)
		require.True(t, 0 <= lo && lo <= d && d <= hi && hi <= bound, "%v in %v to %v, at most %v", d, lo, hi, bound)
		switch b.Jitter {
		case JitterNone:
			require.Equal(t, hi, lo)
		case JitterFull:
			require.Zero(t, lo)
		default:
			require.Equal(t, hi/2, lo)
		}
		require.GreaterOrEqual(t, ceilMillis(d), int64(0))
		require.Equal(t, b.wait(1), b.wait(max(1, min(n, 1))), "less than 1 counts as 1")
		if len(b.Steps) == 0 && n < math.MaxInt {
			_, next := b.span(n + 1)
			// math.Pow may be a last digit off, which is nothing to wait for.
			require.GreaterOrEqual(t, float64(next), float64(hi)*(1-1e-12)-1)
		}
	})
}
