package pawl

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Unique keeps at most one live job per key: an enqueue under a key that is
// held adds no job, unless OnDuplicate says otherwise. The key is held from the enqueue on, in the same script,
// and by the id of the job that holds it; keys are the queue's, shared by all
// its kinds. A redrive takes the key again, or is refused with the holder's
// id. The zero Unique is one live job for each kind and arguments.
//
// Unique is about what enters the queue; Idempotency is about what runs. Neither
// makes a handler's effect happen once: see RawJob.IdempotencyKey.
type Unique struct {
	// Key is the identity, at most 512 bytes; make it with Key. Empty: the
	// kind and the encoded arguments, hashed.
	Key string
	// Until says when the key is free again. Default UntilDone, which counts
	// done, dead, discarded and cancelled.
	Until UniqueUntil
	// For also holds the key for this long from enqueue, even if the job has
	// ended: a deduplication window. It costs the key's memory for as long.
	// An enqueue that replaces a job, or waits behind one, begins it anew, and never
	// makes it shorter. 0 is no window; at most 100 years. Whoever enqueues again after
	// ErrUnconfirmed needs it, since the first job may be done by then. Within
	// the window a duplicate is not always a job that will be done: its holder
	// may be dead, as Get tells.
	For time.Duration
	// OnDuplicate says what happens to the second one. Default KeepExisting.
	OnDuplicate OnDuplicate
}

// UniqueUntil says when the key of a Unique is free again.
type UniqueUntil int

const (
	UntilDone    UniqueUntil = iota // free once the job has ended
	UntilStarted                    // free once the first attempt starts
)

// OnDuplicate says what an enqueue does under a key that is held.
type OnDuplicate int

const (
	// KeepExisting drops the new job: Enqueue returns the one that holds the
	// key, with Duplicate set and no error.
	KeepExisting OnDuplicate = iota
	// RejectDuplicate is KeepExisting with ErrDuplicate.
	RejectDuplicate
	// ReplaceWaiting gives the job that waits under the key everything of the new
	// one: kind, arguments, headers, due time, policies. With a Delay that is a
	// debounce. The job keeps its id, and with it EnqueuedAt; its ExpireIn counts anew,
	// and failed attempts and crashes of the old one are forgotten. One that was
	// ready, and still is, keeps its place among those that are ready.
	//
	// A running job is left alone and wins: the new one is then dropped, as by
	// KeepExisting. So it is while the lease of a dead worker's job has not been taken
	// by another, and if the holder has ended and only its window (For) is left. If
	// the jobs of a key have an Idempotency, let it be the same for all: a run that a
	// shutdown cut short may have marked that of the old one.
	ReplaceWaiting
	// RunLatestAfter lets the running job finish, then runs the newest one. While
	// the holder runs, the new job waits behind it (StateParked), where a further
	// enqueue replaces it, and goes on when that run is over, however it ends: done, dead,
	// cancelled, discarded, or with a retry or a snooze, which does not take place
	// then, so that the holder counts as discarded. If the holder does not run, this is
	// ReplaceWaiting. A run that a crash or a shutdown cut short is not over: the
	// holder runs again first. Not with UntilStarted, since a job that has started
	// does not hold its key then.
	RunLatestAfter
)

const maxUniqueKey = 512 // bytes

func (u Unique) apply(s *settings) error {
	switch {
	case s.unique != nil:
		return twice("Unique")
	case len(u.Key) > maxUniqueKey:
		return invalidf("Unique.Key has %d bytes: use at most %d, such as a hash of it", len(u.Key), maxUniqueKey)
	case u.Until < UntilDone || u.Until > UntilStarted:
		return invalidf("Unique.Until is %d: use UntilDone or UntilStarted", int(u.Until))
	case u.For < 0:
		return invalidf("Unique.For is %v: to hold the key no longer than the job, leave it out", u.For)
	case u.For > maxWait:
		return invalidf("Unique.For is %v: use at most 100 years", u.For)
	case u.OnDuplicate < KeepExisting || u.OnDuplicate > RunLatestAfter:
		return invalidf("Unique.OnDuplicate is %d: use KeepExisting, RejectDuplicate, ReplaceWaiting or RunLatestAfter", int(u.OnDuplicate))
	case u.OnDuplicate == RunLatestAfter && u.Until == UntilStarted:
		return invalidf("Unique has RunLatestAfter and UntilStarted: a job that runs holds no key then, so leave out one of them")
	default:
		s.unique = &u
		return nil
	}
}

// uniqueKeyText is the key to hold. 128 bits of the hash are enough to meet no
// other arguments by chance, and 32 digits can still be read to a colleague.
func uniqueKeyText(u Unique, kind string, payload []byte) string {
	if u.Key != "" {
		return u.Key
	}
	sum := sha256.Sum256(payload)
	return kind + ":" + hex.EncodeToString(sum[:16])
}

// Key joins parts into one unambiguous key: Key("a", "bc") and Key("ab", "c")
// differ, and so do Key("a:b") and Key("a", "b"). Key("order", 42) is
// "order:42"; a ":" or "\" inside a part is escaped by a "\", and an empty
// part is `\e`. Key() is empty.
//
// Use business data, never the current time: two tries of one job must agree.
//
// A part is written by its text, so 1 and "1" are equal: string and []byte as
// they are, a time.Time in UTC to the nanosecond (RFC 3339), a fmt.Stringer by
// String, numbers in decimal with all their digits, nil as <nil>. A pointer
// stands for what it points to. A struct, map, slice or array is written in Go
// syntax, with the name of its type and with the addresses that are in it:
// better give its fields, one by one.
func Key(parts ...any) string {
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteByte(':')
		}
		text := keyText(part)
		if text == "" {
			// Otherwise Key("") would be Key(), and as Unique.Key would mean
			// the arguments: one empty id, and all jobs differ.
			b.WriteString(`\e`)
			continue
		}
		b.WriteString(keyEscaper.Replace(text))
	}
	return b.String()
}

var keyEscaper = strings.NewReplacer(`\`, `\\`, `:`, `\:`)

func keyText(part any) string {
	switch v := part.(type) {
	case string:
		return v
	case time.Time: // a Stringer, but one that prints zone and monotonic clock
		return v.UTC().Format(time.RFC3339Nano)
	case *time.Time:
		if v != nil {
			return keyText(*v)
		}
		return "<nil>"
	case fmt.Stringer, error:
		return fmt.Sprint(v) // not v.String(), which may panic for a nil pointer
	}
	r := reflect.ValueOf(part)
	switch r.Kind() {
	case reflect.Pointer:
		// Its address would be another in each process.
		if r.IsNil() {
			return "<nil>"
		}
		return keyText(r.Elem().Interface())
	case reflect.Slice:
		if r.Type().Elem().Kind() == reflect.Uint8 {
			return string(r.Bytes())
		}
		return fmt.Sprintf("%#v", part)
	case reflect.Struct, reflect.Map, reflect.Array:
		// %v prints []string{"a b"} and []string{"a", "b"} alike.
		return fmt.Sprintf("%#v", part)
	default:
		return fmt.Sprint(part)
	}
}
