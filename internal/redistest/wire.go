package redistest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// wire passes bytes between a replica and its master, and can stop to. A Proxy
// will not do: what a master sends its replicas is no row of replies. While it
// is stopped both ends believe that the link is up, as with a network that
// loses everything, so that Sentinel still thinks the replica fit to take over.
type wire struct {
	upstream string
	listener net.Listener
	running  sync.WaitGroup
	flow     sync.RWMutex // held by a write of some bytes; by stop, over all of its time

	mu      sync.Mutex
	stopped bool
	closed  bool
	ends    map[net.Conn]struct{}
}

func newWire(t testing.TB, upstream string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("redistest: wire: %v", err)
	}
	w := &wire{upstream: upstream, listener: l, ends: map[net.Conn]struct{}{}}
	w.running.Go(w.accept)
	t.Cleanup(w.close)
	return w
}

func (w *wire) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.DialTimeout("tcp", w.upstream, 5*time.Second)
		if err != nil {
			_ = near.Close()
			continue
		}
		if !w.keep(near, far) {
			continue
		}
		w.running.Go(func() { w.carry(near, far) })
		w.running.Go(func() { w.carry(far, near) })
	}
}

// keep remembers the ends of a connection, unless the wire has closed.
func (w *wire) keep(ends ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range ends {
		if w.closed {
			_ = c.Close()
		} else {
			w.ends[c] = struct{}{}
		}
	}
	return !w.closed
}

// carry moves bytes one way until an end closes. Those that it has read when
// the wire stops wait with it.
func (w *wire) carry(from, to net.Conn) {
	defer func() {
		w.flow.RLock() // the news of an end waits like any other
		defer w.flow.RUnlock()
		_, _ = from.Close(), to.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.ends, from)
		delete(w.ends, to)
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			w.flow.RLock()
			_, failed := to.Write(buf[:n])
			w.flow.RUnlock()
			if failed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// stop returns when nothing moves any more.
func (w *wire) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped {
		w.flow.Lock()
		w.stopped = true
	}
}

// start ends a stop; what was held moves on.
func (w *wire) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		w.flow.Unlock()
		w.stopped = false
	}
}

func (w *wire) close() {
	_ = w.listener.Close()
	w.mu.Lock()
	w.closed = true
	for c := range w.ends {
		_ = c.Close() // before start: what is held must not arrive after all
	}
	w.mu.Unlock()
	w.start()
	w.running.Wait()
}
