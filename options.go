package pawl

import (
	"errors"
	"fmt"
	"time"
)

// Option is a choice for one job, given to Enqueue. Every option is data: it
// can be kept in a variable, shared between goroutines, compared and asserted
// in a test.
//
// What is given to Enqueue wins over what the handler says (Handle), which
// wins over what the type says (JobOptions), which wins over WorkerConfig,
// option by option. Giving one option twice in a place is ErrInvalid, except
// Header with different keys.
//
// A value that makes no sense is ErrInvalid when it is given: nothing is
// ignored, and nothing is cut to fit. Times are kept in milliseconds, rounded
// up: a job may be late by less than one, never early.
type Option interface{ apply(*settings) error }

// HandleOption is a choice for one kind, given to Handle: a Policy or a
// RetryFunc. One that makes no sense, or is given twice, is Run's error.
type HandleOption interface{ applyHandle(*policy) error }

// Policy is how a job runs: it may be given to Enqueue, to Handle, or by the
// type. Given to Enqueue it travels with the job; elsewhere it is read where
// the job runs, so that a deploy changes it for jobs that already wait.
type Policy interface {
	Option
	HandleOption
}

// NoTimeout switches the bound on a run off, as Timeout(NoTimeout).
const NoTimeout time.Duration = -1

// Delay holds the job back, by the server's clock, counted from its enqueue.
// 0 is at once, even where the type says otherwise. At most 100 years.
type Delay time.Duration

// At holds the job back until a time. A time that is past means now. Its year
// is 1 to 9999, and it is not the zero Time. A Delay and an At exclude each
// other; the one given to Enqueue wins over either of the type.
type At time.Time

// Priority puts a job before those of a lower priority: 1 to 9, highest first
// among the jobs that have one; fresh and due jobs keep a share. 0, the
// default, is first come, first served.
type Priority int

// Header adds one header; it may be given more than once, with different keys.
// See Headers for what is allowed. A header given to Enqueue wins over one of
// the type with the same key.
type Header struct{ Key, Value string }

// ExpireIn dead-letters the job, reason "expired", if it has not been done by
// then, counted from its enqueue or redrive. It is looked at on lease, failure
// and put-back: a run that has begun is not cut short. More than 0, at most
// 100 years.
type ExpireIn time.Duration

// MaxAttempts is how many runs may fail before the job is dead. The first one
// counts too: 1 is "never retry". 0 is not set, and 10000 the most there is.
type MaxAttempts int

// Timeout bounds one run: its context then ends with ErrTimeout, and the error
// that the handler returns counts as a failed attempt. NoTimeout removes the
// bound. 0 is not set; at most 100 years.
type Timeout time.Duration

// MaxCrashes is how many workers a job may take down before it is dead, at
// most 255. 0 is not set. MaxCrashes(1) with MaxAttempts(1) is at-most-once
// delivery: once its handler has been called the job is never run again, nor
// given back at shutdown, but dies if the run does not succeed.
type MaxCrashes int

// VisibilityTimeout is the time without heartbeat after which another worker
// takes the job: it bounds the detection of a crash, not the length of a run.
// From 100 ms to 24 h; 0 is not set.
type VisibilityTimeout time.Duration

const (
	maxWait        = 36525 * 24 * time.Hour // 100 years
	maxPriority    = 9
	maxMaxAttempts = 10_000
	maxMaxCrashes  = 255 // a byte of the job's head
	minVisibility  = 100 * time.Millisecond
	maxVisibility  = 24 * time.Hour
)

// settings is what the options of one enqueue come to.
type settings struct {
	delay       time.Duration
	at          time.Time // zero: not given
	priority    int
	headers     Headers // nil: none
	expireIn    time.Duration
	unique      *Unique
	idempotency *Idempotency
	retain      time.Duration // 0: not given
	then        []Then
	chain       []follower // what then comes to
	policy      policy
	given       given
}

// given marks the options whose zero says something: Delay(0) of a call beats
// Delay(time.Hour) of the type.
type given uint8

const (
	givenDelay given = 1 << iota
	givenPriority
)

// policy is what the policies of one place come to. Zero fields are not set.
type policy struct {
	maxAttempts int
	timeout     time.Duration // NoTimeout: none
	maxCrashes  int
	visibility  time.Duration
	backoff     *Backoff
	retry       RetryFunc
}

// over is p where it is set, and q elsewhere. How to wait is one choice: a
// backoff or a retry function of p hides both of q.
func (p policy) over(q policy) policy {
	if p.maxAttempts == 0 {
		p.maxAttempts = q.maxAttempts
	}
	if p.timeout == 0 {
		p.timeout = q.timeout
	}
	if p.maxCrashes == 0 {
		p.maxCrashes = q.maxCrashes
	}
	if p.visibility == 0 {
		p.visibility = q.visibility
	}
	if p.backoff == nil && p.retry == nil {
		p.backoff, p.retry = q.backoff, q.retry
	}
	return p
}

// resolve is what an enqueue comes to: of what the call gives and the type
// says, for the queue's side. The policy is that of the call alone, since only
// that travels with the job; see typePolicy.
func resolve(call, typ []Option) (settings, error) {
	s, err := collect(call)
	t, typErr := collect(typ)
	if typErr != nil {
		err = errors.Join(err, fmt.Errorf("JobOptions: %w", typErr))
	}
	if s.given&givenDelay == 0 && s.at.IsZero() {
		s.delay, s.at = t.delay, t.at
	}
	if s.given&givenPriority == 0 {
		s.priority = t.priority
	}
	if s.expireIn == 0 {
		s.expireIn = t.expireIn
	}
	if s.unique == nil {
		s.unique = t.unique
	}
	if s.idempotency == nil {
		s.idempotency = t.idempotency
	}
	if s.then == nil {
		s.then = t.then
	}
	if s.retain == 0 {
		s.retain = t.retain
	}
	s.given |= t.given
	s.headers = s.headers.over(t.headers)
	if s.expireIn > 0 && s.delay >= s.expireIn {
		err = errors.Join(err, invalidf("ExpireIn(%v) with Delay(%v): the job would expire before it may run; raise ExpireIn", s.expireIn, s.delay))
	}
	if err = errors.Join(err, s.headers.checkSize()); err != nil {
		return settings{}, err
	}
	return s, nil
}

// collect reads the options of one place.
func collect(list []Option) (settings, error) {
	if len(list) == 0 {
		return settings{}, nil // most jobs have none, and what is below is allocated
	}
	var s settings
	var errs []error
	for i, o := range list {
		if o == nil || isNilPointer(o) {
			errs = append(errs, invalidf("option %d of %d is nil: leave it out", i+1, len(list)))
		} else if err := o.apply(&s); err != nil {
			errs = append(errs, err)
		}
	}
	if s.given&givenDelay != 0 && !s.at.IsZero() {
		errs = append(errs, invalidf("both Delay and At: give one of them"))
	}
	return s, errors.Join(errs...)
}

// typePolicy is the policy among a type's options. The others are not looked
// at: a worker asks a zero value of the type, whose At may well be zero too.
func typePolicy(typ []Option) (policy, error) {
	list := make([]HandleOption, 0, len(typ))
	for _, o := range typ {
		if h, ok := o.(HandleOption); ok || o == nil {
			list = append(list, h)
		}
	}
	p, err := handlePolicy(list)
	if err != nil {
		err = fmt.Errorf("JobOptions: %w", err)
	}
	return p, err
}

// handlePolicy is the policy that the options of a registration come to.
func handlePolicy(list []HandleOption) (policy, error) {
	var p policy
	var errs []error
	for i, o := range list {
		if o == nil || isNilPointer(o) {
			errs = append(errs, invalidf("option %d of %d is nil: leave it out", i+1, len(list)))
		} else if err := o.applyHandle(&p); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return policy{}, err
	}
	return p, nil
}

func twice(name string) error { return invalidf("%s is given twice: give it once", name) }

func (d Delay) apply(s *settings) error {
	switch w := time.Duration(d); {
	case s.given&givenDelay != 0:
		return twice("Delay")
	case w < 0:
		return invalidf("Delay(%v) is negative: to run at once, leave it out", w)
	case w > maxWait:
		return invalidf("Delay(%v) is above 100 years: give less", w)
	default:
		s.delay, s.given = w, s.given|givenDelay
		return nil
	}
}

func (a At) apply(s *settings) error {
	t := time.Time(a)
	switch y := t.UTC().Year(); {
	case !s.at.IsZero():
		return twice("At")
	case t.IsZero():
		return invalidf("At is the zero time: to run at once, leave At out")
	case y < 1 || y > 9999:
		return invalidf("At is in the year %d: give one from 1 to 9999", y)
	default:
		s.at = t
		return nil
	}
}

func (p Priority) apply(s *settings) error {
	switch {
	case s.given&givenPriority != 0:
		return twice("Priority")
	case p < 0 || p > maxPriority:
		return invalidf("Priority(%d): give 1 to %d, or 0 for none", int(p), maxPriority)
	default:
		s.priority, s.given = int(p), s.given|givenPriority
		return nil
	}
}

func (e ExpireIn) apply(s *settings) error {
	switch w := time.Duration(e); {
	case s.expireIn != 0:
		return twice("ExpireIn")
	case w <= 0:
		return invalidf("ExpireIn(%v) is not above 0: for a job that does not expire, leave it out", w)
	case w > maxWait:
		return invalidf("ExpireIn(%v) is above 100 years: for a job that does not expire, leave it out", w)
	default:
		s.expireIn = w
		return nil
	}
}

func (h Header) apply(s *settings) error {
	if _, ok := s.headers[h.Key]; ok {
		return twice(fmt.Sprintf("Header %.40q", h.Key))
	}
	if err := h.check(); err != nil {
		return err
	}
	if s.headers == nil {
		s.headers = Headers{}
	}
	s.headers[h.Key] = h.Value
	return nil
}

func (m MaxAttempts) apply(s *settings) error { return m.applyHandle(&s.policy) }

func (m MaxAttempts) applyHandle(p *policy) error {
	switch {
	case p.maxAttempts != 0:
		return twice("MaxAttempts")
	case m < 0 || m > maxMaxAttempts:
		return invalidf("MaxAttempts(%d): give 1, which is never to retry, to %d, or 0 for the default", int(m), maxMaxAttempts)
	default:
		p.maxAttempts = int(m)
		return nil
	}
}

func (m MaxCrashes) apply(s *settings) error { return m.applyHandle(&s.policy) }

func (m MaxCrashes) applyHandle(p *policy) error {
	switch {
	case p.maxCrashes != 0:
		return twice("MaxCrashes")
	case m < 0 || m > maxMaxCrashes:
		return invalidf("MaxCrashes(%d): give 1 to %d, or 0 for the default", int(m), maxMaxCrashes)
	default:
		p.maxCrashes = int(m)
		return nil
	}
}

func (t Timeout) apply(s *settings) error { return t.applyHandle(&s.policy) }

func (t Timeout) applyHandle(p *policy) error {
	switch d := time.Duration(t); {
	case p.timeout != 0:
		return twice("Timeout")
	case d < 0 && d != NoTimeout, d > maxWait:
		return invalidf("Timeout(%v): give a time above 0, NoTimeout for no bound, or 0 for the default", d)
	default:
		p.timeout = d
		return nil
	}
}

func (v VisibilityTimeout) apply(s *settings) error { return v.applyHandle(&s.policy) }

func (v VisibilityTimeout) applyHandle(p *policy) error {
	switch d := time.Duration(v); {
	case p.visibility != 0:
		return twice("VisibilityTimeout")
	case d != 0 && (d < minVisibility || d > maxVisibility):
		return invalidf("VisibilityTimeout(%v): give %v to %v, or 0 for the default", d, minVisibility, maxVisibility)
	default:
		p.visibility = d
		return nil
	}
}

// ceilMillis is d in milliseconds, rounded up: never early.
func ceilMillis(d time.Duration) int64 {
	ms := d.Milliseconds() // towards zero, which for a negative d is up
	if d > 0 && d%time.Millisecond != 0 {
		ms++
	}
	return ms
}
