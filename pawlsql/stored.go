package pawlsql

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawlq/pawl"
)

// storedVersion is that of the JSON below. A field that is added needs no new one: a
// relay that does not know a field refuses the row.
const storedVersion = 1

// stored is the options of a job as its row has them. Zero fields are not given.
type stored struct {
	Version           int               `json:"v"`
	Delay             duration          `json:"delay,omitzero"`
	At                time.Time         `json:"at,omitzero"`
	Priority          int               `json:"priority,omitzero"`
	ExpireIn          duration          `json:"expire_in,omitzero"`
	Headers           map[string]string `json:"headers,omitempty"`
	Unique            *storedUnique     `json:"unique,omitempty"`
	Idempotency       storedIdempotency `json:"idempotency,omitzero"` // else of the row
	Retain            duration          `json:"retain,omitzero"`
	Then              []storedThen      `json:"then,omitempty"`
	MaxAttempts       int               `json:"max_attempts,omitzero"`
	Timeout           duration          `json:"timeout,omitzero"` // negative: none
	MaxCrashes        int               `json:"max_crashes,omitzero"`
	VisibilityTimeout duration          `json:"visibility_timeout,omitzero"`
	Backoff           *storedBackoff    `json:"backoff,omitempty"`
}

type storedUnique struct {
	Key         string   `json:"key,omitempty"` // empty: of kind and payload
	Until       int      `json:"until,omitzero"`
	For         duration `json:"for"`
	OnDuplicate int      `json:"on_duplicate,omitzero"` // only of what follows
}

// storedThen is a job that follows another.
type storedThen struct {
	Kind    string `json:"kind"`
	Payload []byte `json:"payload"` // base64
	Options stored `json:"options"`
}

type storedIdempotency struct {
	Key    string   `json:"key"`
	Window duration `json:"window,omitzero"`
}

type storedBackoff struct {
	Base   duration   `json:"base,omitzero"`
	Factor float64    `json:"factor,omitzero"`
	Max    duration   `json:"max,omitzero"`
	Jitter int        `json:"jitter,omitzero"`
	Steps  []duration `json:"steps,omitempty"`
}

// duration is text such as "1h0m0s", for those who look into the table.
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = duration(v)
	return err
}

// store takes what pawl.Config.Prepare returned.
func store(opts []pawl.Option) (stored, error) { return storeAs(opts, checkUnique) }

// storeAs is store for a job whose Unique is checked so.
func storeAs(opts []pawl.Option, check func(pawl.Unique) error) (stored, error) {
	s := stored{Version: storedVersion}
	for _, o := range opts {
		switch o := o.(type) {
		case pawl.Delay:
			s.Delay = duration(o)
		case pawl.At:
			s.At = time.Time(o).UTC()
		case pawl.Priority:
			s.Priority = int(o)
		case pawl.ExpireIn:
			s.ExpireIn = duration(o)
		case pawl.Header:
			if s.Headers == nil {
				s.Headers = map[string]string{}
			}
			s.Headers[o.Key] = o.Value
		case pawl.Unique:
			if err := check(o); err != nil {
				return stored{}, err
			}
			s.Unique = &storedUnique{Key: o.Key, Until: int(o.Until), For: duration(o.For), OnDuplicate: int(o.OnDuplicate)}
		case pawl.Idempotency:
			if !utf8.ValidString(o.Key) {
				return stored{}, invalidf("Idempotency.Key %q is not UTF-8: encode it, as in hex", o.Key)
			}
			s.Idempotency = storedIdempotency{o.Key, duration(o.Window)}
		case pawl.Retain:
			s.Retain = duration(o)
		case pawl.Then:
			next, err := storeThen(o)
			if err != nil {
				return stored{}, err
			}
			s.Then = append(s.Then, next)
		case pawl.MaxAttempts:
			s.MaxAttempts = int(o)
		case pawl.Timeout:
			s.Timeout = duration(o)
		case pawl.MaxCrashes:
			s.MaxCrashes = int(o)
		case pawl.VisibilityTimeout:
			s.VisibilityTimeout = duration(o)
		case pawl.Backoff:
			s.Backoff = storeBackoff(o)
		default:
			return stored{}, invalidf("the option %T cannot be stored in an outbox: leave it out", o)
		}
	}
	return s, nil
}

// storeThen takes a follow-up, whose arguments Prepare has encoded. It is no relay that
// enqueues it, so that its Unique may be any.
func storeThen(t pawl.Then) (storedThen, error) {
	raw, ok := t.Args.(pawl.Raw)
	if !ok {
		return storedThen{}, invalidf("the follow-up %T is not encoded: let Prepare do it", t.Args)
	}
	s, err := storeAs(t.Options, func(u pawl.Unique) error {
		if !utf8.ValidString(u.Key) {
			return invalidf("Unique.Key %q is not UTF-8: encode it, as in hex", u.Key)
		}
		return nil
	})
	return storedThen{raw.Name, append([]byte{}, raw.Payload...), s}, err
}

// option is what storeThen took.
func (t storedThen) option() pawl.Option {
	opts := t.Options.options(0)
	if i := t.Options.Idempotency; i.Key != "" {
		opts = append(opts, pawl.Idempotency{Key: i.Key, Window: time.Duration(i.Window)})
	}
	raw := pawl.Raw{Name: t.Kind}
	if len(t.Payload) > 0 {
		raw.Payload = t.Payload
	}
	return pawl.Then{Args: raw, Options: opts}
}

func checkUnique(u pawl.Unique) error {
	switch {
	case u.For < remember:
		return invalidf("Unique.For is %v: in an outbox it must be %v or more, since it is also what keeps a relay that crashed "+
			"from adding the job twice. Give it, in the call if the type has a Unique of its own; or leave Unique out", u.For, remember)
	case u.OnDuplicate != pawl.KeepExisting:
		return invalidf("Unique.OnDuplicate is not KeepExisting: when a relay enqueues the job there is no caller to tell, and relays " +
			"keep no order by which one job could replace another")
	case !utf8.ValidString(u.Key):
		return invalidf("Unique.Key %q is not UTF-8: encode it, as in hex", u.Key)
	}
	return nil
}

func storeBackoff(b pawl.Backoff) *storedBackoff {
	s := &storedBackoff{Base: duration(b.Base), Factor: b.Factor, Max: duration(b.Max), Jitter: int(b.Jitter)}
	for _, step := range b.Steps {
		s.Steps = append(s.Steps, duration(step))
	}
	return s
}

func (s stored) encode() (string, error) {
	text, err := json.Marshal(s)
	return string(text), err
}

func decodeStored(text string) (s stored, err error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields() // an option that is ignored is a job that is not the one asked for
	if err := dec.Decode(&s); err != nil {
		return stored{}, fmt.Errorf("options %q cannot be read, by this version of pawlsql: %w", text, err)
	}
	if s.Version != storedVersion {
		return stored{}, fmt.Errorf("options are of version %d, and this pawlsql reads %d: let a relay of the version that wrote them have the row", s.Version, storedVersion)
	}
	return s, nil
}

// options are those of a row that was inserted so long ago, but for its Idempotency.
func (s stored) options(age time.Duration) []pawl.Option {
	var opts []pawl.Option
	give := func(given bool, o pawl.Option) {
		if given {
			opts = append(opts, o)
		}
	}
	// Never early: the moments of which age is the difference may each be rounded, to
	// a millisecond at the worst. And the clock may have been set back.
	age = max(age-time.Millisecond, 0)
	delay := time.Duration(s.Delay) - age
	give(delay > 0, pawl.Delay(delay))
	give(!s.At.IsZero(), pawl.At(s.At))
	give(s.Priority != 0, pawl.Priority(s.Priority))
	// One that has expired by now is enqueued to expire there: it becomes a dead job
	// and not a row that vanished.
	give(s.ExpireIn != 0, pawl.ExpireIn(max(time.Duration(s.ExpireIn)-age, time.Millisecond)))
	for _, key := range slices.Sorted(maps.Keys(s.Headers)) {
		opts = append(opts, pawl.Header{Key: key, Value: s.Headers[key]})
	}
	if u := s.Unique; u != nil {
		opts = append(opts, pawl.Unique{Key: u.Key, Until: pawl.UniqueUntil(u.Until), For: time.Duration(u.For), OnDuplicate: pawl.OnDuplicate(u.OnDuplicate)})
	}
	give(s.Retain != 0, pawl.Retain(s.Retain))
	for _, next := range s.Then {
		opts = append(opts, next.option())
	}
	give(s.MaxAttempts != 0, pawl.MaxAttempts(s.MaxAttempts))
	give(s.Timeout != 0, pawl.Timeout(s.Timeout))
	give(s.MaxCrashes != 0, pawl.MaxCrashes(s.MaxCrashes))
	give(s.VisibilityTimeout != 0, pawl.VisibilityTimeout(s.VisibilityTimeout))
	if b := s.Backoff; b != nil {
		o := pawl.Backoff{Base: time.Duration(b.Base), Factor: b.Factor, Max: time.Duration(b.Max), Jitter: pawl.Jitter(b.Jitter)}
		for _, step := range b.Steps {
			o.Steps = append(o.Steps, time.Duration(step))
		}
		opts = append(opts, o)
	}
	return opts
}
