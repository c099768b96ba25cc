package pawl

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/pawlq/pawl/internal/record"
	"github.com/pawlq/pawl/internal/testhook"
)

func init() {
	testhook.Look = func(w any) testhook.View { return w.(*Worker).look() }
	testhook.Copy = func(w any) any { return w.(*Worker).copied() }
	testhook.Abandon = func(w any) { w.(*Worker).abandon() }
	testhook.Codec = func(c any) any { return c.(*Client).codec }
	testhook.Job = func(c any, queue string, id ID, rec *record.Record) any {
		return *rawJob(c.(*Client).queue(queue), id, rec)
	}
	testhook.Encode = func(c any, queue string, args, options any) ([]byte, any, error) {
		return c.(*Client).encode(queue, args.(Args), options.([]Option))
	}
	testhook.Scripts = func(change func(name, body string) string) {
		for name, s := range scripts {
			if body := change(name, s.body); body != s.body {
				s.set(body)
			}
		}
	}
}

func (w *Worker) look() testhook.View {
	v := testhook.View{Client: w.client, Used: w.started.Load()}
	for _, f := range w.feeds {
		v.Queues = append(v.Queues, f.q.name)
		f.mu.Lock()
		v.Busy = v.Busy || f.hungry || len(f.running) > 0
		if !f.next.IsZero() && (v.Next.IsZero() || f.next.Before(v.Next)) {
			v.Next = f.next
		}
		f.mu.Unlock()
	}
	return v
}

// copied shares the lanes, so that a hundred copies do not leave a hundred times
// as many keys behind. No two of them run at once.
func (w *Worker) copied() *Worker {
	c, err := NewWorker(w.client, w.cfg)
	if err != nil {
		panic(fmt.Sprintf("pawl: the configuration of a worker is refused the second time: %v", err))
	}
	for i, f := range c.feeds {
		f.extender.lane, f.courier.lane = w.feeds[i].extender.lane, w.feeds[i].courier.lane
		for n, t := range f.tracks {
			t.lanes, t.leaser = w.feeds[i].tracks[n].lanes, w.feeds[i].tracks[n].leaser
		}
	}
	maps.Copy(c.handlers, w.handlers)
	c.timeless = true
	c.errs = slices.Clone(w.errs)
	return c
}

// abandon has Run return without settling, releasing or renewing anything.
// Every feed quits before the first handler learns of it: no handler's outcome
// gets out through a feed that is still at work.
func (w *Worker) abandon() {
	for _, f := range w.feeds {
		f.drain(true)
	}
	for _, f := range w.feeds {
		f.cancelAll(errAbandoned)
		f.mu.Lock()
		clear(f.running)
		f.mu.Unlock()
	}
	w.kill()
}

// errAbandoned is the cause of the contexts of an abandoned worker's handlers.
var errAbandoned = fmt.Errorf("%w: abandoned, as by a crash", ErrShutdown)

func (c *Client) encode(queue string, args Args, options []Option) ([]byte, any, error) {
	plain, err := New(c.rdb, Config{Namespace: c.namespace, Codec: c.codec, MaxPayload: c.max})
	if err != nil {
		return nil, nil, err
	}
	it, err := plain.queue(queue).prepare(context.Background(), args, options)
	if err != nil {
		return nil, nil, err
	}
	if _, ok := asRaw(args); ok { // the codec encoded nothing
		return it.record, nil, nil
	}
	return it.record, argsPayload(args), nil
}
