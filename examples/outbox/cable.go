package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"syscall"
	"time"
)

// cable is the way to Redis of everybody in the story. It can be cut, and mended.
type cable struct {
	redis *url.URL
	addr  string

	mu       sync.Mutex
	listener net.Listener // nil while it is cut: connections are refused
	ends     map[net.Conn]bool
}

func newCable(ctx context.Context, redis string) (*cable, error) {
	u, err := url.Parse(redis)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "redis" {
		return nil, errors.New("REDIS_URL: this example needs a redis:// URL, since it cuts the connections on their way")
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), "6379")
	}
	c := &cable{redis: u, addr: "127.0.0.1:0", ends: map[net.Conn]bool{}}
	return c, c.mend(ctx)
}

// url is that of the Redis at the other end.
func (c *cable) url() string {
	u := *c.redis
	u.Host = c.addr
	return u.String()
}

// mend listens, at the address it had before if it had one.
func (c *cable) mend(ctx context.Context) error {
	listener, err := net.Listen("tcp", c.addr)
	for errors.Is(err, syscall.EADDRINUSE) {
		// A connection of another program may have been given this port.
		if stopped := pause(ctx, 50*time.Millisecond); stopped != nil {
			return errors.Join(err, stopped)
		}
		listener, err = net.Listen("tcp", c.addr)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addr, c.listener = listener.Addr().String(), listener
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // it is cut
			}
			go c.carry(listener, conn)
		}
	}()
	return nil
}

func (c *cable) carry(listener net.Listener, near net.Conn) {
	defer c.drop(near)
	far, err := net.Dial("tcp", c.redis.Host)
	if err != nil {
		return
	}
	defer c.drop(far)
	c.mu.Lock()
	if c.listener != listener {
		c.mu.Unlock()
		return // it was cut meanwhile
	}
	c.ends[near], c.ends[far] = true, true
	c.mu.Unlock()
	go func() {
		_, _ = io.Copy(far, near)
		_ = far.Close()
	}()
	_, _ = io.Copy(near, far)
}

func (c *cable) drop(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ends, conn)
	_ = conn.Close()
}

// cut ends all connections, and refuses new ones.
func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listener == nil {
		return
	}
	_ = c.listener.Close()
	c.listener = nil
	for conn := range c.ends {
		_ = conn.Close()
	}
}
