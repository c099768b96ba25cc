package main

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// destructive are the commands that ask, on a queue with one job and one dead one.
func destructive(r *rig) map[string]func(pawl.Stats) bool {
	dead := r.bury("emails", "charge", "declined", "declined")
	job := r.enqueue("emails", "welcome", "{}").String()
	gone := func(st pawl.Stats) bool { return st.Ready == 0 }
	return map[string]func(pawl.Stats) bool{
		"cancel emails " + job:                   gone,
		"dead delete emails " + dead[0].String(): func(st pawl.Stats) bool { return st.Dead < 2 },
		"purge emails --state ready":             gone,
		"dead purge emails --all":                func(st pawl.Stats) bool { return st.Dead == 0 },
		"schedules remove emails nightly":        nil,
	}
}

func TestWhatCannotBeUndoneIsAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	schedule := pawl.Schedule{ID: "nightly", When: pawl.Cron("0 2 * * *"), Args: charge{1}}
	require.NoError(t, r.client.Queue("emails").Schedule(t.Context(), schedule))
	commands := destructive(r)
	stats := func() pawl.Stats {
		st, err := r.client.Queue("emails").Stats(t.Context())
		require.NoError(t, err)
		return st
	}
	before := stats()
	for line := range commands {
		got := r.pawl(words(line))
		require.Equal(t, exitRefused, got.code, line)
		require.Contains(t, got.err, "--yes", line)
		for _, answer := range []string{"n\n", "\n", "", "yes please\n", "emails\n", "y no\n"} {
			got := r.pawl(words(line), terminal, typing(answer))
			require.Equal(t, exitRefused, got.code, "%s: %q", line, answer)
			require.Contains(t, got.err, "Redis at "+r.addr+", namespace pawl\n", line)
			require.Contains(t, got.err, "emails", line)
			require.Contains(t, got.err, "nothing was done", line)
			require.Empty(t, got.out)
		}
	}
	after := stats()
	before.OldestReady, after.OldestReady = 0, 0
	require.Equal(t, before, after)
	for i, line := range []string{"cancel", "dead delete", "dead purge", "schedules remove"} {
		for whole, done := range commands {
			if len(whole) > len(line) && whole[:len(line)] == line {
				got := r.pawl(words(whole), terminal, typing([]string{"y\n", "yes\n", "Y", "YES\r\n"}[i]))
				require.Zero(t, got.code, got.err)
				require.True(t, done == nil || done(stats()), whole)
			}
		}
	}
	list, err := r.client.Queue("emails").Schedules(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
}

// Destroy takes a name for an answer, and no "y".
func TestDestroyAsksForTheName(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.enqueue("emails", "welcome", "{}")
	for _, answer := range []string{"y\n", "yes\n", "email\n", "\n"} {
		require.Equal(t, exitRefused, r.pawl(words("destroy emails"), terminal, typing(answer)).code)
	}
	got := r.pawl(words("destroy emails"), terminal, typing("emails\n"))
	require.Zero(t, got.code, got.err)
	require.Equal(t, "queue emails is destroyed\n", got.out)
	require.Contains(t, got.err, "Destroy queue emails, with 1 job and 0 dead jobs?")
}

// While jobs run it refuses, and nothing is changed.
func TestDestroyRefusesWhileJobsRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g := newGolden(r, "look") // for its names
	live(g)
	got := r.pawl(words("destroy emails --yes"))
	require.Equal(t, exitRefused, got.code)
	require.Contains(t, got.err, "jobs run")
	for name, says := range map[string]string{"running": " runs", "parked": "unique key", "done": "pawl purge --state done", "dead-1": "pawl dead redrive"} {
		got := r.pawl([]string{"run-now", "emails", g.id(name)})
		require.Equal(t, exitRefused, got.code, name)
		require.Contains(t, got.err, says)
	}
}

// Ctrl-C at the question is no answer.
func TestAQuestionCanBeInterrupted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.enqueue("emails", "welcome", "{}")
	reader, writer := io.Pipe()
	t.Cleanup(func() { _ = writer.Close() })
	ctx, cancel := context.WithCancelCause(t.Context())
	var errs lockedBuffer
	done := make(chan result, 1)
	go func() {
		done <- call(ctx, words("purge emails --state ready"), env("REDIS_URL", "redis://"+r.addr), terminal,
			func(w *world) { w.in, w.err = reader, &errs })
	}()
	r.eventually("the question", func() bool { return len(errs.String()) > 0 })
	cancel(errInterrupted)
	require.Equal(t, exitInterrupted, (<-done).code)
	r.await("emails", func(st pawl.Stats) bool { return st.Ready == 1 })
}
