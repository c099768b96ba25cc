package pawlsql_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/pawlsql"
	"github.com/pawlq/pawl/pawltest"
)

type slow struct{}

func (slow) Enqueued(context.Context, pawl.EnqueuedEvent) { <-time.After(10 * time.Millisecond) }

// A row that is refused has each of its batch sent by itself. If Redis is so slow that
// there is no time for all, those that it has are done with all the same.
func TestARefusedRowInASlowBatchDoesNotStopTheRelay(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *database) {
		env, o := pawltest.New(t, pawl.Config{MaxPayload: 100, Hooks: []pawl.Hook{slow{}}}), newOutbox(t, d, pawlsql.OutboxConfig{})
		big := pawl.Item{Args: pawl.Raw{Name: "big", Payload: make([]byte, 200)}} // the relay's client takes less
		put(t, d, o, "q", slices.Concat(charges(0, 120), []pawl.Item{big})...)
		r := newRelay(t, d, o, env.Client, pawlsql.RelayConfig{Batch: 500})
		r.Hurry(time.Second)
		run(t, r)
		drained(t, r)
		requireOnce(t, env.Client, "q", 120)
	})
}
