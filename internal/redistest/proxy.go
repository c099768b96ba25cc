package redistest

import (
	"crypto/sha1"
	"encoding/hex"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Any is the name under which On, Calls and Seen take every command, those of
// a connection's handshake included.
const Any = "*"

// Proxy stands between a client and a Redis server and breaks the calls it was
// told to break. It reads RESP, so that a fault hits one call and no other,
// pipelines included. It does not know SUBSCRIBE, MONITOR and CLIENT REPLY,
// where replies no longer follow commands one by one. When the server is away
// the proxy accepts and closes; a test that wants "connection refused" connects
// without it.
type Proxy struct {
	upstream string
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	black   bool
	scripts map[string]string           // sha1 -> name
	calls   map[string]int              // by name
	faults  map[callKey]*planned        //
	seen    map[callKey][]chan struct{} // waiters of Seen
	links   map[*link]struct{}          // open connections
	late    []*link                     // with a call that Release will send
}

type callKey struct {
	name string
	k    int
}

type planned struct {
	fault Fault
	once  sync.Once
	fired chan struct{}
}

// NewProxy starts a proxy before the server at upstreamAddr. It ends with t.
func NewProxy(t testing.TB, upstreamAddr string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("redistest: proxy: %v", err)
	}
	p := &Proxy{
		upstream: upstreamAddr,
		listener: l,
		scripts:  map[string]string{},
		calls:    map[string]int{},
		faults:   map[callKey]*planned{},
		seen:     map[callKey][]chan struct{}{},
		links:    map[*link]struct{}{},
	}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr is the proxy's host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Client returns a client that connects through the proxy and is closed when t
// ends.
func (p *Proxy) Client(t testing.TB) *redis.Client {
	t.Helper()
	return clientOf(t, p.Addr())
}

// Script names the script with this SHA1 (hex): its EVALSHA and EVAL calls go
// by that name from here on. A call that Redis answers with NOSCRIPT counts
// too, so load scripts before the first call where the count matters.
func (p *Proxy) Script(name, sha string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scripts[strings.ToLower(sha)] = name
}

// On applies the fault to the k-th call of a name, counted from 1 over all
// connections and from the start of the proxy; k = 0 means every call that has
// no fault of its own. The name is one given to Script, or a command in lower
// case, or Any. The returned channel is closed when the fault has first been
// carried out: for the faults named Run… and HalfReply, after the call has run.
func (p *Proxy) On(name string, k int, fault Fault) <-chan struct{} {
	plan := &planned{fault: fault, fired: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults[callKey{name, k}] = plan
	return plan.fired
}

// Clear takes back all faults that have not been applied, and ends no others.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.faults)
}

// Calls is the number of calls of a name that reached the proxy, forwarded or
// not.
func (p *Proxy) Calls(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[name]
}

// Connections is how many connections clients hold open through the proxy.
func (p *Proxy) Connections() int { return len(p.open(func(*link) bool { return true })) }

// Seen returns a channel that is closed when the k-th call of a name has
// reached the proxy.
func (p *Proxy) Seen(name string, k int) <-chan struct{} {
	ch := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[name] >= k {
		close(ch)
	} else {
		key := callKey{name, k}
		p.seen[key] = append(p.seen[key], ch)
	}
	return ch
}

// Release sends every call that Late has kept, in the order in which they came,
// waits for each to run and returns its raw reply; an empty one if the server
// has closed the connection meanwhile.
func (p *Proxy) Release() []string {
	p.mu.Lock()
	links := p.late
	p.late = nil
	p.mu.Unlock()
	var replies []string
	for _, l := range links {
		replies = append(replies, l.release())
	}
	return replies
}

// CutAll resets all open connections. Calls that were forwarded may run.
func (p *Proxy) CutAll() {
	for _, l := range p.open(func(*link) bool { return true }) {
		l.reset()
	}
}

// Blackhole with true makes the proxy accept connections and forward nothing,
// in either direction: calls that come meanwhile never run, and replies that
// come meanwhile are lost. With false it heals; connections over which
// something was lost are reset then.
func (p *Proxy) Blackhole(on bool) {
	p.mu.Lock()
	p.black = on
	p.mu.Unlock()
	if on {
		return
	}
	for _, l := range p.open(func(l *link) bool { return l.lossy() }) {
		l.reset()
	}
}

// arrived counts a command and finds the fault that is meant for it.
func (p *Proxy) arrived(words [][]byte) *call {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &call{fired: func() {}}
	for _, name := range []string{Any, p.name(words)} { // the closer name wins
		p.calls[name]++
		key := callKey{name, p.calls[name]}
		for _, ch := range p.seen[key] {
			close(ch)
		}
		delete(p.seen, key)
		plan := p.faults[key]
		if plan == nil {
			plan = p.faults[callKey{name, 0}]
		}
		if plan != nil {
			c.fault = plan.fault
			c.fired = func() { plan.once.Do(func() { close(plan.fired) }) }
		}
	}
	return c
}

func (p *Proxy) name(words [][]byte) string {
	if len(words) == 0 {
		return ""
	}
	name := strings.ToLower(string(words[0]))
	if len(words) < 2 {
		return name
	}
	sha := ""
	switch name {
	case "evalsha", "evalsha_ro":
		sha = strings.ToLower(string(words[1]))
	case "eval", "eval_ro":
		sum := sha1.Sum(words[1])
		sha = hex.EncodeToString(sum[:])
	}
	if script, ok := p.scripts[sha]; ok {
		return script
	}
	return name
}
