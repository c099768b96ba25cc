package pawl

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The blocking read for a wake-up token: short at first, longer while a queue
// stays idle. A lost token costs this long, never a job.
const (
	minBlock = 2 * time.Second
	maxBlock = 10 * time.Second
)

// readGrace is how much later than it should a blocking read may end before its
// queues are polled beside it. go-redis waits ten seconds longer, and on a
// connection that went dead unnoticed the tokens go where nobody reads.
const readGrace = time.Second

// A waker blocks on the wake lists of idle feeds that share a connection: all
// feeds of a worker on a single server, each its own on any other, where the lists
// may lie in different slots or on different servers.
type waker struct {
	worker *Worker
	rdb    redis.UniversalClient
	feeds  []*feed
	signal chan struct{}
	stop   string // the key on which close ends the read
	most   time.Duration
	block  time.Duration

	mu      sync.Mutex
	reading bool
	rousing bool           // it waits until feeds have asked
	listed  map[*feed]bool // whose lists are in the read that is under way, or was
	closing bool
	// interrupts under way, which close waits for: one that came after it had
	// cleared up would leave its key behind.
	interrupts sync.WaitGroup
}

func newWakers(w *Worker) {
	rdb := w.cfg.Blocking
	if rdb == nil {
		rdb = w.client.rdb
	}
	_, one := rdb.(oneServer)
	w.wakers = make([]*waker, len(w.feeds))
	for i, f := range w.feeds {
		if i > 0 && one {
			w.wakers[i] = w.wakers[0]
			w.wakers[0].feeds = append(w.wakers[0].feeds, f)
			continue
		}
		// Never longer than leases last between two renewals: a job whose holder
		// died is found in time, and a renewal that waits for the connection of
		// this read is in time.
		most := max(time.Second, min(maxBlock, (w.cfg.VisibilityTimeout/3).Truncate(time.Second)))
		w.wakers[i] = &waker{worker: w, rdb: rdb, feeds: []*feed{f}, signal: make(chan struct{}, 1),
			listed: map[*feed]bool{}, stop: f.q.keys.stop(f.tracks[0].leaser.key[len(f.q.keys.prefix):]), most: most, block: min(minBlock, most)}
	}
}

// poke has loop look at its feeds again, now that f has asked for work: if there is
// anything to see, for under load that is asked after each round trip. A read that does
// not wait for f is ended, or f would not hear of its next job.
func (k *waker) poke(f *feed) {
	idle := f.idle()
	k.mu.Lock()
	defer k.mu.Unlock()
	if idle || k.rousing {
		nudge(k.signal)
	}
	if !k.closing && k.reading && !k.listed[f] && idle {
		k.reading = false
		k.interrupts.Go(k.interrupt) // the feed's loop must not wait for it
	}
}

// interrupt ends the read that is under way, or the next. By a script, so that
// there is no key without an expiry, whatever happens. Twice does no harm.
func (k *waker) interrupt() {
	c := &call{script: scriptStop, keys: []string{k.stop}}
	for range 3 { // a connection of the pool may be broken, and the next one too
		attempt(context.Background(), k.worker.client.rdb, c)
		if c.err == nil {
			return
		}
	}
}

// watch is the feeds that wait for work, and their lists. One may have no slot for
// it just now: then the token makes it ask as soon as there is one.
func (k *waker) watch() (idle []*feed, keys []string) {
	idle, keys = make([]*feed, 0, len(k.feeds)), make([]string, 0, len(k.feeds)+1)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range k.feeds {
		k.listed[f] = f.idle()
		if k.listed[f] {
			idle = append(idle, f)
			keys = append(keys, f.q.keys.wake)
		}
	}
	k.reading = len(keys) > 0
	return idle, keys
}

// loop blocks while feeds are idle, and hands on what wakes them.
func (k *waker) loop(stop <-chan struct{}) {
	asked := time.Now() // when all that are idle were last had to ask
	for n := 0; ; {
		idle, keys := k.watch()
		select {
		case <-stop:
			return
		default:
		}
		if len(keys) > 0 && k.worker.outages.renewing() {
			// There may be no second connection: the renewals have this one first,
			// and the queues are polled.
			k.mu.Lock()
			k.reading = false
			k.mu.Unlock()
			k.sleep(stop, minBlock)
			for _, f := range idle {
				f.wake()
			}
			continue
		}
		if len(keys) == 0 {
			k.block = min(minBlock, k.most)
			select {
			case <-stop:
				return
			case <-k.signal:
			}
			continue
		}
		read := make(chan struct{})
		go k.outwait(read, k.block, idle)
		got, err := k.rdb.BLPop(context.Background(), k.block, append(keys, k.stop)...).Result()
		close(read)
		k.mu.Lock()
		k.reading = false
		k.mu.Unlock()
		switch {
		case err == redis.Nil:
			n, asked = 0, time.Now()
			k.block = min(2*k.block, k.most)
			k.rouse(stop, idle...)
		case err != nil:
			// The feed's own call finds out what is wrong, and says so once. A
			// wrong type at one list must not stop the others: they are polled.
			remap(k.rdb, err)
			for _, f := range idle {
				f.wake()
			}
			k.sleep(stop, retryPause(n))
			n++
		case len(got) == 2 && slices.Contains(keys, got[0]): // not the stop key
			n = 0
			k.block = min(minBlock, k.most)
			f := idle[slices.Index(keys, got[0])]
			if !f.worker.slots.free(f.index) {
				passOn(f.q)
			}
			if time.Since(asked) < k.most {
				k.rouse(stop, f)
				break
			}
			// Tokens of one queue keep the read from timing out, and those of others
			// may have been lost.
			asked = time.Now()
			k.rouse(stop, idle...)
		}
	}
}

// outwait polls the feeds of a read that lasts longer than it should.
func (k *waker) outwait(read <-chan struct{}, block time.Duration, feeds []*feed) {
	t := time.NewTimer(block + readGrace)
	defer t.Stop()
	for {
		select {
		case <-read:
			return
		case <-t.C:
			for _, f := range feeds {
				f.wake()
			}
			t.Reset(block)
		}
	}
}

// rouse has feeds ask for work and waits until those that have slots did, so
// that the waker does not block on lists whose tokens they are about to remove.
func (k *waker) rouse(stop <-chan struct{}, feeds ...*feed) {
	k.setRousing(true)
	defer k.setRousing(false)
	answers := map[*feed]int{}
	for _, f := range feeds {
		free := f.worker.slots.free(f.index)
		if n := f.wake(); free {
			answers[f] = n
		}
	}
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	for f, n := range answers {
		for f.asking(n) {
			select {
			case <-k.signal:
			case <-limit.C:
				return
			case <-stop:
				return
			}
		}
	}
}

func (k *waker) setRousing(is bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rousing = is
}

func (k *waker) sleep(stop <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-stop:
	case <-t.C:
	}
}

// close ends a blocking read that may be under way, and clears up after it.
func (k *waker) close(ended <-chan struct{}) {
	k.mu.Lock()
	k.closing = true
	k.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.interrupt()
		<-ended
		k.interrupts.Wait()
		k.worker.client.rdb.Del(context.Background(), k.stop)
		if k.worker.alive.Err() != nil {
			return
		}
		// A token that this worker took may have been meant for others.
		for _, f := range k.feeds {
			passOn(f.q)
		}
	}()
	limit := drainGrace
	if k.worker.outages.err() != nil {
		limit = 100 * time.Millisecond // it had its time
	}
	select {
	case <-done:
	case <-time.After(limit):
		// Redis does not answer; the read ends by its own timeout.
	}
}

// passOn gives another worker the hint that this one cannot follow.
func passOn(q *queueState) {
	c := &call{script: scriptWake, keys: []string{q.keys.wake}}
	attempt(context.Background(), q.client.rdb, c)
}
