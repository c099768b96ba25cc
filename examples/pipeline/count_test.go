package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The check must see what it is there to see.
func TestAStepThatIsMissingOrDoubledIsWrong(t *testing.T) {
	t.Parallel()
	good := func() map[string]effect {
		return map[string]effect{
			"a": {"photo 1", "fetch"}, "b": {"photo 1", "resize"}, "c": {"photo 1", "publish"}, "d": {"photo 1", "mail"},
			"e": {"night 1", "backup"}, "f": {"night 1", "verify"}, "g": {"night 1", "prune"},
		}
	}
	require.Equal(t, verdict{once: 7}, judge(1, 1, good()))
	require.NoError(t, judge(1, 1, good()).wrong())
	for name, c := range map[string]struct {
		spoil func(map[string]effect)
		want  verdict
	}{
		"a follow-up that was lost":      {func(m map[string]effect) { delete(m, "d") }, verdict{once: 6, missing: 1}},
		"a follow-up with two jobs":      {func(m map[string]effect) { m["h"] = effect{"photo 1", "mail"} }, verdict{once: 6, doubled: 1}},
		"a step of a chain nobody began": {func(m map[string]effect) { m["h"] = effect{"photo 2", "fetch"} }, verdict{once: 7, unasked: 1}},
	} {
		effects := good()
		c.spoil(effects)
		require.Equal(t, c.want, judge(1, 1, effects), name)
		require.Error(t, judge(1, 1, effects).wrong(), name)
	}
}
