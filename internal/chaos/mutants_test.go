package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mutant is a bug in pawl's Go code: a text of a file and what becomes of it, and
// what it takes to be seen.
type mutant struct {
	name, file, old, new string

	plan   []Step
	window time.Duration // 1.5 s if 0
	only   string        // shapes
	jobs   int           // 80 if 0
	want   []string      // invariants

	contract string // or: a test of package pawl that fails, where no history can tell
	always   bool   // it is not left to those who ask for all
}

// TestMutantsAreCaught plants bugs in the workers and producers of a run, one at a
// time, and wants the checker to see each. A bug costs a build, so that only a few
// are planted by default; CHAOS_MUTANTS is "all", or a word of a name.
func TestMutantsAreCaught(t *testing.T) {
	t.Parallel()
	const tries = 5
	for i, m := range mutants {
		if !m.asked() {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			overlay := m.overlay(t)
			if m.contract != "" {
				m.requireContractBroken(t, overlay)
				return
			}
			opts := m.options()
			opts.Binary = buildChild(t, "-overlay", overlay)
			for try := range tries {
				opts.Seed = uint64(100*try + i + 1)
				result := Run(t, opts)
				require.Empty(t, result.Errors)
				missed := result.missed(m.want)
				t.Logf("missed %q of %q in %s", missed, m.want, result.summary())
				if len(missed) == 0 {
					t.Logf("caught: %s", result.first(m.want[0]))
					return
				}
			}
			require.Fail(t, "not caught")
		})
	}
}

// What catches the mutants is not what the faults alone would bring about.
func TestMutantsWithoutTheirBugsPass(t *testing.T) {
	t.Parallel()
	for i, m := range mutants {
		if !m.asked() || m.contract != "" {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			opts := m.options()
			opts.Seed, opts.Patience = uint64(i+1), time.Minute
			result := Run(t, opts)
			require.Empty(t, result.Errors)
			require.Empty(t, result.Noise)
			require.Equal(t, m.want, result.missed(m.want), "%v", result.Violations)
		})
	}
}

// asked reports whether it is one of those that are wanted.
func (m mutant) asked() bool {
	which := os.Getenv("CHAOS_MUTANTS")
	return which == "all" || which == "" && m.always || which != "" && strings.Contains(m.name, which)
}

func (m mutant) options() Options {
	opts := Options{Jobs: m.jobs, Window: m.window, Visibility: bugLease, Plan: m.plan, Only: m.only, Patience: 6 * time.Second}
	if opts.Jobs == 0 {
		opts.Jobs = 80
	}
	if opts.Window == 0 {
		opts.Window = 1500 * time.Millisecond
	}
	return opts
}

// overlay is a file that has the go command see the mutant's text in the place of
// the file's.
func (m mutant) overlay(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../..", m.file))
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), m.old), "the text to be replaced is to be in %s once", m.file)
	dir := t.TempDir()
	planted := filepath.Join(dir, filepath.Base(m.file))
	require.NoError(t, os.WriteFile(planted, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o600))
	words, err := json.Marshal(map[string]any{"Replace": map[string]string{path: planted}})
	require.NoError(t, err)
	overlay := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, words, 0o600))
	return overlay
}

func buildChild(t *testing.T, flags ...string) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "child")
	args := append([]string{"build", "-ldflags=-s -w", "-o", binary}, flags...)
	out, err := exec.CommandContext(t.Context(), "go", append(args, "./chaoschild")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

func (m mutant) requireContractBroken(t *testing.T, overlay string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-overlay", overlay, "-run", "^"+m.contract+"$", ".")
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "%s", out)
	require.Contains(t, string(out), "--- FAIL: "+m.contract, "it fails, and does not only not build")
	t.Logf("caught by %s", m.contract)
}

// first is a violation of the invariant.
func (r Result) first(invariant string) string {
	for _, v := range r.Violations {
		if v.Invariant == invariant {
			return v.String()
		}
	}
	return fmt.Sprint("none of ", invariant)
}
