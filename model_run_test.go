//go:build !race

package pawl

import (
	"flag"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A history has a few rounds of rapid's Repeat, of 30 operations on average;
// rapid runs 100 histories, from a seed of its own that a failure prints.
const modelRounds = 4

func modelRapid(rt *rapid.T) modelDice {
	return func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(rt, what) }
}

// modelPlay runs histories on a rig and counts their operations.
func modelPlay(t *testing.T, rig *modelRig, rounds int, ops *atomic.Int64) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		x, err := rig.start(modelRapid(rt))
		require.NoError(rt, err)
		for range rounds {
			rt.Repeat(map[string]func(*rapid.T){"operation": func(rt *rapid.T) {
				x.roll = modelRapid(rt)
				if err := x.step(); err != nil {
					rt.Fatal(err)
				}
				ops.Add(1)
			}})
		}
		if err := x.check(); err != nil {
			rt.Fatal(err)
		}
	})
}

func TestModelOnMiniredis(t *testing.T) {
	t.Parallel()
	var ops atomic.Int64
	t.Run("histories", func(t *testing.T) {
		t.Run("of small records", func(t *testing.T) {
			t.Parallel()
			rig := modelMini(t, modelTable())
			rig.stock = true
			modelPlay(t, rig, modelRounds, &ops)
		})
		t.Run("of records that fill a lease, and jobs that fill what is kept", func(t *testing.T) {
			t.Parallel()
			const limit = "local picked, bytes, max_bytes = 0, 0, "
			scripts, times := modelTable().replace(limit+"1000000", limit+"60")
			require.Equal(t, 1, times)
			scripts, times = scripts.replace("local kept_most = 10000", "local kept_most = 3")
			require.Equal(t, 4, times)
			rig := modelMini(t, scripts)
			rig.stock, rig.maxBytes, rig.keptMost = true, 60, 3
			modelPlay(t, rig, modelRounds, &ops)
		})
	})
	t.Logf("%d operations", ops.Load())
	if !testing.Short() && flag.Lookup("rapid.checks").Value.String() == "100" {
		require.GreaterOrEqual(t, ops.Load(), int64(20_000))
	}
}

func TestModelOnRedis(t *testing.T) {
	t.Parallel()
	var ops atomic.Int64
	modelPlay(t, modelRedis(t), 1, &ops)
	t.Logf("%d operations", ops.Load())
}
