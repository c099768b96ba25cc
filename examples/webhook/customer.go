package main

import (
	"crypto/hmac"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// customer is a server that receives events, each customer in its own way.
type customer struct {
	name    string
	secret  []byte
	journal *journal

	addr   string
	server *http.Server

	mu      sync.Mutex
	answers []answer          // to the first requests; after them all is well
	effects map[string]string // event by idempotency key
	repeats int
}

// answer is what a request gets; the zero answer is 200 OK.
type answer struct {
	code       int           // the event has no effect
	retryAfter func() string // nil: no such header
	lost       bool          // the event has its effect, and the connection ends
}

func seconds(n int) func() string { return func() string { return strconv.Itoa(n) } }

func date(wait time.Duration) func() string {
	return func() string { return time.Now().Add(wait).UTC().Format(http.TimeFormat) }
}

func (c *customer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "cannot read the body", http.StatusBadRequest)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	if !hmac.Equal([]byte(r.Header.Get("Webhook-Signature")), []byte(sign(c.secret, key, body))) {
		http.Error(w, "not signed by whom it should be", http.StatusUnauthorized)
		return
	}
	var event struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "not an event", http.StatusBadRequest)
		return
	}
	c.receive(w, key, event.ID)
}

func (c *customer) receive(w http.ResponseWriter, key, event string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var now answer
	if len(c.answers) > 0 {
		now, c.answers = c.answers[0], c.answers[1:]
	}
	if now.code != 0 {
		if now.retryAfter != nil {
			w.Header().Set("Retry-After", now.retryAfter())
		}
		w.WriteHeader(now.code)
		return
	}
	// In production the key and the effect are stored in one transaction.
	if _, again := c.effects[key]; again {
		c.repeats++
		c.journal.line("receive", event, c.name, "had this Idempotency-Key before: no second effect")
		return
	}
	c.effects[key] = event
	if now.lost {
		c.journal.line("receive", event, c.name, "has its effect, and the answer is lost")
		panic(http.ErrAbortHandler) // net/http closes the connection and says nothing
	}
}

// events is how often each event has had its effect.
func (c *customer) events() (effects map[string]int, repeats int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	effects = map[string]int{}
	for _, event := range c.effects {
		effects[event]++
	}
	return effects, c.repeats
}
