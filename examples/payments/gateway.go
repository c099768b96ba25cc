package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// gateway is the payment API: a server of its own that knows nothing of pawl. It takes
// its time, fails, and loses answers.
type gateway struct {
	server *http.Server
	addr   string

	mu      sync.Mutex
	known   map[string]charge // by Idempotency-Key
	charges map[int]int       // how often, by order
	cents   int64
	refused int // 503, and nothing was charged
	unsure  int // 500, or the connection ended, and it was charged
	repeats int
}

type charge struct {
	Charge
	ID string `json:"id"`
}

func openGateway() (*gateway, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gateway{addr: listener.Addr().String(), known: map[string]charge{}, charges: map[int]int{}}
	g.server = &http.Server{Handler: g, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = g.server.Serve(listener) }() // its error says that it was closed
	return g, nil
}

func (g *gateway) url() string { return "http://" + g.addr + "/charges" }

func (g *gateway) close() { _ = g.server.Close() }

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var c Charge
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&c); err != nil {
		http.Error(w, "not a charge", http.StatusBadRequest)
		return
	}
	// It goes on whether or not somebody waits for the answer: a client that is killed
	// now has charged.
	time.Sleep(2*time.Millisecond + rand.N(6*time.Millisecond))

	g.mu.Lock()
	defer g.mu.Unlock()
	luck := rand.IntN(100)
	if luck < 8 {
		g.refused++
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	answer, fits := g.charge(r.Header.Get("Idempotency-Key"), c)
	switch {
	case !fits:
		http.Error(w, "this key is that of another charge", http.StatusUnprocessableEntity)
	case luck < 12:
		g.unsure++
		panic(http.ErrAbortHandler) // net/http closes the connection and says nothing
	case luck < 16:
		g.unsure++
		w.WriteHeader(http.StatusInternalServerError)
	default:
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// charge is where the money moves. In production key and charge are stored in one
// transaction, as the lock makes them here.
func (g *gateway) charge(key string, c Charge) (answer charge, fits bool) {
	if before, again := g.known[key]; again {
		if before.Charge != c {
			return charge{}, false
		}
		g.repeats++
		return before, true
	}
	g.charges[c.Order]++
	g.cents += c.Cents
	answer = charge{Charge: c, ID: fmt.Sprintf("ch_%d_%d", c.Order, g.charges[c.Order])}
	if key != "" {
		g.known[key] = answer
	}
	return answer, true
}
