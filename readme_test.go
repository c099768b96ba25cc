package pawl_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGoCodeInTheDocsCompiles holds every Go block of README.md and docs/*.md
// against code of this repository, which the compiler reads: a region
// ("// region name" to "// endregion") of a .go file, or the body of an Example.
// White space may differ.
func TestGoCodeInTheDocsCompiles(t *testing.T) {
	t.Parallel()
	compiled := map[string]bool{}
	for file, text := range sources(t, ".go") {
		snippets, err := snippetsOf(string(text))
		require.NoError(t, err, file)
		for _, s := range snippets {
			compiled[squeeze(s)] = true
		}
	}
	found := 0
	for file, text := range sources(t, ".md") {
		if file != "README.md" && path.Dir(file) != "docs" {
			continue
		}
		for _, block := range goBlocks(string(text)) {
			found++
			if !compiled[squeeze(block)] {
				t.Errorf("%s: this code is no region and no Example's body in any .go file:\n%s", file, block)
			}
		}
	}
	require.NotZero(t, found, "the README shows Go")
}

func squeeze(code string) string { return strings.Join(strings.Fields(code), " ") }

// goBlocks is the text of the Go blocks of a Markdown file.
func goBlocks(markdown string) (blocks []string) {
	var block []string
	inBlock := false
	for line := range strings.Lines(markdown) {
		switch fence := strings.TrimSpace(line); {
		case !inBlock && strings.HasPrefix(fence, "```go"):
			inBlock, block = true, nil
		case inBlock && fence == "```":
			inBlock = false
			blocks = append(blocks, strings.Join(block, ""))
		case inBlock:
			block = append(block, line)
		}
	}
	return blocks
}

// snippetsOf is what a Go file offers to the docs.
func snippetsOf(source string) (snippets []string, err error) {
	var region []string
	inRegion := false
	for line := range strings.Lines(source) {
		switch mark := strings.TrimSpace(line); {
		case strings.HasPrefix(mark, "// region "):
			inRegion, region = true, nil
		case inRegion && mark == "// endregion":
			inRegion = false
			snippets = append(snippets, strings.Join(region, ""))
		case inRegion:
			region = append(region, line)
		}
	}
	if !strings.Contains(source, "func Example") {
		return snippets, nil
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Example") {
			continue
		}
		body := source[fset.Position(f.Body.Lbrace).Offset+1 : fset.Position(f.Body.Rbrace).Offset]
		body, _, _ = strings.Cut(body, "// Output:")
		body, _, _ = strings.Cut(body, "// Unordered output:")
		snippets = append(snippets, body)
	}
	return snippets, nil
}

func TestTheCheckOfTheDocsKnowsWhatCompiles(t *testing.T) {
	t.Parallel()
	const source = `package p

// region one
var a = 1

var b = 2
// endregion

func ExampleQueue() {
	a++ // more
	// Output: 2
}

func notAnExample() { b++ }
`
	snippets, err := snippetsOf(source)
	require.NoError(t, err)
	var squeezed []string
	for _, s := range snippets {
		squeezed = append(squeezed, squeeze(s))
	}
	require.Equal(t, []string{"var a = 1 var b = 2", "a++ // more"}, squeezed)

	blocks := goBlocks("text\n```go\na++   // more\n```\n```sh\ngo run .\n```\n```go\nb++\n```\n")
	require.Equal(t, []string{"a++   // more\n", "b++\n"}, blocks)
}

// testNames are the tests that there are, in all packages.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	exist := map[string]bool{}
	for file, text := range sources(t, ".go") {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllStringSubmatch(string(text), -1) {
			exist[m[1]] = true
		}
	}
	return exist
}

// The pages name tests that exist: the README's table of what happens when, the
// guarantees, the faults.
func TestThePagesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	exist := testNames(t)
	for page, atLeast := range map[string]int{"README.md": 10, "docs/guarantees.md": 1, "docs/failure-modes.md": 50, "docs/monitoring.md": 2} {
		named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(sources(t, ".md")[page]), -1)
		require.GreaterOrEqual(t, len(named), atLeast, page)
		for _, m := range named {
			require.True(t, exist[m[1]], "%s names %s, and there is no such test", page, m[1])
		}
	}
}
