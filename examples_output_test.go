package pawl_test

import (
	"go/doc"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExamplesWithAnOutputRun holds that an Example which says what it prints is run: go
// test leaves out one whose comment of the output begins with anything else, as with
// "// endregion" on the line above.
func TestExamplesWithAnOutputRun(t *testing.T) {
	t.Parallel()
	for file, text := range sources(t, ".go") {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		names, err := examplesNotRun(string(text))
		require.NoError(t, err, file)
		require.Empty(t, names, "%s: put an empty line before the comment of the output", file)
	}
}

func TestTheCheckOfExamplesKnowsWhatRuns(t *testing.T) {
	t.Parallel()
	names, err := examplesNotRun(`package p

func ExampleRuns() {
	// region a
	f()
	// endregion

	// Output: 1
}

func ExampleRunsUnordered() {
	f()
	// Unordered output: 1
}

func ExampleDoesNotRun() {
	// region b
	f()
	// endregion
	// Output: 1
}

func ExampleIsOnlyCompiled() {
	f() // it prints its output
}
`)
	require.NoError(t, err)
	require.Equal(t, []string{"DoesNotRun"}, names)
}

var outputComment = regexp.MustCompile(`(?im)^\s*(unordered )?output:`)

// examplesNotRun are the Examples of a file that say what they print, and which go test
// does not run.
func examplesNotRun(source string) (names []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), "x_test.go", source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, example := range doc.Examples(file) {
		if example.Output != "" || example.EmptyOutput {
			continue
		}
		for _, comment := range example.Comments { // those of the whole file
			within := example.Code.Pos() <= comment.Pos() && comment.End() <= example.Code.End()
			if within && outputComment.MatchString(comment.Text()) {
				names = append(names, example.Name)
			}
		}
	}
	return names, nil
}
