package redistest

import (
	"bufio"
	"net"
	"sync"
	"time"
)

// link is one client connection and its connection to the server. One
// goroutine reads commands, one reads replies; replies belong to the calls in
// queue, in order.
type link struct {
	p                *Proxy
	client, upstream *net.TCPConn
	gone             chan struct{} // closed by the first cut

	mu    sync.Mutex
	queue []*call // forwarded and not answered
	idle  func()  // to be done once, when queue is empty
	mute  bool    // no reply is passed on any more
	lost  bool    // a black hole took something
}

// commands forwards what the client sends, until it leaves or a fault ends it.
func (l *link) commands() {
	r := bufio.NewReader(l.client)
	for {
		raw, words, err := readCommand(r)
		if err != nil {
			// All that was forwarded still runs; replies end when Redis closes.
			_ = l.upstream.CloseWrite()
			return
		}
		c := l.p.arrived(words)
		if l.p.swallows() {
			l.lose()
			c.fired()
			continue
		}
		switch c.fault.kind {
		case drop:
			l.whenIdle(func() { l.cut(); c.fired() })
			return
		case late:
			c.raw, c.done = raw, make(chan struct{})
			l.whenIdle(func() { l.keep(c); c.fired() })
			return
		case stall:
			if !l.sleep(c.fault.wait) {
				return
			}
		case refuse: // something harmless holds its place among the replies
			raw = []byte("*1\r\n$4\r\nPING\r\n")
		}
		if !l.forward(c, raw) {
			return
		}
	}
}

// forward sends a call to the server and tells whether to read on.
func (l *link) forward(c *call, raw []byte) bool {
	l.mu.Lock()
	l.queue = append(l.queue, c)
	l.mu.Unlock()
	if _, err := l.upstream.Write(raw); err != nil {
		l.cut()
		return false
	}
	switch c.fault.kind {
	case stall:
		c.fired()
	case runDropReply, runReset, halfReply:
		return false
	}
	return true
}

// replies passes on what the server answers, until it closes.
func (l *link) replies() {
	defer l.cut()
	r := bufio.NewReader(l.upstream)
	for {
		raw, err := readReply(r)
		if err != nil {
			return
		}
		l.mu.Lock()
		var c *call
		if raw[0] != '>' && len(l.queue) > 0 { // else a push, or a refusal at accept
			c = l.queue[0]
		}
		l.mu.Unlock()
		if c == nil {
			l.pass(raw)
			continue
		}
		l.answer(c, raw)
		l.mu.Lock()
		l.queue = l.queue[1:]
		var idle func()
		if len(l.queue) == 0 {
			idle, l.idle = l.idle, nil
		}
		l.mu.Unlock()
		if idle != nil {
			idle()
		}
	}
}

// answer does with a reply what the call's fault says.
func (l *link) answer(c *call, raw []byte) {
	switch c.fault.kind {
	case runDropReply:
		l.cut()
	case runReset:
		l.reset()
	case halfReply:
		l.pass(raw[:len(raw)/2])
		l.cut()
	case hold:
		l.mu.Lock()
		l.mute = true
		l.mu.Unlock()
	case late:
		c.reply = raw
		close(c.done)
		return
	case delay:
		l.sleep(c.fault.wait)
		l.pass(raw)
	case trickle:
		for i := range raw {
			l.pass(raw[i : i+1])
			l.sleep(c.fault.wait)
		}
	case refuse:
		l.pass([]byte("-" + c.fault.text + "\r\n"))
	default:
		l.pass(raw)
		return
	}
	c.fired()
}

// pass writes to the client; one that has left gets nothing.
func (l *link) pass(raw []byte) {
	if l.p.swallows() {
		l.lose()
	}
	l.mu.Lock()
	mute := l.mute
	l.mu.Unlock()
	if !mute {
		_, _ = l.client.Write(raw)
	}
}

// whenIdle does f after the replies to all forwarded calls were passed on.
func (l *link) whenIdle(f func()) {
	l.mu.Lock()
	if len(l.queue) > 0 {
		l.idle = f
		f = func() {}
	}
	l.mu.Unlock()
	f()
}

// keep parts the client from its late call, which waits for release.
func (l *link) keep(c *call) {
	l.mu.Lock()
	l.queue = append(l.queue, c)
	l.mute = true
	l.mu.Unlock()
	l.p.postpone(l)
	_ = l.client.Close()
}

func (l *link) release() string {
	l.mu.Lock()
	c := l.queue[0]
	l.mu.Unlock()
	defer l.cut()
	if _, err := l.upstream.Write(c.raw); err != nil {
		return ""
	}
	select {
	case <-c.done:
		return string(c.reply)
	case <-l.gone:
		return ""
	}
}

// lose notes that bytes of this connection went into a black hole: what is left
// of it would be out of step, so nothing is passed on any more.
func (l *link) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mute, l.lost = true, true
}

func (l *link) lossy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// reset cuts so that the client reads "connection reset by peer".
func (l *link) reset() {
	_ = l.client.SetLinger(0)
	l.cut()
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.gone:
		return
	default:
		close(l.gone)
	}
	_ = l.client.Close()
	_ = l.upstream.Close()
}

// sleep waits, and tells whether the connection is still there.
func (l *link) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.gone:
		return false
	}
}
