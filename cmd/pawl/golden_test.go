package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// golden is what commands have said, one after the other, with what differs from run to
// run replaced by words of the same width.
type golden struct {
	r     *rig
	name  string
	text  strings.Builder
	names map[string]string // of ids, by their text
	codes map[int]bool      // that were met
}

// newGolden begins a golden of the rig. Finish compares it with testdata/<name>.golden.
func newGolden(r *rig, name string) *golden {
	return &golden{r: r, name: name, names: map[string]string{}, codes: map[int]bool{}}
}

// call has an id appear under a name.
func (g *golden) call(name string, id pawl.ID) {
	g.names[id.String()] = pad("<"+name+">", 36)
}

// id is the id of a name.
func (g *golden) id(name string) string {
	for id, as := range g.names {
		if as == pad("<"+name+">", 36) {
			return id
		}
	}
	require.Fail(g.r.t, "no such name", name)
	return ""
}

// both runs a command that changes nothing, in both forms.
func (g *golden) both(args ...string) {
	g.run(append(args, "--text")...)
	g.run(append(args, "--json")...)
}

// run runs a command. "@name" among the arguments is the id of a name.
func (g *golden) run(args ...string) result {
	g.r.t.Helper()
	fmt.Fprintf(&g.text, "$ pawl %s\n", strings.Join(args, " "))
	given := append([]string{}, args...)
	for i, arg := range given {
		if name, ok := strings.CutPrefix(arg, "@"); ok {
			given[i] = g.id(name)
		}
	}
	got := g.r.pawl(given)
	requireHarmless(g.r.t, got.out+got.err, strings.Join(args, " "))
	g.text.WriteString(got.out)
	for line := range strings.Lines(got.err) {
		g.text.WriteString("! " + line)
	}
	if got.code != 0 {
		fmt.Fprintf(&g.text, "exit %d\n", got.code)
	}
	g.text.WriteString("\n")
	g.codes[got.code] = true
	return got
}

// finish compares, or writes if -update is given and this is a redis-server.
func (g *golden) finish() {
	t := g.r.t
	t.Helper()
	file := filepath.Join("testdata", g.name+".golden")
	text := g.normal()
	if *update && !strings.HasSuffix(t.Name(), "miniredis") {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	if *update {
		return // miniredis may have come before
	}
	require.Equal(t, squeezed(string(want)), squeezed(text), "go test ./cmd/pawl -update rewrites %s", file)
}

// squeezed forgets how wide the columns are: an age may have one digit more.
func squeezed(text string) string {
	return regexp.MustCompile(`  +`).ReplaceAllString(text, "  ")
}

var replacements = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), pad("<id>", 36)},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`), pad("<time>", 24)},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`), pad("<time>", 20)},
	{regexp.MustCompile(`_seconds":[0-9.e+-]+`), `_seconds":<seconds>`},
	{regexp.MustCompile(`ran [0-9.]+(ms|s|µs)`), "ran <took>"},
	{regexp.MustCompile(`\b\d/4\b`), "0/4"},
	{regexp.MustCompile(`"concurrency":4,"running":\d`), `"concurrency":4,"running":<busy>`},
	{regexp.MustCompile(`(Redis|Valkey) \d+\.\d+\.\d+`), "Redis <version>"},
	{regexp.MustCompile(`PoolSize is \d+`), "PoolSize is <size>"},
	{regexp.MustCompile(`"pid":\d+`), `"pid":<pid>`},
	{regexp.MustCompile(`"build":"[^"]*"`), `"build":"<build>"`},
	{regexp.MustCompile(`"host":"[^"]*"`), `"host":"<host>"`},
	{regexp.MustCompile(`  [0-9a-f]{16}  `), "  <print.........>  "},
	{regexp.MustCompile(`"fingerprint":"[0-9a-f]+"`), `"fingerprint":"<print>"`},
	{regexp.MustCompile(`(?m)^build .*$`), "build  <build>"},
}

// someAge is how long ago something was that was done in a test.
var someAge = regexp.MustCompile(`\b\d+[sm]\b`)

// normal is the text without what differs from run to run.
func (g *golden) normal() string {
	text := strings.ReplaceAll(g.text.String(), g.r.addr, "<addr>")
	for id, name := range g.names {
		text = strings.ReplaceAll(text, id, name)
	}
	for _, r := range replacements {
		text = r.pattern.ReplaceAllString(text, r.by)
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "$") && !strings.HasPrefix(line, "!") {
			lines[i] = someAge.ReplaceAllString(line, "0s")
		}
	}
	return strings.Join(lines, "\n")
}

func pad(text string, width int) string {
	if len(text) >= width {
		return text
	}
	return text[:len(text)-1] + strings.Repeat(".", width-len(text)) + text[len(text)-1:]
}

// TestTheGoldenFilesAreAllCompared finds files that no test writes any more.
func TestTheGoldenFilesAreAllCompared(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.golden")
	require.NoError(t, err)
	var tests strings.Builder
	sources, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, name := range sources {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		tests.Write(text)
	}
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".golden")
		require.Contains(t, tests.String(), fmt.Sprintf("newGolden(r, %q)", name), file)
	}
}
