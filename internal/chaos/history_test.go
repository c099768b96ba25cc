package chaos

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistoriesAreMergedByTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for process, times := range map[string][]int64{"a": {10, 30, 30}, "b": {20, 40}} {
		w, err := NewWriter(dir, process)
		require.NoError(t, err)
		for i, at := range times {
			w.Write(Event{At: at, Type: OK, Op: Start, Attempt: i})
		}
		require.NoError(t, w.Close())
	}
	events, err := Read(dir)
	require.NoError(t, err)
	require.Equal(t, []Event{
		{At: 10, Process: "a", Type: OK, Op: Start},
		{At: 20, Process: "b", Type: OK, Op: Start},
		{At: 30, Process: "a", Type: OK, Op: Start, Attempt: 1},
		{At: 30, Process: "a", Type: OK, Op: Start, Attempt: 2},
		{At: 40, Process: "b", Type: OK, Op: Start, Attempt: 1},
	}, events)
}

func TestATornLastLineIsLeftOut(t *testing.T) {
	t.Parallel()
	w, err := NewWriter(t.TempDir(), "a")
	require.NoError(t, err)
	w.Write(Event{Type: Invoke, Op: Enqueue, Ref: "x", Key: "a\nkey"})
	w.Write(Event{Type: OK, Op: Enqueue, Ref: "x"})
	require.NoError(t, w.Close())
	text, err := os.ReadFile(w.file.Name())
	require.NoError(t, err)
	for n := range text {
		require.NoError(t, os.WriteFile(w.file.Name(), text[:n], 0o600))
		events, err := Read(filepath.Dir(w.file.Name()))
		require.NoError(t, err, "%s", text[:n])
		require.LessOrEqual(t, len(events), 1)
	}
	_, err = parse(append([]byte("{torn\n"), text...))
	require.ErrorContains(t, err, "line 1", "a line in the middle is whole")
}

func TestASeedGivesTheSchedule(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for seed := range uint64(50) {
		plan := NewPlan(seed, 3, time.Second, 5*time.Second)
		require.Equal(t, plan, NewPlan(seed, 3, time.Second, 5*time.Second))
		require.NotEqual(t, plan, NewPlan(seed+1, 3, time.Second, 5*time.Second))
		var all time.Duration
		for _, s := range plan {
			all += s.After
			seen[s.Kind] = true
			if s.Kind == "call" {
				require.Contains(t, callFaults, s.How)
			}
		}
		require.LessOrEqual(t, all, 5*time.Second)
		require.Greater(t, all, 4*time.Second)
	}
	require.Len(t, seen, len(kinds), "each fault comes")
	weight := 0
	for _, k := range kinds {
		weight += k.weight
	}
	require.Equal(t, 100, weight)
}
