package pawl

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Jitter is how much of a wait is random. Without it, jobs that failed
// together come back together
// (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
type Jitter int

const (
	JitterDefault Jitter = iota // equal
	JitterEqual                 // half fixed, half random: from d/2 to d
	JitterFull                  // all of it random: from 0 to d
	JitterNone                  // exactly d
)

// Backoff is the wait before each retry: Base, then Factor times as long each
// time, at most Max. It is data: it can travel with a job, be stored, and be
// shown in a dashboard. Each zero field has its default; the zero Backoff is
// all of them:
//
//	base 5 s, factor 3, at most 1 h, equal jitter; with the default of 8
//	attempts a job waits 5s 15s 45s 2m15s 6m45s 20m15s 1h, each less up to
//	half. It outlives an outage of 45 minutes and is dead after 91.
//
// As a Policy it hides the Backoff or RetryFunc of whatever comes after it in
// the order of Option: its zero fields mean the defaults, not theirs.
//
// For a policy that needs code, see RetryFunc.
type Backoff struct {
	// Base is the first wait. Default 5 s.
	Base time.Duration
	// Factor is how much longer each wait is than the one before, 1 or more.
	// Default 3; 1 is a constant wait.
	Factor float64
	// Max bounds every wait. Default 1 h, but no bound on Steps. A Base above
	// it is ErrInvalid, so a Base above 1 h needs a Max.
	Max time.Duration
	// Jitter is how much of each wait is random, of the Steps too. Default
	// JitterEqual.
	Jitter Jitter
	// Steps, if set, lists the waits, at most 100; the last one repeats. Base
	// and Factor are then not used.
	Steps []time.Duration
}

// DefaultBackoff is what a zero Backoff means, written out, to start a policy
// of your own from. Changing the variable changes nothing else.
var DefaultBackoff = Backoff{Base: defaultBase, Factor: defaultFactor, Max: defaultMax, Jitter: JitterEqual}

const (
	defaultBase   = 5 * time.Second
	defaultFactor = 3
	defaultMax    = time.Hour
	maxSteps      = 100 // a Backoff is part of a job's record, which is bounded
)

// Delay is the wait after the n-th failed attempt; n starts at 1, and less
// counts as 1. It is random within what Jitter allows, never negative and
// never above Max, for any n.
func (b Backoff) Delay(n int) time.Duration {
	lo, hi := b.span(n)
	return lo + time.Duration(rand.Uint64N(uint64(hi-lo)+1))
}

// span is the least and the greatest Delay(n), both included.
func (b Backoff) span(n int) (lo, hi time.Duration) {
	hi = max(b.wait(max(n, 1)), 0)
	switch b.Jitter {
	case JitterNone:
		return hi, hi
	case JitterFull:
		return 0, hi
	default:
		return hi / 2, hi
	}
}

// wait is the wait without jitter.
func (b Backoff) wait(n int) time.Duration {
	if len(b.Steps) > 0 {
		d := b.Steps[min(n, len(b.Steps))-1]
		if b.Max != 0 {
			d = min(d, b.Max)
		}
		return d
	}
	base, factor, most := b.defaults()
	if n == 1 || base <= 0 {
		return min(base, most)
	}
	if whole := time.Duration(factor); 1 <= factor && factor < math.MaxInt32 && float64(whole) == factor {
		// In integers: exact, and with a factor of 2 or more at Max within 63
		// rounds whatever n is.
		d := base
		for i := 1; i < n && whole > 1 && d < most; i++ {
			if d > most/whole {
				return most
			}
			d *= whole
		}
		return min(d, most)
	}
	// Infinity is fine here, and NaN is refused by validate; a conversion of
	// either to an integer is not.
	d := float64(base) * math.Pow(factor, float64(n-1))
	if !(d < float64(most)) {
		return most
	}
	return min(time.Duration(math.Round(d)), most)
}

func (b Backoff) defaults() (base time.Duration, factor float64, most time.Duration) {
	base, factor, most = b.Base, b.Factor, b.Max
	if base == 0 {
		base = defaultBase
	}
	if factor == 0 {
		factor = defaultFactor
	}
	if most == 0 {
		most = defaultMax
	}
	return base, factor, most
}

func (b Backoff) validate() error {
	base, factor, most := b.defaults()
	switch {
	case b.Base < 0:
		return invalidf("Backoff.Base is %v: use a time above 0, or 0 for %v", b.Base, defaultBase)
	case !(factor >= 1) || math.IsInf(factor, 0): // NaN is not >= 1
		return invalidf("Backoff.Factor is %v: use 1 for a constant wait, more for a growing one, or 0 for %v", b.Factor, defaultFactor)
	case b.Max < 0:
		return invalidf("Backoff.Max is %v: use a time above 0, or 0 for %v", b.Max, defaultMax)
	case b.Jitter < JitterDefault || b.Jitter > JitterNone:
		return invalidf("Backoff.Jitter is %d: use JitterEqual, JitterFull or JitterNone", int(b.Jitter))
	case len(b.Steps) > maxSteps:
		return invalidf("Backoff.Steps has %d waits: use at most %d; the last one repeats", len(b.Steps), maxSteps)
	case len(b.Steps) > 0 && slices.Min(b.Steps) < 0:
		return invalidf("Backoff.Steps has the wait %v: use 0 to retry at once", slices.Min(b.Steps))
	case len(b.Steps) == 0 && base > most:
		return invalidf("Backoff.Base is %v and its Max %v: set Max to as much or more", base, most)
	default:
		return nil
	}
}

func (b Backoff) apply(s *settings) error { return b.applyHandle(&s.policy) }

func (b Backoff) applyHandle(p *policy) error {
	switch {
	case p.backoff != nil:
		return twice("Backoff")
	case p.retry != nil:
		return errTwoWaits
	}
	if err := b.validate(); err != nil {
		return err
	}
	b.Steps = slices.Clone(b.Steps) // the caller's may change later
	p.backoff = &b
	return nil
}

// RetryFunc chooses the wait after a failure, in code; it lives with the
// handler and cannot travel. A negative wait gives up: the job is dead. It is
// asked only where the outcome is open: not after the last attempt, and not
// for an error that carries its own outcome, such as RetryAfter. It must be
// safe for concurrent use.
type RetryFunc func(Failure) time.Duration

func (f RetryFunc) applyHandle(p *policy) error {
	switch {
	case f == nil:
		return invalidf("RetryFunc is nil: leave it out")
	case p.retry != nil:
		return twice("RetryFunc")
	case p.backoff != nil:
		return errTwoWaits
	default:
		p.retry = f
		return nil
	}
}

var errTwoWaits = invalidf("both Backoff and RetryFunc: give one of them; a RetryFunc may call Backoff.Delay")

// Failure is one failed attempt, for a RetryFunc.
type Failure struct {
	Job     *RawJob
	Attempt int   // the one that failed, from 1
	Err     error // what the handler returned, or a *PanicError; not nil
}
