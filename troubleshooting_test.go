package pawl_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEachLineThatIsLoggedIsExplained holds docs/troubleshooting.md against the code: all
// that it logs as a warning or an error, and the texts of all its errors.
func TestEachLineThatIsLoggedIsExplained(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/troubleshooting.md")
	require.NoError(t, err)
	files := token.NewFileSet()
	found := 0
	for file, text := range sources(t, ".go") {
		if strings.Contains(file, "/") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(files, file, text, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			said, ok := alarm(n)
			if !ok {
				return true
			}
			found++
			if !strings.Contains(string(page), "`"+said+"`") {
				t.Errorf("%s says %q, and docs/troubleshooting.md does not", file, said)
			}
			return true
		})
	}
	require.Greater(t, found, 25)
}

// alarm is the text of a call that logs a warning or an error, without its "pawl: ", or of one
// of the errors to be told apart.
func alarm(n ast.Node) (text string, ok bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return "", false
	}
	name, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return "", false
	}
	logged, isPawl := strings.CutPrefix(text, "pawl: ")
	switch name.Sel.Name {
	case "Warn", "Error":
		return logged, isPawl
	case "New":
		return text, isPawl && !strings.HasPrefix(logged, "worker ")
	}
	return "", false
}
