package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"
)

// customers are the servers of this story, in the order in which it names them.
type customers []*customer

func openCustomers(ctx context.Context, j *journal) (customers, error) {
	add := func(name string, answers ...answer) *customer {
		return &customer{name: name, answers: answers, journal: j, secret: []byte(rand.Text()), effects: map[string]string{}}
	}
	all := customers{
		add("well"),
		add("busy",
			answer{code: http.StatusTooManyRequests, retryAfter: seconds(1)},
			answer{code: http.StatusServiceUnavailable, retryAfter: date(2 * time.Second)}),
		add("gone", answer{code: http.StatusGone}),
		add("strict", answer{code: http.StatusUnprocessableEntity}),
		add("shaky", answer{code: http.StatusInternalServerError}, answer{code: http.StatusBadGateway}),
		add("mute", answer{lost: true}),
	}
	for _, c := range all {
		if err := c.open(ctx); err != nil {
			return all, err
		}
	}
	return all, nil
}

// endpoints is what the sender knows of them.
func (cs customers) endpoints() map[string]endpoint {
	endpoints := map[string]endpoint{}
	for _, c := range cs {
		endpoints[c.name] = endpoint{URL: "http://" + c.addr + "/events", Secret: c.secret}
	}
	return endpoints
}

func (cs customers) names() (names []string) {
	for _, c := range cs {
		names = append(names, c.name)
	}
	return names
}

func (cs customers) close() {
	for _, c := range cs {
		c.close()
	}
}

// open listens, at the address it had before if it had one.
func (c *customer) open(ctx context.Context) error {
	addr := c.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", addr)
	for errors.Is(err, syscall.EADDRINUSE) {
		// A connection of another program may have been given this port.
		select {
		case <-time.After(50 * time.Millisecond):
			listener, err = net.Listen("tcp", addr)
		case <-ctx.Done():
			return fmt.Errorf("open %s again: %w", c.name, errors.Join(err, context.Cause(ctx)))
		}
	}
	if err != nil {
		return err
	}
	server := &http.Server{Handler: c, ReadHeaderTimeout: 5 * time.Second}
	c.addr, c.server = listener.Addr().String(), server
	go func() { _ = server.Serve(listener) }() // its error says that it was closed
	return nil
}

// close ends it as a crash does: connections too, and new ones are refused.
func (c *customer) close() {
	if c.server != nil {
		_ = c.server.Close()
	}
}
