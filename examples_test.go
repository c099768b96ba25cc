package pawl_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// needNoExample are exported names without an Example, each with its reason.
var needNoExample = map[string]string{
	"AttemptError":   "what DeadJob.Errors is a list of, as ExampleDeadJob shows it",
	"RefusedRedrive": "what RedriveReport.Refused is a list of, as ExampleRedriveReport shows it",
}

// TestEveryExportedIdeaHasAnExample requires of each exported function, type and
// method of this package that an Example shows it. An Example is a function of
// example_*_test.go, with what it uses of its own file; or any code of
// pawltest/example*_test.go, which needs a *testing.T and so cannot be one.
//
// Methods are told by their names alone. So one whose name is also that of
// another method or of a field counts only with an Example of its own name.
func TestEveryExportedIdeaHasAnExample(t *testing.T) {
	t.Parallel()
	var library []*ast.File
	shown := newShown()
	for file, text := range sources(t, ".go") {
		dir, name := path.Split(file)
		isTest := strings.HasSuffix(name, "_test.go")
		switch {
		case dir == "" && !isTest:
			library = append(library, parseGo(t, file, text))
		case dir == "" && isTest && strings.HasPrefix(name, "example_"):
			shown.addExamples(parseGo(t, file, text))
		case dir == "pawltest/" && isTest && strings.HasPrefix(name, "example"):
			f := parseGo(t, file, text)
			shown.add(f, f)
		}
	}
	ideas := ideasOf(library)
	require.NotEmpty(t, ideas)
	lacking := shown.lacking(ideas)
	for _, idea := range lacking {
		if needNoExample[idea.String()] == "" {
			t.Errorf("%s has no Example: %s", idea, idea.advice())
		}
	}
	for name := range needNoExample {
		if !slices.ContainsFunc(lacking, func(i idea) bool { return i.String() == name }) {
			t.Errorf("needNoExample: %s has an Example, or does not exist: take it off the list", name)
		}
	}
}

func parseGo(t *testing.T, file string, text []byte) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(file), text, parser.SkipObjectResolution)
	require.NoError(t, err)
	return f
}

// idea is an exported function, type or method.
type idea struct {
	receiver, name string
	shared         bool // it is a method, and its name says another thing too
}

func (i idea) String() string { return strings.TrimPrefix(i.receiver+"."+i.name, ".") }

// example is the name that godoc wants of an Example of it.
func (i idea) example() string { return "Example" + strings.ReplaceAll(i.String(), ".", "_") }

func (i idea) advice() string {
	switch {
	case i.shared:
		return fmt.Sprintf("write func %s in an example_*_test.go; that an Example calls something named %s is "+
			"not enough, since other methods or fields have that name", i.example(), i.name)
	case i.receiver != "":
		return fmt.Sprintf("write func %s in an example_*_test.go, or call it in another Example", i.example())
	}
	return fmt.Sprintf("write func %s in an example_*_test.go, or use pawl.%s in another Example", i.example(), i.name)
}

// ideasOf lists the ideas of a package. Methods of interfaces are shown by what
// implements them, and Error, Is, String and Unwrap are known to everybody.
func ideasOf(files []*ast.File) (ideas []idea) {
	uses := map[string]int{} // of the names of methods and fields
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					for _, name := range field.Names {
						uses[name.Name]++
					}
				}
			}
			return true
		})
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if !d.Name.IsExported() || !receiverIsExported(d) || implied(d) {
					continue
				}
				i := idea{name: d.Name.Name}
				if d.Recv != nil {
					i.receiver = typeName(d.Recv.List[0].Type)
					uses[i.name]++
				}
				ideas = append(ideas, i)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() {
						ideas = append(ideas, idea{name: s.Name.Name})
					}
				}
			}
		}
	}
	for n := range ideas {
		ideas[n].shared = ideas[n].receiver != "" && uses[ideas[n].name] > 1
	}
	slices.SortFunc(ideas, func(a, b idea) int { return strings.Compare(a.String(), b.String()) })
	return ideas
}

// typeName is the name of a type without its pointers and parameters.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// shown is what the Examples show.
type shown struct {
	examples []string        // their names
	ofPawl   map[string]bool // x of each pawl.x
	selected map[string]bool // x of every other a.x
}

func newShown() *shown { return &shown{ofPawl: map[string]bool{}, selected: map[string]bool{}} }

func (s *shown) lacking(ideas []idea) (lacking []idea) {
	for _, i := range ideas {
		named := slices.ContainsFunc(s.examples, func(name string) bool {
			rest, ok := strings.CutPrefix(name, i.example())
			// A suffix of a lower-case letter is one more Example of the same.
			return ok && (rest == "" || len(rest) > 1 && rest[0] == '_' && !ast.IsExported(rest[1:]))
		})
		used := s.ofPawl[i.name]
		if i.receiver != "" {
			used = s.selected[i.name] && !i.shared
		}
		if !named && !used {
			lacking = append(lacking, i)
		}
	}
	return lacking
}

// add adds what is selected in a part of a file.
func (s *shown) add(file *ast.File, n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch {
		case isName(sel.X, "pawl"):
			s.ofPawl[sel.Sel.Name] = true
		case !isImported(file, sel.X):
			s.selected[sel.Sel.Name] = true
		}
		return true
	})
}

// isImported tells require in require.Len from what has a method of ours.
func isImported(file *ast.File, e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && slices.ContainsFunc(file.Imports, func(s *ast.ImportSpec) bool {
		return path.Base(strings.Trim(s.Path.Value, `"`)) == id.Name
	})
}

// addExamples adds the Examples of a file, and the declarations of that file
// that they lead to: a type comes with its methods.
func (s *shown) addExamples(file *ast.File) {
	declared := map[string][]ast.Node{}
	var next []ast.Node
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			switch {
			case d.Recv != nil:
				of := typeName(d.Recv.List[0].Type)
				declared[of] = append(declared[of], d)
			case strings.HasPrefix(d.Name.Name, "Example"):
				s.examples = append(s.examples, d.Name.Name)
				next = append(next, d)
			default:
				declared[d.Name.Name] = append(declared[d.Name.Name], d)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					declared[spec.Name.Name] = append(declared[spec.Name.Name], spec)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						declared[name.Name] = append(declared[name.Name], spec)
					}
				}
			}
		}
	}
	for len(next) > 0 {
		n := next[0]
		next = next[1:]
		s.add(file, n)
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				next = append(next, declared[id.Name]...)
				delete(declared, id.Name)
			}
			return true
		})
	}
}

func TestTheCheckOfTheExamplesKnowsWhatIsShown(t *testing.T) {
	t.Parallel()
	ideas := ideasOf([]*ast.File{parseGo(t, "p.go", []byte(`package pawl
type Box struct{ Size, hidden int }
func (b *Box) Size() int { return 0 }
func (b *Box) Open()     {}
func (b *Box) Shut()     {}
func (b *Box) Len() int  { return 0 }
func (b *Box) String() string { return "" }
func (b *box) Open()     {}
type Lid[T any] int
func (l Lid[T]) Open()   {}
type OnOpen interface{ Opened() }
func NewBox() *Box { return nil }
func Unused()      {}
`))})
	var names []string
	for _, i := range ideas {
		names = append(names, i.String())
	}
	require.Equal(t, []string{"Box", "Box.Len", "Box.Open", "Box.Shut", "Box.Size", "Lid", "Lid.Open", "NewBox", "OnOpen", "Unused"}, names)

	s := newShown()
	s.addExamples(parseGo(t, "example_box_test.go", []byte(`package pawl_test
import "example.com/require"
type hook struct{}
func (hook) Opened() { use(pawl.OnOpen(nil)) }
func ExampleLid_Open_twice() { helper() }
func ExampleBoxes() { b := pawl.NewBox(); b.Open(); b.Size(); require.Len(b, 1); use(pawl.Box{}) }
func helper() { b.Shut(); var _ hook }
func unused() { pawl.Unused() }
`)))
	lacking := s.lacking(ideas)
	var texts []string
	for _, i := range lacking {
		texts = append(texts, i.String()+": "+i.advice())
	}
	const notEnough = "is not enough, since other methods or fields have that name"
	require.Equal(t, []string{
		"Box.Len: write func ExampleBox_Len in an example_*_test.go, or call it in another Example",
		"Box.Open: write func ExampleBox_Open in an example_*_test.go; that an Example calls something named Open " + notEnough,
		"Box.Size: write func ExampleBox_Size in an example_*_test.go; that an Example calls something named Size " + notEnough,
		"Lid: write func ExampleLid in an example_*_test.go, or use pawl.Lid in another Example",
		"Unused: write func ExampleUnused in an example_*_test.go, or use pawl.Unused in another Example",
	}, texts)
	f := parseGo(t, "example_test.go", []byte("package p\nimport \"a/b\"\nvar _, _ = pawl.Lid[int](0), b.Unused"))
	s.add(f, f)
	require.Len(t, s.lacking(ideas), 4)
}
