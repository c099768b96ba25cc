package chaos

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

const orphanEnv = "CHAOS_ORPHAN" // the folder of its histories

// not parallel: it is the body of a child process, and waits to be killed.
func TestOrphanedRunner(t *testing.T) {
	dir := os.Getenv(orphanEnv)
	if dir == "" {
		t.Skip("only as a child of the test below")
	}
	plan := []Step{{Kind: "stop", Target: 0, For: time.Minute}, {After: time.Minute, Kind: "flush"}}
	Run(t, Options{Seed: 1, Jobs: 1000, Window: time.Minute, Plan: plan, Dir: dir})
}

func TestChildrenDieWithAKilledRunner(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a child of its parent's death")
	}
	if !redistest.Available() {
		redistest.Start(t) // skips or fails
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestOrphanedRunner$")
	cmd.Env = append(os.Environ(), orphanEnv+"="+dir)
	exited, err := redistest.StartTied(cmd)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-exited
	})
	redistest.Eventually(t, "a worker is frozen", func(context.Context) bool {
		states := childStates(t, dir)
		return bytes.ContainsRune(states, 'T') && len(states) >= 4
	})
	require.NoError(t, cmd.Process.Kill())
	<-exited
	redistest.Eventually(t, "they have all ended, the frozen one too", func(context.Context) bool {
		return len(childStates(t, dir)) == 0
	})
}

// childStates is a letter for each child of a runner with these histories: T for
// one that is stopped.
func childStates(t *testing.T, dir string) (states []byte) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, path := range paths {
		env, err := os.ReadFile(path) // of another user, or gone
		if err != nil || !bytes.Contains(env, []byte(ChildEnv+"={")) || !bytes.Contains(env, []byte(dir)) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(path), "stat"))
		if _, rest, ok := bytes.Cut(stat, []byte(") ")); err == nil && ok {
			states = append(states, rest[0])
		}
	}
	return states
}
