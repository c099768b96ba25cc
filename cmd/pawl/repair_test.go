package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// file writes a file of a test, which appears under a name.
func (g *golden) file(name, text string) {
	path := filepath.Join(g.r.t.TempDir(), name)
	require.NoError(g.r.t, os.WriteFile(path, []byte(text), 0o600))
	g.names[path] = pad("<"+name+">", 36)
}

func TestADeadJobIsRepaired(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		g := newGolden(r, "repair")
		q := r.client.Queue("emails")
		for i, id := range r.bury("emails", "charge", "no number", "no number", "no number") {
			g.call(fmt.Sprintf("dead-%d", i+1), id)
		}
		g.file("good", `{"order":7}`)
		g.file("bad", `{"order":`)
		g.file("evil", "payload"+evil)
		g.both("dead", "redrive", "emails", "@dead-1", "--payload-file", "@good", "--dry-run")
		g.run("dead", "redrive", "emails", "@dead-1", "--payload-file", "@good", "--text")
		g.run("dead", "redrive", "emails", "@dead-2", "--payload-file", "@good", "--json")
		g.both("dead", "redrive", "emails", "@dead-1", "--payload-file", "@good")
		g.both("dead", "redrive", "emails", "@dead-3", "--payload-file", "@bad")
		g.both("dead", "redrive", "emails", "@dead-3", "--payload-file", "@evil", "--raw", "--dry-run")
		g.run("dead", "redrive", "emails", "@dead-3", "--payload-file", "@evil", "--raw", "--text")
		g.run("dead", "redrive", "nobody", "@dead-3", "--payload-file", "@good")
		for name, payload := range map[string]string{"dead-1": `{"order":7}`, "dead-2": `{"order":7}`, "dead-3": "payload" + evil} {
			ids, err := parseIDs([]string{g.id(name)})
			require.NoError(t, err)
			job, err := q.Get(t.Context(), ids[0])
			require.NoError(t, err)
			require.Equal(t, pawl.StateReady, job.State)
			require.Equal(t, "charge", job.Kind, "the kind stays")
			require.Equal(t, payload, string(job.Payload))
		}
		g.finish()
	})
}

// What is wrong is said before anything is sent.
func TestAWrongRepairIsNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.bury("emails", "charge", "declined")[0].String()
	large := filepath.Join(t.TempDir(), "large.json")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, largestPayload+1))
	const one = "--payload-file is for one job: "
	for line, says := range map[string]string{
		id + " --payload-file no-such.json":          "--payload-file: open no-such.json: no such file or directory",
		id + " --payload-file testdata":              "is a directory",
		id + " --payload-file " + large:              "--payload-file: above 16 MiB, the most there is",
		id + " --payload-file=":                      "--payload-file: open : no such file",
		id + " " + someID + " --payload-file -":      one + "give its id, and no other",
		"--all --payload-file -":                     one + "give its id, and no other",
		id + " --payload-file - --kind charge":       one + "leave out the filters, --all, --over and --stop-after",
		id + " --payload-file - --limit 1":           one + "leave out the filters",
		id + " --payload-file - --all":               one + "leave out the filters",
		id + " --payload-file - --dry-run --over 1m": one + "leave out the filters",
		id + " --payload-file - --stop-after 1":      one + "leave out the filters",
		id + " --raw":                                "--raw is of a repaired payload: give --payload-file",
		"not-an-id --payload-file -":                 `"not-an-id" is no id of a job`,
	} {
		got := r.pawl(append(words("dead redrive emails"), words(line)...), typing("{}"))
		require.Equal(t, exitUsage, got.code, line)
		require.Contains(t, got.err, says, line)
		require.Empty(t, got.out, line)
	}
	got := r.pawl(words("dead redrive emails "+id+" --payload-file -"), typing("{"))
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "the repaired payload is no JSON")
	got = r.pawl(words("dead redrive emails "+id+" --payload-file - --text"), typing(`{"order":8}`))
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "1 job moved, with another payload\n")
	require.Contains(t, got.out, `now     {"order":8} (11 B)`)
}

// A repaired job takes its unique key again like any other that is redriven.
func TestARefusedRepairIsNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w, err := pawl.NewWorker(r.client, pawl.WorkerConfig{Queues: pawl.Queues("emails")})
	require.NoError(t, err)
	pawl.Handle(w, func(context.Context, *pawl.Job[charge]) error { return pawl.Permanent(fmt.Errorf("declined")) })
	id := r.enqueue("emails", "charge", `{"order":7}`, pawl.Unique{Key: "order:7"}).String()
	stop := r.work(w)
	r.await("emails", func(st pawl.Stats) bool { return st.Dead == 1 })
	stop()
	holder := r.enqueue("emails", "charge", `{"order":7}`, pawl.Unique{Key: "order:7"}).String()
	line := words("dead redrive emails " + id + " --payload-file -")
	got := r.pawl(append(line, "--dry-run", "--text"), typing("{}"))
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "0 jobs would be moved, 1 refused\n")
	require.Contains(t, got.err, "it would stay dead, since "+holder+" holds its unique key, and the exit code would be 5; see what that one is: pawl job emails HOLDER;")
	got = r.pawl(append(line, "--dry-run", "--json"), typing("{}"))
	require.Contains(t, got.out, `"dry_run":true,"moved":false,"holder":"`+holder+`"`)
	got = r.pawl(line, typing("{}"))
	require.Equal(t, exitRefused, got.code)
	require.Contains(t, got.err, holder)
	require.Contains(t, got.err, "it stayed dead as it was; see what that one is")
	require.Empty(t, got.out)
}

// Of a corrupt record the kind is not known, with which it would run.
func TestACorruptJobIsNotRepaired(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.NoError(t, r.rdb.Do(t.Context(), "XADD", "pawl:{emails}:jobs", "5-5", "foreign", "entry").Err())
	w, err := pawl.NewWorker(r.client, pawl.WorkerConfig{Queues: pawl.Queues("emails")})
	require.NoError(t, err)
	pawl.Handle(w, func(context.Context, *pawl.Job[charge]) error { return nil })
	stop := r.work(w)
	r.await("emails", func(st pawl.Stats) bool { return st.Dead == 1 })
	stop()
	for d, err := range r.client.Queue("emails").Dead().List(t.Context(), pawl.DeadFilter{}) {
		require.NoError(t, err)
		got := r.pawl(words("dead redrive emails "+d.ID.String()+" --payload-file -"), typing("{}"))
		require.Equal(t, exitRefused, got.code)
		require.Contains(t, got.err, "the record of "+d.ID.String()+" cannot be read, so that its kind is not known")
	}
}
