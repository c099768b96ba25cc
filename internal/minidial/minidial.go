// Package minidial connects to a miniredis in memory, without a network.
package minidial

import (
	"net"
	"sync"

	"github.com/alicebob/miniredis/v2"
)

// buffered is what miniredis reads of a call before it begins to answer, in bytes.
const buffered = 4096

// Dial connects to m. The connection is in the bubble of synctest of its caller, if that
// is in one.
func Dial(m *miniredis.Miniredis) (net.Conn, error) {
	c, err := m.Dial()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// conn is a pipe whose writes need not be read at once, as those to a network need not. A
// net.Pipe has no buffer: a long pipeline of commands, and the answers to its first ones,
// would wait for each other.
type conn struct {
	net.Conn

	mu      sync.Mutex
	waiting []byte
	writing bool // somebody writes what waits
	err     error
}

func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	switch {
	case c.err != nil:
		defer c.mu.Unlock()
		return 0, c.err
	case !c.writing && len(p) <= buffered:
		c.mu.Unlock()
		return c.Conn.Write(p)
	}
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, p...)
	if !c.writing {
		c.writing = true
		go c.write()
	}
	return len(p), nil
}

// write ends when nothing waits any more, or with the connection.
func (c *conn) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.waiting) > 0 && c.err == nil {
		next := c.waiting
		c.waiting = nil
		c.mu.Unlock()
		_, err := c.Conn.Write(next)
		c.mu.Lock()
		c.err = err
	}
	c.writing = false
}
