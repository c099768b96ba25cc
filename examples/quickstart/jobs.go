package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pawlq/pawl"
)

// A job is a type that names its kind. Its fields are what the job carries, as
// JSON; producer and worker share the type, so they cannot disagree.

// SendReceipt mails a receipt.
type SendReceipt struct {
	Order int    `json:"order"`
	To    string `json:"to"`
}

func (SendReceipt) Kind() string { return "mail.receipt" }

// ChargeCard takes the money for an order.
type ChargeCard struct {
	Order int `json:"order"`
	Cents int `json:"cents"`
}

func (ChargeCard) Kind() string { return "payment.charge" }

// JobOptions are the defaults of a kind. The waits here suit a demonstration;
// without the Backoff a job waits 5 s, 15 s, 45 s and so on, up to 1 h.
func (c ChargeCard) JobOptions() []pawl.Option {
	return []pawl.Option{
		pawl.Backoff{Base: 100 * time.Millisecond, Factor: 2},
		// While the charge of an order waits or runs, another one is the same job.
		pawl.Unique{Key: pawl.Key("charge", c.Order)},
	}
}

// RenderInvoice makes the invoice of an order.
type RenderInvoice struct {
	Order   int      `json:"order"`
	Company *Company `json:"company,omitempty"` // nil for a private customer
}

// Company is who a business order is for.
type Company struct {
	Name string `json:"name"`
}

func (RenderInvoice) Kind() string { return "invoice.render" }

func (RenderInvoice) JobOptions() []pawl.Option {
	return []pawl.Option{pawl.MaxAttempts(2), pawl.Backoff{Base: 50 * time.Millisecond}}
}

// The handlers. What one returns decides what becomes of its job: nil, and it
// is done; an error, and it is tried again after a while. A panic is an error.

func sendReceipt(context.Context, *pawl.Job[SendReceipt]) error {
	return nil // think of SMTP here
}

func (g *gateway) chargeCard(_ context.Context, job *pawl.Job[ChargeCard]) error {
	// A job may run twice, if its worker dies before Redis knows that it is
	// done. The key is the same in each run, so the gateway charges once.
	return g.charge(job.IdempotencyKey(), job.Args.Cents)
}

// renderInvoice1 has a bug: a private customer has no company.
func renderInvoice1(_ context.Context, job *pawl.Job[RenderInvoice]) error {
	return render(job.Args.Order, job.Args.Company.Name)
}

// renderInvoice2 is what was deployed the next morning.
func renderInvoice2(_ context.Context, job *pawl.Job[RenderInvoice]) error {
	name := "private customer"
	if job.Args.Company != nil {
		name = job.Args.Company.Name
	}
	return render(job.Args.Order, name)
}

func render(order int, name string) error {
	if strings.TrimSpace(name) == "" {
		return fmt.Errorf("invoice of order %d: no name", order)
	}
	return nil
}

// gateway stands for a payment provider that has a bad minute: it refuses its
// first two calls. Like a real one it knows a charge by its idempotency key.
type gateway struct {
	mu      sync.Mutex
	calls   int
	charges map[string]int
}

var errUnavailable = errors.New("gateway answered 503 Service Unavailable")

func (g *gateway) charge(key string, cents int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls++; g.calls <= 2 {
		return errUnavailable
	}
	g.charges[key] = cents
	return nil
}
