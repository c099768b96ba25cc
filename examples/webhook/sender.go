package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pawlq/pawl"
)

// endpoint is where a customer wants its events.
type endpoint struct {
	URL    string
	Secret []byte
}

// sender makes the attempts. In production it also refuses a URL that leads into
// its own network.
type sender struct {
	endpoints map[string]endpoint // stands for a table
	client    *http.Client
}

func newSender(endpoints map[string]endpoint) *sender {
	return &sender{endpoints, &http.Client{
		Timeout: 10 * time.Second, // a silent endpoint holds a slot no longer
		// A redirect is an answer like others: where it leads nobody has checked.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// region webhook-outcomes

// longestWait bounds what an endpoint may ask for.
const longestWait = 6 * time.Hour

// deliver makes one attempt. What it returns decides about the next one.
func (s *sender) deliver(ctx context.Context, job *pawl.Job[Delivery]) error {
	to, ok := s.endpoints[job.Args.Endpoint]
	if !ok {
		return pawl.Discard(errors.New("the customer has removed the endpoint"))
	}
	resp, err := s.post(ctx, to, job)
	if err != nil {
		return err // refused, cut off or too slow: again, when the backoff says
	}
	return outcome(resp)
}

func outcome(resp *http.Response) error {
	err := fmt.Errorf("endpoint answered %s", resp.Status)
	switch code := resp.StatusCode; {
	case code >= 200 && code <= 299:
		return nil
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		if wait, ok := retryAfter(resp.Header); ok {
			return pawl.RetryAfter(min(wait, longestWait), err)
		}
		return err
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code >= 500:
		return err
	default:
		// 410 Gone, 404, a redirect: the same request will get the same answer.
		// Once the endpoint is corrected a redrive sends it, under the same key.
		return pawl.Permanent(err)
	}
}

// retryAfter reads both forms of the header: seconds, and a date.
func retryAfter(h http.Header) (wait time.Duration, ok bool) {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		now, err := http.ParseTime(h.Get("Date")) // by the endpoint's clock, as the header is
		if err != nil {
			now = time.Now()
		}
		wait = at.Sub(now)
	}
	return wait, wait > 0
}

// endregion

func (s *sender) post(ctx context.Context, to endpoint, job *pawl.Job[Delivery]) (*http.Response, error) {
	// The key is the same in each attempt, so the customer knows a delivery that
	// it has had. It is also what net/http takes as leave to send a request again
	// if the server closed a connection that was used before.
	key := job.IdempotencyKey()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(job.Args.Body))
	if err != nil {
		return nil, pawl.Permanent(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Webhook-Signature", sign(to.Secret, key, job.Args.Body))

	resp, err := s.client.Do(req)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return nil, failed.Err // without the URL, which may hold a token
	}
	if err != nil {
		return nil, err
	}
	// Read to its end the connection can be used again; but not to any end.
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	return resp, errors.Join(err, resp.Body.Close())
}

// sign covers the key too: nobody can send the body again under another one.
func sign(secret []byte, key string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(key + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
