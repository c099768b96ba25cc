package pawlsql_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlsql"
	"github.com/pawlq/pawl/pawltest"
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

// relayed has a relay run until no row is pending.
func relayed(t testing.TB, d *database, o *pawlsql.Outbox, env *pawltest.Env) {
	t.Helper()
	r := newRelay(t, d, o, env.Client, pawlsql.RelayConfig{})
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
func orders(env *pawltest.Env, queue string) (list []int) {
	for _, job := range pawltest.Jobs[charge](env, queue) {
		list = append(list, job.Args.Order)
	}
	return list
}
