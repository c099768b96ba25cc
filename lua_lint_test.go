package pawl_test

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// The lint of the Redis scripts; lua_rules_test.go runs it and proves that it
// catches what it is for. A verb file is a script with a header; a file of
// lua/lib has none, since it is text that verbs include.

const textConvention = `only text may be joined by "..": a number loses digits. ` +
	`Text is a literal, ARGV[i], a call of num, string.format, sub, char, lower, rep or table.concat, ` +
	`or a name (of a variable, field or function) that ends in _s, id, token, text, answer, record or head`

var (
	textName = regexp.MustCompile(`(_s|id|token|text|answer|record|head)$`)
	textCall = []string{
		"num", "string.format", "string.sub", "string.char", "string.lower", "string.rep", "table.concat",
	}
	declaration = regexp.MustCompile(`^-- (KEYS|ARGV)\[(\d+)(\.\.\w*)?\]\s+\S`)
	includeLine = regexp.MustCompile(`(?m)^ *-- include: (\w+)$`)

	forbiddenCommands = []string{"KEYS", "SCAN", "LREM", "LRANGE", "XTRIM"}
	keylessCommands   = []string{"TIME"}
	subcommands       = []string{"XINFO", "XGROUP", "OBJECT", "MEMORY"} // the key comes third
	manyKeys          = []string{"DEL", "UNLINK", "EXISTS", "TOUCH", "MGET"}
	twoKeys           = []string{"RENAME", "RENAMENX", "SMOVE", "LMOVE", "RPOPLPUSH", "COPY"}
)

// luaLint collects what is wrong in one file, and how it uses KEYS and ARGV.
type luaLint struct {
	name     string
	problems []string
	used     map[string]map[int]bool // "KEYS" or "ARGV" -> literal indexes
	dynamic  map[string]bool         // used by a computed index, or whole
	built    map[string]bool         // names that were assigned a made text
}

// lintVerb checks a script with its header and the libraries that it includes.
func lintVerb(name, source string, libs map[string]string) []string {
	l := newLuaLint(name)
	l.body(source)
	l.includes(source, libs)
	l.header(source)
	return l.problems
}

// includes looks at the libraries that a file includes, and that these do.
func (l *luaLint) includes(source string, libs map[string]string) {
	for _, include := range includeLine.FindAllStringSubmatch(source, -1) {
		text, ok := libs[include[1]]
		if !ok {
			l.report(0, "includes %q, which is not in lua/lib", include[1])
			continue
		}
		lib := newLuaLint(include[1]) // its own problems are told once, by lintLib
		lib.used, lib.dynamic = l.used, l.dynamic
		lib.body(text)
		l.includes(text, libs)
	}
}

// lintLib checks a file of lua/lib, which has no header.
func lintLib(name, source string) []string {
	l := newLuaLint(name)
	l.body(source)
	return l.problems
}

func newLuaLint(name string) *luaLint {
	return &luaLint{
		name:    name,
		used:    map[string]map[int]bool{"KEYS": {}, "ARGV": {}},
		dynamic: map[string]bool{},
		built:   map[string]bool{},
	}
}

func (l *luaLint) report(line int, format string, args ...any) {
	l.problems = append(l.problems, fmt.Sprintf("%s:%d: %s", l.name, line, fmt.Sprintf(format, args...)))
}

func (l *luaLint) header(source string) {
	var lines []string
	for line := range strings.Lines(source) {
		if !strings.HasPrefix(line, "--") {
			break
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	if len(lines) == 0 || !regexp.MustCompile(`^-- `+regexp.QuoteMeta(l.name)+`: \S`).MatchString(lines[0]) {
		l.report(1, "the first line must be %q", "-- "+l.name+": what it does")
	}
	declared := map[string]int{} // the last plain index
	tails := map[string]int{}    // where KEYS[n..] begins
	returns := false
	for i, line := range lines {
		returns = returns || strings.HasPrefix(line, "-- returns ")
		m := declaration.FindStringSubmatch(line)
		if m == nil {
			if strings.HasPrefix(line, "-- KEYS[") || strings.HasPrefix(line, "-- ARGV[") {
				l.report(i+1, "a declaration is %q", "-- KEYS[1] name  what")
			}
			continue
		}
		array := m[1]
		n, _ := strconv.Atoi(m[2])
		if n != declared[array]+1 || tails[array] > 0 {
			l.report(i+1, "%s[%d] is declared out of order", array, n)
		}
		if m[3] != "" {
			tails[array] = n
			continue
		}
		declared[array] = n
		if !l.used[array][n] {
			l.report(i+1, "%s[%d] is declared and not used", array, n)
		}
	}
	if !returns {
		l.report(1, "the header has no line %q", "-- returns …")
	}
	for _, array := range []string{"KEYS", "ARGV"} {
		l.tail(array, declared[array], tails[array])
	}
}

// tail checks what is used beyond the plain declarations of an array.
func (l *luaLint) tail(array string, last, tail int) {
	beyond := l.dynamic[array]
	for n := range l.used[array] {
		if n <= last {
			continue
		}
		beyond = true
		if tail == 0 {
			l.report(0, "%s[%d] is used and not declared", array, n)
		}
	}
	switch {
	case tail > 0 && !beyond:
		l.report(0, "%s[%d..] is declared and not used", array, tail)
	case tail == 0 && l.dynamic[array]:
		l.report(0, "%s is used by a computed index, and no %s[n..] is declared", array, array)
	}
}

func (l *luaLint) body(source string) {
	chunk, err := parse.Parse(strings.NewReader(source), l.name)
	if err != nil {
		l.report(0, "does not parse: %v", err)
		return
	}
	walkLua(chunk, l.assignment)
	walkLua(chunk, l.visit)
}

// assignment notes names that hold a text made in the script.
func (l *luaLint) assignment(node any) bool {
	var names []string
	var values []ast.Expr
	switch n := node.(type) {
	case *ast.LocalAssignStmt:
		names, values = n.Names, n.Exprs
	case *ast.AssignStmt:
		for _, target := range n.Lhs {
			names = append(names, dotted(target))
		}
		values = n.Rhs
	}
	for i, name := range names {
		if name != "" && i < len(values) && l.made(values[i]) {
			l.built[name] = true
		}
	}
	return true
}

func (l *luaLint) visit(node any) bool {
	switch n := node.(type) {
	case *ast.StringConcatOpExpr:
		for _, part := range flatten(n) {
			if dotted(part) == "KEYS" || indexed(part, "KEYS") {
				l.report(n.Line(), "a key is built; declare it in KEYS")
			} else if !isText(part) {
				l.report(n.Line(), "%s", textConvention)
			}
			walkLua(part, l.visit)
		}
		return false
	case *ast.AttrGetExpr:
		if array := dotted(n.Object); array == "KEYS" || array == "ARGV" {
			if index, ok := n.Key.(*ast.NumberExpr); ok {
				i, _ := strconv.Atoi(index.Value)
				l.used[array][i] = true
				return false
			}
		}
		if name := dotted(n); name == "redis.call" || name == "redis.pcall" {
			l.report(n.Line(), "%s is passed on; call it in full, or the lint cannot follow", name)
		}
	case *ast.IdentExpr:
		if n.Value == "KEYS" || n.Value == "ARGV" {
			l.dynamic[n.Value] = true
		}
	case *ast.FuncCallExpr:
		switch dotted(n.Func) {
		case "tostring":
			l.report(n.Line(), "tostring keeps 14 digits of a number; use num or string.format")
		case "redis.call", "redis.pcall":
			l.call(n)
			walkLua(n.Args, l.visit)
			return false
		}
	}
	return true
}

// call checks a redis.call: a known command, and keys that come from KEYS.
func (l *luaLint) call(n *ast.FuncCallExpr) {
	var name *ast.StringExpr
	if len(n.Args) > 0 {
		name, _ = n.Args[0].(*ast.StringExpr)
	}
	if name == nil {
		l.report(n.Line(), "a command must be named literally")
		return
	}
	command := strings.ToUpper(name.Value)
	if slices.Contains(forbiddenCommands, command) {
		l.report(n.Line(), "%s is not allowed: its cost is not bounded by what it answers", command)
	}
	from, to := 1, 2
	switch {
	case slices.Contains(keylessCommands, command):
		return
	case slices.Contains(subcommands, command):
		from, to = 2, 3
	case slices.Contains(manyKeys, command):
		to = len(n.Args)
	case slices.Contains(twoKeys, command):
		to = 3
	}
	for _, key := range n.Args[min(from, len(n.Args)):min(to, len(n.Args))] {
		if l.made(key) || l.built[dotted(key)] {
			l.report(n.Line(), "the key of %s is made in the script; declare it in KEYS", command)
		}
	}
}

// made tells a value that the script makes, and that so cannot be a key of its
// own. A list that is unpacked is followed no further.
func (l *luaLint) made(e ast.Expr) bool {
	switch n := e.(type) {
	case *ast.StringExpr, *ast.NumberExpr, *ast.StringConcatOpExpr:
		return true
	case *ast.FuncCallExpr:
		return dotted(n.Func) != "unpack" && dotted(n.Func) != "table.unpack"
	case *ast.LogicalOpExpr:
		return l.made(n.Rhs) || n.Operator == "or" && l.made(n.Lhs)
	}
	return false
}

// isText tells whether an operand of ".." is text by the convention.
func isText(e ast.Expr) bool {
	switch n := e.(type) {
	case *ast.StringExpr:
		return true
	case *ast.LogicalOpExpr:
		return isText(n.Rhs) && (n.Operator == "and" || isText(n.Lhs))
	case *ast.StringConcatOpExpr: // in brackets, or under and/or; visited for itself
		return true
	case *ast.FuncCallExpr:
		if n.Method != "" {
			return slices.Contains(textCall, "string."+n.Method)
		}
		name := dotted(n.Func)
		return slices.Contains(textCall, name) || textName.MatchString(name)
	}
	return indexed(e, "ARGV") || textName.MatchString(dotted(e))
}

func indexed(e ast.Expr, array string) bool {
	get, ok := e.(*ast.AttrGetExpr)
	return ok && dotted(get.Object) == array
}

func flatten(e ast.Expr) []ast.Expr {
	if n, ok := e.(*ast.StringConcatOpExpr); ok {
		return append(flatten(n.Lhs), flatten(n.Rhs)...)
	}
	return []ast.Expr{e}
}

// dotted is the text of a name or a chain of fields, else empty.
func dotted(e ast.Expr) string {
	switch n := e.(type) {
	case *ast.IdentExpr:
		return n.Value
	case *ast.AttrGetExpr:
		if key, ok := n.Key.(*ast.StringExpr); ok {
			if object := dotted(n.Object); object != "" {
				return object + "." + key.Value
			}
		}
	}
	return ""
}

// walkLua visits every node below v; visit tells whether to go deeper.
func walkLua(v any, visit func(node any) bool) {
	walkValue(reflect.ValueOf(v), visit)
}

func walkValue(v reflect.Value, visit func(node any) bool) {
	switch v.Kind() {
	case reflect.Interface:
		walkValue(v.Elem(), visit)
	case reflect.Pointer:
		if !v.IsNil() && visit(v.Interface()) {
			walkValue(v.Elem(), visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				walkValue(v.Field(i), visit)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkValue(v.Index(i), visit)
		}
	}
}
