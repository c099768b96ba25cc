package chaos

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHistoriesAreJudgedAgain is for those who mend the checker: CHAOS_JUDGE is a
// folder of histories that CHAOS_DIR kept. Without it there is one small history.
func TestHistoriesAreJudgedAgain(t *testing.T) {
	t.Parallel()
	root := os.Getenv("CHAOS_JUDGE")
	if root == "" {
		root = t.TempDir()
		dir := filepath.Join(root, "seed-1")
		require.NoError(t, os.Mkdir(dir, 0o755))
		require.Empty(t, Run(t, Options{Seed: 1, Jobs: 40, Window: time.Second, Dir: dir}).Violations)
	}
	paths, err := filepath.Glob(filepath.Join(root, "*", "state.json"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	var all total
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		result := Result{Counts: map[string]int{}, Noise: noise(filepath.Dir(path))}
		require.NoError(t, json.Unmarshal(text, &result.State))
		result.History, err = Read(filepath.Dir(path))
		require.NoError(t, err)
		result.Violations = Check(result.History, result.State)
		for _, e := range result.History {
			if e.Op == Fault {
				result.Counts[kindOf(e.Class)]++
			}
		}
		all.add(result)
		for _, v := range result.Violations {
			t.Errorf("%s: %s", filepath.Base(filepath.Dir(path)), v)
		}
	}
	all.log(t, 0)
}

// kindOf is the kind of the step that a fault's class tells of.
func kindOf(class string) string {
	if strings.Contains(class, " ") {
		return "fired"
	}
	return class
}
