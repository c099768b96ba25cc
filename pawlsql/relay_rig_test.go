package pawlsql_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlsql"
)

func newRelay(t testing.TB, d *database, o *pawlsql.Outbox, c *pawl.Client, cfg pawlsql.RelayConfig) *pawlsql.Relay {
	t.Helper()
	if cfg.Idle == 0 {
		cfg.Idle = 20 * time.Millisecond
	}
	r, err := o.NewRelay(d.DB, c, cfg)
	require.NoError(t, err)
	return r
}

// run runs a relay until the test ends, or until stop is called.
func run(t testing.TB, r *pawlsql.Relay) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return stop
}

// stopAt runs a relay and returns when it has reached a step, where it stays until it
// is let go, or the test ends.
func stopAt(t testing.TB, r *pawlsql.Relay, step string) (letGo func()) {
	t.Helper()
	reached, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.OnStep(func(name string) {
		if name == step {
			once.Do(func() { close(reached); <-goOn })
		}
	})
	run(t, r)
	letGo = sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(letGo)
	await(t, reached)
	return letGo
}

// await waits for a signal, for at most half a minute.
func await[T any](t testing.TB, signal <-chan T) {
	t.Helper()
	timer := time.NewTimer(30 * time.Second)
	defer timer.Stop()
	select {
	case <-signal:
	case <-timer.C:
		t.Fatal("no signal in 30 s")
	}
}

// relayed has a relay run until no row is pending.
func relayed(t testing.TB, d *database, o *pawlsql.Outbox, c *pawl.Client) {
	t.Helper()
	r := newRelay(t, d, o, c, pawlsql.RelayConfig{})
	stop := run(t, r)
	defer stop()
	drained(t, r)
}

// drained waits until no row is pending.
func drained(t testing.TB, r *pawlsql.Relay) {
	t.Helper()
	eventually(t, "no row is pending", func() bool {
		s, err := r.Stats(context.Background())
		return err == nil && s.Pending == 0
	})
}

// journal is a log that a test reads.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// lines are those of at least a warning or that have the word.
func (j *journal) lines(word string) (found []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.text.String()) {
		if strings.Contains(line, word) {
			found = append(found, line)
		}
	}
	return found
}

// orders are what the waiting jobs of a queue carry, in their order.
func orders(t testing.TB, c *pawl.Client, queue string) (list []int) {
	t.Helper()
	for job, err := range c.Queue(queue).List(context.Background(), pawl.StateReady, pawl.Filter{}) {
		if errors.Is(err, pawl.ErrNotFound) {
			return nil // it never had a job
		}
		require.NoError(t, err)
		var args charge
		require.NoError(t, json.Unmarshal(job.Payload, &args))
		list = append(list, args.Order)
	}
	return list
}

// requireOnce requires one job for each of the orders from 0 to n-1.
func requireOnce(t testing.TB, c *pawl.Client, queue string, n int) {
	t.Helper()
	got := orders(t, c, queue)
	slices.Sort(got)
	require.Len(t, got, n)
	for i, order := range got {
		require.Equal(t, i, order)
	}
}
