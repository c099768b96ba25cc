package pawl

import (
	"context"
	"maps"
	"slices"
)

// Raw is Args that are encoded already, past the codec: EnqueueRaw for the calls
// that take Args, EnqueueMany among them. Name is the kind.
type Raw struct {
	Name    string
	Payload []byte
}

// Kind is Name.
func (r Raw) Kind() string { return r.Name }

// asRaw is the Raw that args are, if they are one.
func asRaw(args Args) (Raw, bool) {
	switch r := args.(type) {
	case Raw:
		return r, true
	case *Raw: // not nil: checkArgs came first
		return *r, true
	}
	return Raw{}, false
}

// Prepare does what Enqueue does before it sends anything, for a job that is to
// be stored elsewhere first, as in an outbox, and enqueued later, perhaps by
// another program: it encodes the arguments, asks Inject for headers, and checks
// name, kind, size and options. Errors as Enqueue's for what was refused; nothing
// is ever sent.
//
// Enqueued on the same queue, what it returns makes the job that args and opts
// would have made: the options are those of the call with what they leave open
// of the type's, each as the value of its type (never a pointer), every option
// once, headers sorted by key.
// Policies of the type are not among them: they are read where the job runs.
func (cfg Config) Prepare(ctx context.Context, queue string, args Args, opts ...Option) (Raw, []Option, error) {
	c, err := newClient(nil, cfg)
	if err != nil {
		return Raw{}, nil, err
	}
	q := &queueState{client: c, name: queue, err: checkName(queue)}
	raw, s, err := q.draft(ctx, args, opts)
	if err != nil {
		return Raw{}, nil, q.wrap("prepare", err)
	}
	return raw, s.options(), nil
}

// options is what resolve makes these settings of.
func (s settings) options() []Option {
	var list []Option
	give := func(given bool, o Option) {
		if given {
			list = append(list, o)
		}
	}
	give(s.delay > 0, Delay(s.delay))
	give(!s.at.IsZero(), At(s.at))
	give(s.priority > 0, Priority(s.priority))
	give(s.expireIn > 0, ExpireIn(s.expireIn))
	for _, key := range slices.Sorted(maps.Keys(s.headers)) {
		list = append(list, Header{key, s.headers[key]})
	}
	if s.unique != nil {
		list = append(list, *s.unique)
	}
	if s.idempotency != nil {
		list = append(list, *s.idempotency)
	}
	give(s.retain > 0, Retain(s.retain))
	for _, f := range s.chain {
		list = append(list, Then{f.raw, f.settings.options()})
	}
	p := s.policy
	give(p.maxAttempts != 0, MaxAttempts(p.maxAttempts))
	give(p.timeout != 0, Timeout(p.timeout))
	give(p.maxCrashes != 0, MaxCrashes(p.maxCrashes))
	give(p.visibility != 0, VisibilityTimeout(p.visibility))
	if p.backoff != nil {
		list = append(list, *p.backoff)
	}
	return list
}
