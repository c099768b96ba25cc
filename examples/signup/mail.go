package main

import (
	"context"
	"sync"
	"time"

	"github.com/pawlq/pawl"
)

// Welcome is the mail to a new user.
type Welcome struct {
	UserID int64  `json:"user_id"`
	Email  string `json:"email"`
}

func (Welcome) Kind() string { return "mail.welcome" }

// mailServer takes its time for each mail and, like the real services, knows a
// mail that it is handed twice by its idempotency key.
type mailServer struct {
	mu      sync.Mutex
	sent    map[string]string // address by idempotency key
	repeats int
}

func (m *mailServer) welcome(ctx context.Context, job *pawl.Job[Welcome]) error {
	return m.send(ctx, job.Args.Email, job.IdempotencyKey())
}

func (m *mailServer) send(ctx context.Context, address, key string) error {
	select {
	case <-time.After(mailTime):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, again := m.sent[key]; again {
		m.repeats++
		return nil
	}
	m.sent[key] = address
	return nil
}

// perAddress is how many mails each address has got.
func (m *mailServer) perAddress() (mails map[string]int, repeats int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mails = map[string]int{}
	for _, address := range m.sent {
		mails[address]++
	}
	return mails, m.repeats
}
