package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawlq/pawl"
)

// Delivery is one event on its way to one endpoint. It names the endpoint and
// does not hold its URL: a customer who corrects the URL corrects it for the
// deliveries that wait as well, and the secret is not stored with each job.
type Delivery struct {
	Event    string          `json:"event"`
	Endpoint string          `json:"endpoint"`
	Body     json.RawMessage `json:"body"`
}

func (Delivery) Kind() string { return "webhook.deliver" }

// JobOptions has waits that suit a demonstration. In production they are longer:
// with Steps of 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h, and MaxAttempts(8),
// an endpoint may be down for half a day.
func (d Delivery) JobOptions() []pawl.Option {
	return []pawl.Option{
		// A producer that is not sure whether it published an event publishes it
		// again. For is longer than it may take to do so.
		pawl.Unique{Key: pawl.Key("webhook", d.Event, d.Endpoint), For: 24 * time.Hour},
		pawl.MaxAttempts(30),
		pawl.Backoff{Base: 100 * time.Millisecond, Factor: 2, Max: 400 * time.Millisecond},
	}
}

// publish enqueues a delivery of the event to each endpoint. After any error it
// may be called again: what was enqueued is found, and the rest added.
func publish(ctx context.Context, q *pawl.Queue, event string, endpoints ...string) ([]pawl.Enqueued, error) {
	body, err := json.Marshal(map[string]string{"id": event, "type": "order.paid"})
	if err != nil {
		return nil, err
	}
	deliveries := make([]Delivery, len(endpoints))
	for i, endpoint := range endpoints {
		deliveries[i] = Delivery{Event: event, Endpoint: endpoint, Body: body}
	}
	return q.EnqueueMany(ctx, pawl.Items(deliveries))
}
