package redistest

import (
	"net"
	"time"
)

// accept makes a link of each connection, until the proxy closes.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client.(*net.TCPConn)) })
	}
}

func (p *Proxy) serve(client *net.TCPConn) {
	upstream, err := net.DialTimeout("tcp", p.upstream, 5*time.Second)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{p: p, client: client, upstream: upstream.(*net.TCPConn), gone: make(chan struct{})}
	p.mu.Lock()
	p.links[l] = struct{}{}
	closed := p.closed
	p.mu.Unlock()
	if closed {
		l.cut()
	}
	p.running.Go(l.commands)
	l.replies()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// postpone moves a link with a late call out of CutAll's reach.
func (p *Proxy) postpone(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
	p.late = append(p.late, l)
}

// open returns the open connections that are wanted.
func (p *Proxy) open(wanted func(*link) bool) []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	var links []*link
	for l := range p.links {
		if wanted(l) {
			links = append(links, l)
		}
	}
	return links
}

func (p *Proxy) swallows() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.black
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	late := p.late
	p.late = nil
	p.mu.Unlock()
	for _, l := range append(late, p.open(func(*link) bool { return true })...) {
		l.cut()
	}
	p.running.Wait()
}
