package pawl

import (
	"reflect"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Args is what a job carries: a type that names its kind. The kind is stored
// with each job and is how a worker finds the handler, so it must be the same
// for every value of the type and must not change; add a KindAliases method to
// rename it. It is 1 to 255 bytes of UTF-8 without control characters.
//
// Two more methods are optional:
//
//	KindAliases() []string        // older names this type also handles
//	JobOptions() []pawl.Option    // defaults; may use the receiver's fields
//
// Of JobOptions, what concerns the queue (Delay, Priority, Unique, …) is read
// at enqueue. What concerns the run (a Policy: MaxAttempts, Timeout, Backoff,
// …) is read where the job runs, so that a deploy changes it for jobs that
// already wait.
//
// The methods must not change their receiver: they may be called more than
// once, and from several goroutines if the value is shared.
type Args interface{ Kind() string }

// KindAliaser is Args that once had other names. Its handler also takes the
// jobs that wait under them; new jobs are enqueued under Kind.
type KindAliaser interface{ KindAliases() []string }

// Optioner is Args with options of its own, as if given to each Enqueue;
// what Enqueue is given itself wins over them, option by option.
type Optioner interface{ JobOptions() []Option }

// Kind gives a kind to a type that cannot have methods of yours: a protobuf
// message, a type of another package, a string. Make it once with Define and
// share it between producer and worker. It is immutable and safe for
// concurrent use. The zero Kind has no name: what is enqueued or registered
// through it is refused with ErrInvalid.
type Kind[T any] struct {
	kind string
	opts []Option
}

// Define makes a Kind. The options are what JobOptions is to a type with
// methods. Neither name nor options are checked here, for want of a place to
// return an error: what is wrong with them is an ErrInvalid of each Enqueue
// and of the worker.
//
//	var SendInvoice = pawl.Define[*billingpb.Invoice]("invoice.send", pawl.MaxAttempts(12))
//	q.Enqueue(ctx, SendInvoice.Args(inv))
//	SendInvoice.Handle(w, func(ctx context.Context, job *pawl.Job[*billingpb.Invoice]) error { … })
func Define[T any](kind string, opts ...Option) Kind[T] {
	return Kind[T]{kind: kind, opts: slices.Clone(opts)}
}

// Args wraps v for Enqueue. The codec sees v itself, not the wrapper.
func (k Kind[T]) Args(v T) Args { return wrapped[T]{of: k, value: v} }

// wrapped is the Args of a Kind. The Kind is a named field, not embedded: its
// methods would otherwise become methods of the Args.
type wrapped[T any] struct {
	of    Kind[T]
	value T
}

func (w wrapped[T]) Kind() string         { return w.of.kind }
func (w wrapped[T]) JobOptions() []Option { return slices.Clone(w.of.opts) }
func (w wrapped[T]) payload() any         { return w.value }

// payloader is Args that only carries what is to be encoded.
type payloader interface{ payload() any }

// argsPayload is what the codec encodes for a.
func argsPayload(a Args) any {
	if p, ok := a.(payloader); ok {
		return p.payload()
	}
	return a
}

// checkArgs refuses Args that have no kind to enqueue them under. After it, a
// and a.Kind can be used without fear of a panic over nil.
func checkArgs(a Args) (err error) {
	if a == nil {
		return invalidf("the arguments are nil: give a value of a type with a Kind method")
	}
	if isNilPointer(a) {
		return invalidf("the arguments are a nil %T: give a pointer to a value, or the value", a)
	}
	// A struct with a nil embedded Args panics just as a nil pointer does.
	defer func() {
		if v := recover(); v != nil {
			err = invalidf("the Kind method of %T panicked (%v): it must return a constant", a, v)
		}
	}()
	return validKind(a.Kind())
}

// validKind refuses a kind that could not be stored, logged or shown.
func validKind(kind string) error {
	switch {
	case kind == "":
		return invalidf("the kind is empty: name it by the Kind method or by Define")
	case len(kind) > maxKind:
		return invalidf("the kind %.40q… has %d bytes: use at most %d", kind, len(kind), maxKind)
	case !utf8.ValidString(kind):
		return invalidf("the kind %q is not UTF-8: use text", kind)
	case kind == canaryName:
		return invalidf("the kind %q is that of canaries, which workers run by themselves: choose another", kind)
	}
	for _, r := range kind {
		if unicode.IsControl(r) {
			return invalidf("the kind %q has the control character %U: leave it out", kind, r)
		}
	}
	return nil
}

const maxKind = 255 // bytes

// isNilPointer sees the nil inside a non-nil interface.
func isNilPointer(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
