package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// The check must see what it is there to see.
func TestATallyWithASecondOrALostChargeIsWrong(t *testing.T) {
	t.Parallel()
	sent := map[int]int{1: 1, 2: 2, 3: 1}
	all := map[int]int{1: 1, 2: 1, 3: 1}
	good := func() tally {
		return tally{charges: judge(sent, all), entries: judge(sent, all), cents: 700, charged: 700, balance: 700}
	}
	require.NoError(t, good().wrong())
	require.Equal(t, verdict{once: 3}, judge(sent, all))
	require.Equal(t, verdict{once: 1, more: 2, moreSentOnce: 1}, judge(sent, map[int]int{1: 2, 2: 2, 3: 1}))
	require.Equal(t, verdict{once: 2, never: 1, unasked: 1}, judge(sent, map[int]int{1: 1, 2: 1, 4: 1}))

	for name, spoil := range map[string]func(*tally){
		"a second charge":        func(t *tally) { t.charges = judge(sent, map[int]int{1: 1, 2: 1, 3: 2}) },
		"a charge that is lost":  func(t *tally) { t.charges = judge(sent, map[int]int{1: 1, 2: 1}) },
		"a charge of no order":   func(t *tally) { t.charges = judge(sent, map[int]int{1: 1, 2: 1, 3: 1, 4: 1}) },
		"a second entry":         func(t *tally) { t.entries = judge(sent, map[int]int{1: 1, 2: 3, 3: 1}) },
		"an entry that is lost":  func(t *tally) { t.entries = judge(sent, map[int]int{2: 1, 3: 1}) },
		"another sum of charges": func(t *tally) { t.charged++ },
		"another balance":        func(t *tally) { t.balance-- },
		"a dead job":             func(t *tally) { t.stats.Dead = 1 },
		"a job that waits":       func(t *tally) { t.stats.Ready = 1 },
		"a broken queue":         func(t *tally) { t.violations = []pawl.Violation{{}} },
	} {
		bad := good()
		spoil(&bad)
		require.Error(t, bad.wrong(), name)
	}
}
