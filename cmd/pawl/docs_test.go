package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The commands that the pages name are understood, as are those of the help.
func TestTheCommandsOfThePagesParse(t *testing.T) {
	t.Parallel()
	for page, atLeast := range map[string]int{"../../docs/operations.md": 20, "../../docs/dead-letters.md": 12, "../../README.md": 2} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		found := regexp.MustCompile("(?m)`pawl ([a-z][^`]*)`|^ {4,}pawl ([a-z-]+(?: .*)?)$").FindAllStringSubmatch(string(text), -1)
		require.GreaterOrEqual(t, len(found), atLeast, page)
		for _, m := range found {
			line := m[1] + m[2] // in a sentence, or in a block
			args := commandsIn("pawl " + strings.NewReplacer("<id>", someID, "repaired.json", "-").Replace(line))[0]
			t.Run(line, func(t *testing.T) {
				t.Parallel()
				got := call(t.Context(), args, env("REDIS_URL", "redis://127.0.0.1:1"), typing("{}"))
				require.Equal(t, exitAway, got.code, got.err)
			})
		}
	}
}
