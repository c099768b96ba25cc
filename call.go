package pawl

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A call is one script call, which may be sent more than once under the same
// sequence of its lane. It is not safe for concurrent use.
type call struct {
	script *script
	keys   []string // those of the header, the lane's among them
	args   []any    // ARGV; for a mutating script args[0] is the sequence

	full   bool // send the text, not the hash
	unsure bool // an attempt may have run
	first  time.Time

	flying atomic.Bool  // an attempt is under way
	doubt  atomic.Bool  // unsure, for those who do not wait for the attempt
	wire   atomic.Int32 // how far it has come: unwritten, written or withdrawn
	reply  any
	err    error
}

const (
	unwritten int32 = iota
	written
	withdrawn
)

// withdraw keeps an attempt from being written, unless it was.
func (c *call) withdraw() bool {
	return c.wire.CompareAndSwap(unwritten, withdrawn) || c.wire.Load() == withdrawn
}

// mark is a word of a command whose bytes go-redis asks for when it has a
// connection and writes: until then nothing was done for certain, however many
// times it dialled.
type mark struct {
	text string
	call *call
}

// MarshalBinary is called by go-redis.
func (m mark) MarshalBinary() ([]byte, error) {
	if m.call.doubt.Load() && time.Since(m.call.first) > laneTrust {
		return nil, errors.New("not sent: its lane may have forgotten it")
	}
	if !m.call.wire.CompareAndSwap(unwritten, written) && m.call.wire.Load() == withdrawn {
		return nil, errors.New("not sent: nobody waits for it")
	}
	return []byte(m.text), nil
}

// class is classify, told that what was not written was not done.
func (c *call) class() class {
	cl := classify(c.err)
	if cl == classUnknown && c.wire.Load() != written {
		return classRefused
	}
	return cl
}

// command is one attempt: go-redis must not send it again by itself, or it
// would answer "connection refused" for a call whose earlier attempt had run.
type command struct{ *redis.Cmd }

func (command) NoRetry() bool { return true }

func (c *call) command(ctx context.Context) command {
	args := make([]any, 0, 3+len(c.keys)+len(c.args))
	c.wire.CompareAndSwap(written, unwritten)
	if c.full {
		args = append(args, "eval", mark{c.script.body, c})
	} else {
		args = append(args, "evalsha", mark{c.script.sha, c})
	}
	args = append(args, len(c.keys))
	for _, k := range c.keys {
		args = append(args, k)
	}
	args = append(args, c.args...)
	if c.first.IsZero() {
		c.first = time.Now()
	}
	return command{redis.NewCmd(ctx, args...)}
}

// attempt sends the calls once, in one pipeline if they are several, and says
// what became of each. Calls whose script was not cached are sent again with
// its text. No two calls of one lane may be in calls.
func attempt(ctx context.Context, rdb redis.UniversalClient, calls ...*call) {
	send(ctx, rdb, calls)
	var again []*call
	for _, c := range calls {
		if classify(c.err) == classNoScript {
			c.full = true
			again = append(again, c)
		}
	}
	if len(again) > 0 {
		send(ctx, rdb, again)
		for _, c := range again {
			c.full = false
		}
	}
	for _, c := range calls {
		remap(rdb, c.err)
		c.err = explain(c.err)
		if c.class() == classUnknown {
			c.unsure = true
			c.doubt.Store(true)
		}
	}
}

// remap has a cluster's client ask anew who has which slot, if err may mean that
// it sent to the wrong server. go-redis does so when a server tells it of a move,
// which one that died does not; else once a minute.
func remap(rdb redis.UniversalClient, err error) {
	servers, ok := rdb.(cluster)
	if cl := classify(err); ok && (cl == classRefused || cl == classUnknown) {
		servers.ReloadState(context.Background()) // it does not wait, and asks five times a second at most
	}
}

func send(ctx context.Context, rdb redis.UniversalClient, calls []*call) {
	if len(calls) == 1 {
		cmd := calls[0].command(ctx)
		_ = rdb.Process(ctx, cmd)
		calls[0].reply, calls[0].err = cmd.Result()
		return
	}
	pipe := rdb.Pipeline()
	cmds := make([]command, len(calls))
	for i, c := range calls {
		cmds[i] = c.command(ctx)
		_ = pipe.Process(ctx, cmds[i])
	}
	_, err := pipe.Exec(ctx)
	for i, c := range calls {
		c.reply, c.err = cmds[i].Result()
		if c.err == nil && c.reply == nil && err != nil {
			c.err = err // the pipeline failed before this command had a reply
		}
	}
}

// errStale is an answer that only a broken lane can get.
var errStale = errors.New("stale sequence")

// text is the reply of a script that answers with words.
func (c *call) text() (string, error) {
	s, ok := c.reply.(string)
	if !ok {
		return "", fmt.Errorf("script %s answered %T", c.script.name, c.reply)
	}
	if s == "stale" {
		return "", errStale
	}
	return s, nil
}

// call sends a control call until it is answered, ctx ends, or it can never
// be. Errors: ErrUnconfirmed if it may have run; ErrFull; others mean that
// nothing was done. The lane goes back to the pool when the last attempt ended,
// which may be after call returned: go-redis does not heed a context while it
// reads.
func (q *queueState) call(ctx context.Context, s *script, keys []string, args ...any) (string, error) {
	ctx, cancel := withDefaultTimeout(ctx)
	defer cancel()
	l := q.lanes.get()
	keys = withLane(keys, l)
	c := &call{script: s, keys: keys, args: append([]any{l.next()}, args...)}
	type outcome struct {
		text string
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		text, err := q.repeat(ctx, c)
		q.lanes.put(l)
		done <- outcome{text, err}
	}()
	select {
	case o := <-done:
		return o.text, o.err
	case <-ctx.Done():
		if !c.flying.Load() { // then repeat is about to say what it knows
			o := <-done
			return o.text, o.err
		}
		if c.withdraw() && !c.doubt.Load() { // it still dials
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("%w: %w", ErrUnconfirmed, context.Cause(ctx))
	}
}

func (q *queueState) repeat(ctx context.Context, c *call) (string, error) {
	for n := 0; ; n++ {
		c.flying.Store(true)
		if ctx.Err() == nil {
			attempt(context.WithoutCancel(ctx), q.client.rdb, c)
		}
		c.flying.Store(false)
		if n == 0 && c.first.IsZero() {
			return "", context.Cause(ctx)
		}
		cl := c.class()
		if cl == classAnswered {
			text, err := c.text()
			if errors.Is(err, errStale) {
				err = fmt.Errorf("%w: %w", ErrUnconfirmed, err)
			}
			return text, err
		}
		if err := c.verdict(cl); err != nil {
			return "", err
		}
		select {
		case <-ctx.Done():
			return "", c.giveUp(context.Cause(ctx))
		case <-time.After(retryPause(n)):
		}
		if c.unsure && time.Since(c.first) > laneTrust {
			return "", c.giveUp(errors.New("no answer within a minute"))
		}
	}
}

// verdict is the error that ends a call at once, or nil if it may be sent again.
func (c *call) verdict(cl class) error {
	switch cl {
	case classFull:
		err := fmt.Errorf("%w: %w", ErrFull, c.err)
		if c.unsure { // an earlier attempt may yet arrive, and find room
			err = fmt.Errorf("%w: %w", ErrUnconfirmed, err)
		}
		return err
	case classDenied, classBroken:
		if c.unsure || cl == classDenied && midway(c.err) {
			return fmt.Errorf("%w: %w", ErrUnconfirmed, c.err)
		}
		return c.err
	default:
		return nil
	}
}

func (c *call) giveUp(cause error) error {
	if c.unsure {
		return fmt.Errorf("%w: %w: %w", ErrUnconfirmed, cause, c.err)
	}
	return fmt.Errorf("%w: %w", cause, c.err)
}

// retryPause grows from 10 ms to 1 s, half of it random, so that a fleet does
// not return to a server that just came back in one beat.
func retryPause(n int) time.Duration {
	d := min(10*time.Millisecond<<min(n, 10), time.Second)
	return d/2 + rand.N(d/2)
}

// enqueueTimeout bounds a call whose context has no deadline.
const enqueueTimeout = 5 * time.Second

func withDefaultTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, enqueueTimeout)
}

// laneKey marks the place of the lane's key among a script's keys.
const laneKey = "\x00lane"

func withLane(keys []string, l *lane) []string {
	for i, k := range keys {
		if k == laneKey {
			keys[i] = l.key
		}
	}
	return keys
}
