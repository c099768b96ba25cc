package pawl

import (
	"context"
	"errors"
	"fmt"
	"reflect"
)

// handler is what a worker knows of a kind.
type handler struct {
	run Handler
	// policy is what Handle and Define were given.
	policy policy
	// own reads the policy of the type from a job's arguments; nil if it has none.
	own func(kind string, payload []byte) policy
}

// errUndecodable marks arguments that do not fit their type: no retry cures it.
var errUndecodable = errors.New("arguments do not decode")

// Handle registers the handler for a kind of job, before Run. What is wrong
// with a registration, a second handler for a kind included, is Run's error.
// The kind is asked of a zero T (of a new one, if T is a pointer), as are
// KindAliases. Not safe for concurrent use, nor once Run was called.
func Handle[T Args](w *Worker, fn func(context.Context, *Job[T]) error, opts ...HandleOption) {
	zero, err := zeroArgs[T]()
	if err != nil {
		w.errs = append(w.errs, err)
		return
	}
	kinds := []string{zero.Kind()}
	if a, ok := any(zero).(KindAliaser); ok {
		kinds = append(kinds, a.KindAliases()...)
	}
	var own func(string, []byte) policy
	if _, ok := any(zero).(Optioner); ok {
		own = func(kind string, payload []byte) policy { return ownPolicy[T](w.client.codec, kind, payload) }
	}
	for _, kind := range kinds {
		register(w, kind, fn, own, opts)
	}
}

// Handle registers the handler for the kind; see the function Handle.
func (k Kind[T]) Handle(w *Worker, fn func(context.Context, *Job[T]) error, opts ...HandleOption) {
	p, err := typePolicy(k.opts)
	if err != nil {
		w.errs = append(w.errs, fmt.Errorf("kind %q: %w", k.kind, err))
	}
	register(w, k.kind, fn, nil, opts)
	if h := w.handlers[k.kind]; h != nil {
		h.policy = h.policy.over(p) // which no arguments change
	}
}

// HandleRaw registers a handler that sees bytes. See Handle.
func (w *Worker) HandleRaw(kind string, h Handler, opts ...HandleOption) {
	if h == nil {
		w.errs = append(w.errs, invalidf("handler of kind %q is nil", kind))
		return
	}
	w.register(kind, &handler{run: h}, opts)
}

func register[T any](w *Worker, kind string, fn func(context.Context, *Job[T]) error, own func(string, []byte) policy, opts []HandleOption) {
	if fn == nil {
		w.errs = append(w.errs, invalidf("handler of kind %q is nil", kind))
		return
	}
	run := func(ctx context.Context, raw *RawJob) error {
		job := &Job[T]{RawJob: *raw}
		if err := w.client.codec.Decode(raw.Kind, raw.Payload, &job.Args); err != nil {
			return Permanent(fmt.Errorf("%w as %T: %w", errUndecodable, job.Args, err))
		}
		return fn(ctx, job)
	}
	w.register(kind, &handler{run: run, own: own}, opts)
}

func (w *Worker) register(kind string, h *handler, opts []HandleOption) {
	if w.started.Load() {
		w.errs = append(w.errs, invalidf("handler of kind %q was registered after Run", kind))
		return
	}
	if err := validKind(kind); err != nil {
		w.errs = append(w.errs, err)
	}
	if w.handlers[kind] != nil {
		w.errs = append(w.errs, invalidf("kind %q has two handlers", kind))
	}
	p, err := handlePolicy(opts)
	if err != nil {
		w.errs = append(w.errs, fmt.Errorf("handler of kind %q: %w", kind, err))
	}
	h.policy = p
	for i := len(w.cfg.Middleware) - 1; i >= 0 && h.run != nil; i-- {
		if h.run, err = wrapHandler(w.cfg.Middleware[i], h.run); err != nil {
			w.errs = append(w.errs, invalidf("WorkerConfig.Middleware[%d], given the handler of kind %q: %w", i, kind, err))
		}
	}
	w.handlers[kind] = h
}

// wrapHandler is next in a middleware, which is the user's code.
func wrapHandler(m Middleware, next Handler) (h Handler, err error) {
	defer func() {
		if p := recover(); p != nil {
			h, err = nil, fmt.Errorf("it panics: %v", p)
		}
	}()
	if h = m(next); h == nil {
		err = errors.New("it returns a nil Handler")
	}
	return h, err
}

// zeroArgs is a T whose methods can be called: a pointer type gets a new value.
func zeroArgs[T Args]() (zero T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = invalidf("Handle: Kind of a zero %T panics: %v", zero, p)
		}
	}()
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Interface {
		return zero, invalidf("Handle: %s is an interface; name the type of the arguments", t)
	}
	if t.Kind() == reflect.Pointer {
		zero = reflect.New(t.Elem()).Interface().(T)
	}
	zero.Kind()
	return zero, nil
}

// ownPolicy is the policy among the type's JobOptions, which may depend on the
// arguments. Arguments that do not decode have none; their run says why.
func ownPolicy[T Args](codec Codec, kind string, payload []byte) (p policy) {
	defer func() { _ = recover() }() // JobOptions is the user's code
	var args T
	if err := codec.Decode(kind, payload, &args); err != nil {
		return policy{}
	}
	if o, ok := any(args).(Optioner); ok {
		p, _ = typePolicy(o.JobOptions())
	}
	return p
}
