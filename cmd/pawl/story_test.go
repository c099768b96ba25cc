package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
)

// What changes something is called once as text and once as JSON, each on jobs of its own.

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		g := newGolden(r, "pause")
		r.enqueue("emails", "welcome", `{}`)
		g.both("pause", "emails")
		g.both("stats", "emails")
		g.both("pause", "emails", "--for", "5h30m")
		g.run("stats", "--text")
		g.both("resume", "emails")
		g.both("pause", "nobody")
		g.both("resume", "nobody")
		g.finish()
	})
}

func TestJobsAreMovedAndCancelled(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		g := newGolden(r, "move")
		for i := range 4 {
			g.call(fmt.Sprintf("job-%d", i+1), r.enqueue("emails", "welcome", fmt.Sprintf(`{"n":%d}`, i), pawl.Delay(5*time.Hour+30*time.Minute)))
		}
		g.call("dead", r.bury("emails", "charge", "declined")[0])
		g.run("run-now", "emails", "@job-1", "--text")
		g.run("run-now", "emails", "@job-2", "--json")
		g.run("reschedule", "emails", "@job-1", "--in", "7d12h", "--text")
		g.run("reschedule", "emails", "@job-2", "--at", "2999-12-24 08:00", "--json")
		g.run("jobs", "emails", "--state", "delayed", "--text")
		g.run("cancel", "emails", "@job-1", "--text")
		g.run("cancel", "emails", "@job-1", "@job-3", "--yes", "--text")
		g.run("cancel", "emails", "@job-2", "--yes", "--json")
		for _, verb := range []string{"cancel --yes", "run-now", "reschedule --in 1h"} {
			args := append(words(verb), "emails", "@job-3", "@dead", "@job-4")
			g.run(append(args, "--text")...)
		}
		g.run("run-now", "emails", "@job-3", "@job-4", "@dead", "--json")
		g.finish()
	})
}

func TestDeadJobsAreSentBackAndRemoved(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		g := newGolden(r, "dead")
		errs := []string{"declined", "declined", "no route", "no route", "declined", "declined", "declined", "declined", "declined", "declined"}
		for i, id := range r.bury("emails", "charge", errs...) {
			g.call(fmt.Sprintf("dead-%d", i+1), id)
		}
		g.both("dead", "list", "emails", "--error", "no route", "--limit", "1")
		g.both("dead", "redrive", "emails", "--error", "no route", "--dry-run")
		g.run("dead", "redrive", "emails", "--error", "no route", "--limit", "1", "--text")
		g.run("dead", "redrive", "emails", "--error", "no route", "--over", "10ms", "--json")
		g.run("dead", "redrive", "emails", "@dead-1", "--text")
		g.run("dead", "redrive", "emails", "@dead-2", "--json")
		g.both("dead", "redrive", "emails", "@dead-1")
		g.run("dead", "delete", "emails", "@dead-5", "@dead-6", "--yes", "--text")
		g.run("dead", "delete", "emails", "@dead-7", "@dead-5", "--yes", "--json")
		g.both("dead", "redrive", "emails", "--fingerprint", "5f1c0d3a9b7e2846", "--over", "1s")
		g.both("dead", "purge", "emails", "--fingerprint", "5f1c0d3a9b7e2846", "--yes")
		g.both("dead", "purge", "emails", "--all", "--dry-run")
		g.both("dead", "purge", "emails", "--all")
		g.run("dead", "purge", "emails", "--kind", "charge", "--limit", "1", "--yes", "--text")
		g.run("dead", "purge", "emails", "--all", "--yes", "--json")
		g.both("dead", "groups", "emails")
		g.both("dead", "list", "emails")
		g.both("dead", "show", "emails", "@dead-1")
		g.run("stats", "emails", "--text")
		g.finish()
	})
}

// A dead job whose unique key another one holds stays dead, which is said.
func TestARefusedRedriveIsNamed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		g := newGolden(r, "refused")
		w, err := pawl.NewWorker(r.client, pawl.WorkerConfig{Queues: pawl.Queues("emails"), Name: "gravedigger"})
		require.NoError(t, err)
		pawl.Handle(w, func(context.Context, *pawl.Job[charge]) error { return pawl.Permanent(fmt.Errorf("declined")) })
		g.call("dead", r.enqueue("emails", "charge", `{"order":7}`, pawl.Unique{Key: "order:7"}))
		stop := r.work(w)
		r.await("emails", func(st pawl.Stats) bool { return st.Dead == 1 })
		stop()
		g.call("holder", r.enqueue("emails", "charge", `{"order":7}`, pawl.Unique{Key: "order:7"}))
		g.both("dead", "redrive", "emails", "@dead")
		g.both("dead", "redrive", "emails", "--all")
		g.both("dead", "redrive", "emails", "--all", "--dry-run")
		g.finish()
	})
}

func TestJobsAndQueuesAreRemoved(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		g := newGolden(r, "remove")
		for i := range 5 {
			r.enqueue("emails", "welcome", `{}`, pawl.Header{Key: "n", Value: fmt.Sprint(i)})
		}
		r.enqueue("emails", "welcome", `{}`, pawl.Delay(time.Hour))
		r.enqueue("reports", "digest", `{}`)
		g.both("purge", "emails", "--state", "ready", "--dry-run")
		g.both("purge", "emails", "--state", "ready")
		g.run("purge", "emails", "--state", "ready", "--header", "n=3", "--yes", "--text")
		g.run("purge", "emails", "--state", "ready", "--limit", "2", "--yes", "--json")
		g.run("purge", "emails", "--state", "delayed", "--yes", "--text")
		g.both("purge", "emails", "--state", "running", "--yes")
		g.both("purge", "emails")
		g.both("destroy", "emails")
		g.run("destroy", "emails", "--yes", "--text")
		g.run("destroy", "reports", "--yes", "--json")
		g.both("destroy", "emails", "--yes")
		g.both("queues")
		g.finish()
	})
}

func TestSchedulesAreTriggeredPausedAndRemoved(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		g := newGolden(r, "schedules")
		every := pawl.Every(1000*time.Hour + 30*time.Minute)
		require.NoError(t, r.client.Queue("reports").Schedule(t.Context(),
			pawl.Schedule{ID: "nightly", When: every, Args: charge{1}},
			pawl.Schedule{ID: "weekly", When: every, Args: charge{2}, Overlap: pawl.OverlapSkip}))
		g.both("schedules", "list", "reports")
		g.both("schedules", "trigger", "reports", "nightly")
		g.both("schedules", "trigger", "reports", "weekly")
		g.both("schedules", "pause", "reports", "nightly")
		g.both("schedules", "list", "reports")
		g.both("schedules", "resume", "reports", "nightly")
		g.both("schedules", "remove", "reports", "nightly")
		g.run("schedules", "remove", "reports", "nightly", "--yes", "--text")
		g.run("schedules", "remove", "reports", "weekly", "--yes", "--json")
		for _, verb := range []string{"trigger", "pause", "resume", "remove --yes"} {
			g.both(append([]string{"schedules"}, append(words(verb), "reports", "nightly")...)...)
		}
		g.both("schedules", "list", "reports")
		g.finish()
	})
}

func TestEnqueue(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		g := newGolden(r, "enqueue")
		g.both("enqueue", "emails", "--kind", "welcome", "--payload", `{"user_id":42}`)
		g.both("enqueue", "emails", "--kind", "digest", "--payload", "{}", "--unique-key", "digest:42")
		g.run("enqueue", "emails", "--kind", "all", "--payload", "[1]", "--delay", "5h30m", "--priority", "3", "--header", "tenant=acme", "--header", "trace=0=1",
			"--idempotency-key", "i:1", "--expire-in", "1d", "--retain", "1h", "--max-attempts", "2", "--run-timeout", "1m", "--text")
		g.run("enqueue", "emails", "--kind", "late", "--payload", "1", "--at", "2999-12-24T08:00:00Z", "--text")
		g.run("jobs", "emails", "--json")
		g.both("enqueue", "emails", "--kind", "welcome", "--payload", "{")
		g.run("enqueue", "emails", "--kind", "welcome", "--payload", "{", "--raw", "--text")
		g.both("enqueue", "nobody", "--kind", "welcome", "--payload", "{}", "--existing")
		g.both("enqueue", "emails", "--kind", "welcome")
		g.both("enqueue", "emails", "--payload", "{}")
		g.both("enqueue", "emails", "--kind", "welcome", "--payload", "{}", "--priority", "10")
		g.both("enqueue", "not a name", "--kind", "welcome", "--payload", "{}")
		g.finish()
	})
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	r := newRig(t) // miniredis has no INFO to speak of
	g := newGolden(r, "doctor")
	g.both("doctor")
	require.Equal(t, map[int]bool{exitFound: true}, g.codes)
	g.finish()
}

// What is asked of a queue, a job or a schedule that is not there, and of what is no name
// and no id, has an error that names it, and no empty table.
func TestWhatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		g := newGolden(r, "missing")
		const id = "01977420-dc7b-71c8-8001-23456789abcd"
		g.both("queues")
		g.both("stats")
		g.both("workers")
		g.both("check", "--all")
		for _, line := range []string{
			"stats nobody", "workers nobody", "jobs nobody", "job nobody " + id, "dead list nobody", "dead groups nobody",
			"dead show nobody " + id, "dead redrive nobody " + id, "dead redrive nobody --all", "dead delete --yes nobody " + id,
			"dead purge nobody --all --yes", "cancel --yes nobody " + id, "run-now nobody " + id, "reschedule nobody --in 1h " + id,
			"schedules list nobody", "schedules trigger nobody x", "purge nobody --state ready --yes", "destroy nobody --yes", "check nobody",
		} {
			g.run(append(words(line), "--text")...)
			g.run(append(words(line), "--json")...)
		}
		require.Equal(t, map[int]bool{exitNotFound: true}, g.codes)
		r.enqueue("emails", "welcome", "{}")
		for _, line := range []string{"job emails " + id, "dead show emails " + id, "workers emails"} {
			g.both(words(line)...)
		}
		require.Equal(t, map[int]bool{exitNotFound: true}, g.codes)
		g.codes = map[int]bool{}
		for _, line := range []string{"job emails 7", "job emails", "job", "job emails 7 8", "dead show emails 0-1", "jobs emails --state busy",
			"jobs emails --since yesterday", "jobs emails --limit -1", "jobs emails --limit some", "dead list emails --reason bored", "dead redrive emails", "dead purge emails",
			"dead list emails --fingerprint 5f1c0d3a", "dead purge emails --fingerprint xyz", "dead redrive emails --all --kind charge", "dead purge emails --all --reason crashed",
			"dead", "dead bury",
			"stat", "stast", "dead grups", "help sats", "stats --over 3", "dead redrive emails --stop-aftr 3", "dead redrive emails --all --stop-after -1", "stats --json --text", "stats --timeout 0s", "reschedule emails " + id, "pause emails --for -1h",
			"jobs emails --since 1h --until 2h", "dead redrive emails --all " + id, "check", "help nothing"} {
			g.run(words(line)...)
		}
		require.Equal(t, map[int]bool{exitUsage: true}, g.codes)
		g.finish()
	})
}
