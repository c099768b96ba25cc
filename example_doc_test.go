package pawl_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheCodeOfThePackageCommentCompiles holds each piece of code in doc.go
// against a region of a test file.
func TestTheCodeOfThePackageCommentCompiles(t *testing.T) {
	t.Parallel()
	compiled := map[string]bool{}
	for file, text := range sources(t, ".go") {
		snippets, err := snippetsOf(string(text))
		require.NoError(t, err, file)
		for _, s := range snippets {
			compiled[squeeze(s)] = true
		}
	}
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	blocks := commentCode(string(text))
	require.GreaterOrEqual(t, len(blocks), 4)
	for _, block := range blocks {
		if !compiled[squeeze(block)] {
			t.Errorf("doc.go: this code is no region and no Example's body in any .go file:\n%s", block)
		}
	}
}

// commentCode is the blocks of code of a comment: what a tab indents, up to the
// next line of text.
func commentCode(comment string) (blocks []string) {
	var block strings.Builder
	for line := range strings.Lines(comment + "// end\n") {
		code, isCode := strings.CutPrefix(line, "//\t")
		switch {
		case isCode:
			block.WriteString(code)
		case strings.TrimSpace(line) != "//" && block.Len() > 0:
			blocks = append(blocks, block.String())
			block.Reset()
		}
	}
	return blocks
}
