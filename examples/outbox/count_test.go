package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// The check must see what it is there to see.
func TestATallyWithASecondOrALostShipmentIsWrong(t *testing.T) {
	t.Parallel()
	good := func(shipped map[int]int) *tally {
		t := &tally{sight: sight{orders: 2}}
		t.stats.Total.Enqueued = 2
		t.judge([]int{2, 3}, shipped)
		return t
	}
	require.NoError(t, good(map[int]int{2: 1, 3: 1}).wrong())
	for name, shipped := range map[string]map[int]int{
		"lost":          {2: 1},
		"twice":         {2: 1, 3: 2},
		"not committed": {1: 1, 2: 1, 3: 1},
		"another":       {1: 1, 2: 1},
	} {
		require.Error(t, good(shipped).wrong(), name)
	}
	for name, spoil := range map[string]func(*tally){
		"a second job": func(t *tally) { t.stats.Total.Enqueued++ },
		"a row":        func(t *tally) { t.rows++ },
		"a job":        func(t *tally) { t.jobs++ },
		"a dead job":   func(t *tally) { t.stats.Dead++ },
		"a violation":  func(t *tally) { t.violations = []pawl.Violation{{}} },
	} {
		bad := good(map[int]int{2: 1, 3: 1})
		spoil(bad)
		require.Error(t, bad.wrong(), name)
	}
}
