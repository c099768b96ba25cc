package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

// impatient is how many users there are for each one who signs up twice.
const impatient = 100

// burst is everybody who signs up.
type burst struct {
	users int

	mu       sync.Mutex
	answers  map[int]int // by status code
	answered int
}

// requests is how many sign-ups the users send.
func (b *burst) requests() int { return b.users + (b.users+impatient-1)/impatient }

// send signs all users up, as fast as the service answers.
func (b *burst) send(ctx context.Context, url string) error {
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections}}
	defer client.CloseIdleConnections()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, connections)
	var next atomic.Int64
	var all sync.WaitGroup
	for c := range connections {
		all.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= b.users {
					return
				}
				if errs[c] = b.signUp(ctx, client, url, n); errs[c] != nil {
					cancel()
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// signUp is one user, who may be one that clicks again.
func (b *burst) signUp(ctx context.Context, client *http.Client, url string, n int) error {
	clicks := 1
	if n%impatient == 0 {
		clicks = 2
	}
	for range clicks {
		if err := b.post(ctx, client, url, fmt.Sprintf("user%d@example.com", n)); err != nil {
			return err
		}
	}
	return nil
}

func (b *burst) post(ctx context.Context, client *http.Client, target, email string) error {
	body := url.Values{"email": {email}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body) // read to its end, the connection can be used again
	err = errors.Join(err, resp.Body.Close())

	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[resp.StatusCode]++
	b.answered++
	return err
}

// progress is how many sign-ups have been answered.
func (b *burst) progress() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answered
}
