package pawl_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	maxLines    = 400 // of any file that is written by hand
	medianLines = 150 // of the library's own files
)

// sources returns the text of every hand-written file of the repository with
// one of the endings, by its slash-separated path.
func sources(t *testing.T, endings ...string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() {
			if name != "." && strings.HasPrefix(name, ".") || slices.Contains([]string{"testdata", "bin", "node_modules"}, name) {
				return fs.SkipDir
			}
			return nil
		}
		if !slices.Contains(endings, filepath.Ext(path)) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil && !generated(text) {
			files[filepath.ToSlash(path)] = text
		}
		return err
	})
	require.NoError(t, err)
	return files
}

func generated(text []byte) bool {
	return bytes.HasPrefix(text, []byte("// Code generated ")) || bytes.Contains(text, []byte("\n// Code generated "))
}

func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	var own []int
	for path, text := range sources(t, ".go", ".lua") {
		lines := bytes.Count(text, []byte("\n"))
		if lines > maxLines {
			t.Errorf("%s has %d lines, above %d: split it where it has a second reason to change", path, lines, maxLines)
		}
		library := strings.HasPrefix(path, "internal/") || !strings.Contains(path, "/")
		if library && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			own = append(own, lines)
		}
	}
	require.NotEmpty(t, own)
	slices.Sort(own)
	require.LessOrEqual(t, own[len(own)/2], medianLines, "the median of the library's files")
}

// TestTheLibraryNeedsThreeModules holds what an importer of pawl compiles to
// go-redis, uuid and cron, and to what these three need themselves.
func TestTheLibraryNeedsThreeModules(t *testing.T) {
	t.Parallel()
	allowed := modules(t, "github.com/redis/go-redis/v9", "github.com/google/uuid", "github.com/robfig/cron/v3")
	allowed["github.com/pawlq/pawl"] = true
	for module := range modules(t, ".") {
		if !allowed[module] {
			t.Errorf("the root package needs %s; what needs more than go-redis, uuid and cron belongs in a nested module", module)
		}
	}
}

// modules returns the modules whose packages these packages are built of.
func modules(t *testing.T, packages ...string) map[string]bool {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}, packages...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	found := map[string]bool{}
	for module := range strings.FieldsSeq(string(out)) {
		found[module] = true
	}
	return found
}

func TestTestsAreParallelAndDoNotSleep(t *testing.T) {
	t.Parallel()
	for path, text := range sources(t, ".go") {
		if strings.HasSuffix(path, "_test.go") {
			for _, problem := range lintTests(t, path, text) {
				t.Error(problem)
			}
		}
	}
}

// lintTests finds tests that do not start with t.Parallel() and carry no
// "// not parallel: reason" above them, and calls of time.Sleep.
func lintTests(t *testing.T, path string, text []byte) (problems []string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.ParseComments)
	require.NoError(t, err)
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" {
			continue
		}
		if !startsParallel(f) && !strings.Contains(f.Doc.Text(), "not parallel: ") {
			problems = append(problems, fset.Position(f.Pos()).String()+": "+f.Name.Name+
				" must begin with t.Parallel(), or say why not in a comment: // not parallel: reason")
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && isName(sel.X, "time") && sel.Sel.Name == "Sleep" {
			problems = append(problems, fset.Position(n.Pos()).String()+
				": a test waits for a signal, not for a time: no time.Sleep")
		}
		return true
	})
	return problems
}

func startsParallel(f *ast.FuncDecl) bool {
	if f.Body == nil || len(f.Body.List) == 0 {
		return false
	}
	stmt, ok := f.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := stmt.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Parallel"
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func TestTheLintOfTestsCatchesEachKind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"parallel":            {"func TestA(t *testing.T) { t.Parallel() }", 0},
		"with a reason":       {"// not parallel: it sets the environment.\nfunc TestA(t *testing.T) {}", 0},
		"TestMain":            {"func TestMain(m *testing.M) {}", 0},
		"a helper":            {"func check(t *testing.T) {}", 0},
		"not parallel":        {"func TestA(t *testing.T) {}", 1},
		"not first":           {"func TestA(t *testing.T) { x(); t.Parallel() }", 1},
		"a reason not given":  {"// not parallel\nfunc TestA(t *testing.T) {}", 1},
		"sleeps":              {"func TestA(t *testing.T) { t.Parallel(); time.Sleep(1) }", 1},
		"passes Sleep on":     {"func check() { f := time.Sleep; f(1) }", 1},
		"a sleep in a string": {`func check() { f("time.Sleep(1)") }`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Len(t, lintTests(t, "x_test.go", []byte("package x\n"+c.body)), c.want)
		})
	}
}

// TestExportedNamesAreExplained is what a linter's rule on comments would do.
func TestExportedNamesAreExplained(t *testing.T) {
	t.Parallel()
	for path, text := range sources(t, ".go") {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
		require.NoError(t, err)
		if file.Name.Name == "main" {
			continue
		}
		for _, name := range unexplained(file) {
			t.Errorf("%s: exported %s has no comment", path, name)
		}
	}
}

func unexplained(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && receiverIsExported(d) && !implied(d) {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
						names = append(names, s.Name.Name)
					}
				case *ast.ValueSpec: // a comment on the group will do
					if s.Names[0].IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						names = append(names, s.Names[0].Name)
					}
				}
			}
		}
	}
	return names
}

// implied tells a method that an interface everybody knows explains.
func implied(d *ast.FuncDecl) bool {
	return d.Recv != nil && slices.Contains([]string{"Error", "Is", "String", "Unwrap"}, d.Name.Name)
}

func receiverIsExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	receiver := d.Recv.List[0].Type
	for {
		switch e := receiver.(type) {
		case *ast.StarExpr:
			receiver = e.X
		case *ast.IndexExpr:
			receiver = e.X
		case *ast.IndexListExpr:
			receiver = e.X
		case *ast.Ident:
			return e.IsExported()
		default:
			return true
		}
	}
}

// TestTheDesignNamesEveryFile holds the map of docs/design.md.
func TestTheDesignNamesEveryFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/design.md")
	require.NoError(t, err)
	for path := range sources(t, ".go") {
		if !strings.Contains(path, "/") && !strings.HasSuffix(path, "_test.go") {
			require.Contains(t, string(text), "`"+path+"`", "docs/design.md has a table of files")
		}
	}
}
