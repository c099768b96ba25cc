package pawl

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The bounds of one script call (DESIGN: every call bounded).
const (
	maxCallItems = 500
	maxCallRuns  = 250 // of leases and outcomes, which cost Redis 10 to 16 us each
	maxCallBytes = 1 << 20
)

// A call that takes this long no longer holds back the calls behind it.
const stallAfter = 25 * time.Millisecond

// maxFlushers bounds the connections that enqueues of one queue may occupy.
const maxFlushers = 32

// A batcher sends enqueues. Calls that come while one is under way share the
// next one, so that many callers cost few round trips and one caller waits for
// nobody.
type batcher struct {
	q  *queueState
	mu sync.Mutex
	// waiting groups have not been sent.
	waiting []*group
	active  []*flusher
	// alarmed: an alarm is set, to look whether the calls under way have stalled.
	alarmed bool
}

// A flusher sends one call after another while groups wait.
type flusher struct {
	since time.Time // when its call was begun; zero between two calls
}

// group is the jobs of one caller, enqueued together or not at all. Its state
// is guarded by the batcher's mutex.
type group struct {
	items []*item
	one   [1]*item // of most groups: items is made of it
	size  int
	done  chan struct{}   // closed when err and the results stand
	left  <-chan struct{} // closed when the caller is about to stop waiting
	err   error

	call    *call // that carries it
	flying  bool  // an attempt is under way
	unsure  bool  // an attempt may have run
	gone    bool  // the caller has stopped waiting
	refusal error // of the last attempt that was refused
}

func newGroup(it *item) *group {
	g := &group{size: it.size(), done: make(chan struct{})}
	g.items = append(g.one[:0], it)
	return g
}

func (g *group) add(it *item) {
	g.items = append(g.items, it)
	g.size += it.size()
}

// fits says whether a call of so many items and bytes may take more.
func fits(items, bytes, moreItems, moreBytes int) bool {
	return items == 0 || items+moreItems <= maxCallItems && bytes+moreBytes <= maxCallBytes
}

// enqueue returns when the group is enqueued, refused for good, or ctx ends.
func (b *batcher) enqueue(ctx context.Context, g *group) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	g.left = ctx.Done()
	b.mu.Lock()
	b.waiting = append(b.waiting, g)
	b.start()
	b.mu.Unlock()
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-g.done:
		return g.err
	default:
	}
	g.gone = true
	if g.unsure || g.flying && !g.call.withdraw() {
		return fmt.Errorf("%w: %w", ErrUnconfirmed, context.Cause(ctx))
	}
	if g.refusal != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), g.refusal)
	}
	return context.Cause(ctx)
}

// start runs a flusher if groups wait and none will come to them soon, or if they
// fill a call of their own while one is under way. A flusher that is between two
// calls takes them itself.
func (b *batcher) start() {
	if len(b.waiting) == 0 || len(b.active) == maxFlushers {
		return
	}
	var late time.Duration // of the last call that was begun
	inTime := 0            // calls that are not late
	for i, f := range b.active {
		if f.since.IsZero() {
			return
		}
		d := time.Since(f.since)
		if i == 0 || d < late {
			late = d
		}
		if d < stallAfter {
			inTime++
		}
	}
	if inTime == 0 || inTime == 1 && b.filled() {
		f := &flusher{}
		b.active = append(b.active, f)
		go b.flush(f)
	} else if !b.alarmed {
		b.alarmed = true
		time.AfterFunc(stallAfter-late, b.alarm)
	}
}

// filled reports whether the groups that wait are as much as one call takes.
func (b *batcher) filled() bool {
	items, bytes := 0, 0
	for _, g := range b.waiting {
		items += len(g.items)
		bytes += g.size
	}
	return items >= maxCallItems || bytes >= maxCallBytes
}

// alarm is one for all calls that come and go meanwhile: a timer for each would
// cost more than most other things that are done for a job.
func (b *batcher) alarm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.alarmed = false
	b.start()
}

func (b *batcher) flush(f *flusher) {
	l := b.q.lanes.get()
	defer b.q.lanes.put(l)
	for {
		groups := b.take(f)
		if groups == nil {
			return
		}
		b.commit(f, l, groups)
		// Callers who were just answered often have another job: it shall share
		// the next call rather than wait for it.
		runtime.Gosched()
	}
}

// take is the groups of the next call, or nil, and then the flusher has ended.
func (b *batcher) take(f *flusher) []*group {
	b.mu.Lock()
	defer b.mu.Unlock()
	var groups []*group
	items, bytes := 0, 0
	for i, g := range b.waiting {
		if g.gone {
			continue
		}
		if !fits(items, bytes, len(g.items), g.size) {
			b.waiting = append(b.waiting[:0], b.waiting[i:]...)
			return groups
		}
		groups = append(groups, g)
		items += len(g.items)
		bytes += g.size
	}
	clear(b.waiting)
	b.waiting = b.waiting[:0]
	if groups == nil {
		b.active = slices.DeleteFunc(b.active, func(a *flusher) bool { return a == f })
	}
	return groups
}

// commit sends one call until it is answered or nobody waits for it.
func (b *batcher) commit(f *flusher, l *lane, groups []*group) {
	b.begin(f)
	defer b.end(f)
	seq := l.next()
	var c *call
	for n := 0; ; n++ {
		fresh := c == nil || !c.unsure
		if fresh {
			c = &call{script: scriptEnqueue}
		}
		groups = b.launch(groups, c)
		if len(groups) == 0 {
			return
		}
		if fresh {
			b.fill(c, l, seq, groups) // those who left are left out
		}
		attempt(context.Background(), b.q.client.rdb, c)
		cl := c.class()
		if cl == classAnswered {
			b.q.enlist()
			b.settle(groups, b.read(c, groups))
			return
		}
		if cl == classBroken && !c.unsure && len(groups) > 1 {
			// One caller's key of a wrong type must not be every caller's error.
			b.land(groups, c)
			for _, g := range groups {
				b.commit(f, l, []*group{g})
			}
			return
		}
		err := c.verdict(cl)
		if c.unsure && time.Since(c.first) > laneTrust {
			err = c.giveUp(errors.New("no answer within a minute"))
		}
		if err != nil {
			b.settle(groups, err)
			return
		}
		b.land(groups, c)
		pause(groups, retryPause(n))
	}
}

// pause waits before the next attempt, but not when nobody waits for it.
func pause(groups []*group, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for _, g := range groups {
		select {
		case <-timer.C:
			return
		case <-g.left:
		}
	}
}

// begin and end mark a call as under way: while it is late others may go ahead.
func (b *batcher) begin(f *flusher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f.since = time.Now()
	b.start()
}

func (b *batcher) end(f *flusher) {
	b.mu.Lock()
	f.since = time.Time{}
	b.mu.Unlock()
}

// launch marks the groups as under way. Those whose callers left are dropped,
// but a call that may have run must be sent again as it was.
func (b *batcher) launch(groups []*group, c *call) []*group {
	b.mu.Lock()
	defer b.mu.Unlock()
	var live []*group
	for _, g := range groups {
		if !g.gone {
			live = append(live, g)
		}
	}
	if len(live) > 0 && c.unsure {
		live = groups
	}
	for _, g := range live {
		g.flying, g.call = true, c
	}
	return live
}

func (b *batcher) land(groups []*group, c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range groups {
		g.flying, g.unsure, g.refusal = false, c.unsure, c.err
	}
}

func (b *batcher) settle(groups []*group, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range groups {
		g.flying, g.err = false, err
		close(g.done)
	}
}

func (b *batcher) fill(c *call, l *lane, seq string, groups []*group) {
	k := &b.q.keys
	n := 0
	for _, g := range groups {
		n += len(g.items)
	}
	c.keys = []string{k.jobs, k.held, k.due, k.prio, k.leases, k.runs, k.meta, k.minutes, k.wake, l.key}
	c.args = make([]any, 2, 2+3*n)
	c.args[0], c.args[1] = seq, n
	first := len(c.keys)
	for _, g := range groups {
		for _, it := range g.items {
			index := 0
			if it.unique != nil {
				c.keys = append(c.keys, k.unique(it.unique.Key))
				index = len(c.keys) - first
			}
			c.args = append(c.args, strconv.FormatUint(it.low, 10), it.record, it.how(index))
		}
	}
}

// read turns the script's answer into the items' results.
func (b *batcher) read(c *call, groups []*group) error {
	text, err := c.text()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	}
	return readAdded("enqueue", text, groups)
}

// readAdded reads what a script that adds jobs says of them.
func readAdded(script, text string, groups []*group) error {
	a, err := readEnqueue(strings.Split(text, " "))
	if err != nil {
		return fmt.Errorf("%w: script %s answered %q", ErrUnconfirmed, script, text)
	}
	for _, g := range groups {
		for _, it := range g.items {
			if !a.give(it) {
				return fmt.Errorf("%w: script %s answered %q for other jobs", ErrUnconfirmed, script, text)
			}
		}
	}
	if !a.over() {
		return fmt.Errorf("%w: script %s answered %q for fewer jobs", ErrUnconfirmed, script, text)
	}
	return nil
}
