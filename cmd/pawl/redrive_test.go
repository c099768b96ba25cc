package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// What is sent back to a queue that is paused, or that nobody serves, does not run: it is
// said when it is so, at the start or later.
func TestARedriveSaysThatNothingRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.bury("emails", "charge", "declined", "declined", "declined", "declined", "declined", "declined")
	q := r.client.Queue("emails")
	require.NoError(t, q.Pause(t.Context(), 5*time.Hour+30*time.Minute))
	got := r.pawl(words("dead redrive emails " + ids[0].String()))
	require.Zero(t, got.code)
	require.Equal(t, "pawl: queue emails is paused (ends in 5h): what is sent back waits until: pawl resume emails\n", got.err)
	waiting := r.begin(words("dead redrive emails --all --stop-after 1 --text"), terminal)
	r.eventually("why it waits", func() bool {
		return strings.Contains(waiting.err.String(), "is paused (ends in 5h): what is sent back waits, and so does this command, until: pawl resume emails\n") &&
			strings.Contains(waiting.err.String(), "1 of 5 moved")
	})
	waiting.stop(errInterrupted)
	require.Equal(t, exitInterrupted, <-waiting.done)

	c := r.begin(words("dead redrive emails --kind charge --over 1h --stop-after 5"), terminal)
	r.eventually("the pause", func() bool {
		return strings.Contains(c.err.String(), "pawl: queue emails is paused (ends in 5h): what is sent back waits, and --stop-after sees no deaths, until: pawl resume emails\n")
	})
	require.NoError(t, q.Resume(t.Context()))
	r.eventually("that nobody works", func() bool {
		return strings.Contains(c.err.String(), "pawl: no worker serves queue emails: what is sent back waits, and --stop-after sees no deaths, until one does\n")
	})
	w, err := pawl.NewWorker(r.client, pawl.WorkerConfig{Queues: pawl.Queues("emails")})
	require.NoError(t, err)
	pawl.Handle(w, func(context.Context, *pawl.Job[charge]) error { return pawl.Permanent(fmt.Errorf("declined again")) })
	r.work(w)
	r.eventually("the deaths", func() bool { return strings.Contains(c.err.String(), "1 of 4 moved, 3 died meanwhile, ") })
	c.stop(errInterrupted)
	require.Equal(t, exitInterrupted, <-c.done)
	require.Equal(t, 1, strings.Count(c.err.String(), "is paused"), "it is said once")
}

// A Redis that goes silent in the middle of a redrive: what was moved is said, and how to go on.
func TestARedriveThatRedisLeavesSaysWhatWasMoved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bury("emails", "charge", "declined", "declined", "declined")
	proxy := redistest.NewProxy(t, r.addr)
	proxy.On("time", 3, redistest.RunDropReplyAndHold) // that of the second step
	for n := 4; n < 9; n++ {
		proxy.On("time", n, redistest.RunDropReplyAndHold) // and where it is asked again
	}
	got := call(t.Context(), words("dead redrive emails --all --over 300ms --timeout 500ms --text"), env("REDIS_URL", "redis://"+proxy.Addr()))
	require.Equal(t, exitAway, got.code, got.err)
	require.Equal(t, "1 job moved\n", got.out)
	require.Contains(t, got.err, "pawl: no answer from Redis at "+proxy.Addr()+" within 500ms: what was moved is moved, the others are dead still, and the same command goes on\n")
	rest := r.pawl(words("dead redrive emails --all --text"))
	require.Zero(t, rest.code, rest.err)
	require.Equal(t, "2 jobs moved\n", rest.out)
}

// A step that was not confirmed has a code of its own, which what is said of the rest keeps.
func TestARedriveThatIsNotConfirmedSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	err := (&app{}).cutShort(t.Context(), &session{addr: "redis.internal:6379"}, fmt.Errorf("redrive all emails: %w", pawl.ErrUnconfirmed))
	require.Equal(t, exitUnconfirmed, exitCode(err))
	require.Contains(t, err.Error(), "redis.internal:6379")
	require.Contains(t, err.Error(), "the others are dead still, and the same command goes on")
	require.NoError(t, (&app{}).cutShort(t.Context(), &session{}, nil))
}

// A picture that cannot be had is said, and the next ones are tried.
func TestWatchedStatsGoOnWhenRedisIsBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	r := rigAt(t, s.Addr())
	r.enqueue("emails", "welcome", "{}")
	c := r.begin(words("stats emails --watch --every 100ms --timeout 300ms --json"))
	r.eventually("a picture", func() bool { return strings.Contains(c.out.String(), `"ready":1`) })
	s.Pause()
	r.eventually("the silence", func() bool {
		return strings.Contains(c.err.String(), "pawl: no answer from Redis at "+s.Addr()+" within 300ms; it is tried again every 100ms\n")
	})
	s.Resume()
	r.enqueue("emails", "welcome", "{}")
	r.eventually("another", func() bool { return strings.Contains(c.out.String(), `"ready":2`) })
	c.stop(errInterrupted)
	require.Equal(t, exitOK, <-c.done)

	got := r.pawl(words("stats nobody --watch"))
	require.Equal(t, exitNotFound, got.code, "what was wrong from the beginning stays so")
}

// The question of a purge says how many it is about, and of none it is not asked.
func TestAPurgeIsAskedWithANumber(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bury("emails", "charge", "declined", "no route", "declined")
	r.enqueue("emails", "welcome", "{}")
	for line, says := range map[string]string{
		"dead purge emails --error declined":        "Purge the dead jobs of queue emails, 2 that match?",
		"dead purge emails --limit 2":               "Purge the dead jobs of queue emails, 2 of 3?",
		"dead purge emails --all":                   "Purge the dead jobs of queue emails, all 3?",
		"purge emails --state ready --kind welcome": "Purge the ready jobs of queue emails, 1 that match, of 1?",
	} {
		got := r.pawl(words(line), terminal, typing("n\n"))
		require.Equal(t, exitRefused, got.code, line)
		require.Contains(t, got.err, says)
	}
	for _, line := range []string{"dead purge emails --kind nobody", "purge emails --state ready --kind nobody"} {
		got := r.pawl(words(line), terminal)
		require.Zero(t, got.code, got.err)
		require.Contains(t, got.err, "job matches\n")
		require.NotContains(t, got.err, "?")
	}
}

func TestDeadJobsAreCompleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.bury("emails", "charge", "order 1 declined", "no\troute", "order 2 declined")
	ask := func(args ...string) string { return r.pawl(append([]string{"__complete"}, args...)).out }
	groups, err := r.client.Queue("emails").Dead().Groups(t.Context())
	require.NoError(t, err)
	prints := groups[0].Fingerprint + "\t2 charge: order 2 declined\n" + groups[1].Fingerprint + "\t1 charge: no\\troute\n:36\n"
	for _, command := range []string{"list", "redrive", "purge"} {
		require.Equal(t, prints, ask("dead", command, "emails", "--fingerprint", ""))
	}
	require.Equal(t, ":4\n", ask("dead", "list", "--fingerprint", ""))
	first := ids[0].String()
	for _, command := range []string{"show", "redrive", "delete"} {
		require.Equal(t, first+"\tcharge: order 1 declined\n:4\n", ask("dead", command, "emails", first))
	}
	require.Equal(t, 2, strings.Count(ask("dead", "delete", "emails", first, ""), "charge"), "not one that was given")
	require.Equal(t, ":4\n", ask("dead", "show", "emails", first, ""))
}

// What is said at the end is true of a redrive that ended early too.
func TestTheEndOfARedriveIsSaidAsItWas(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		want     string
		how      pawl.Redrive
		report   pawl.RedriveReport
		total    int64
		complete bool
	}{
		{"2 jobs moved (over 10m)\n", pawl.Redrive{Over: 10 * time.Minute}, pawl.RedriveReport{Matched: 2, Moved: 2}, 2, true},
		{"1 job moved\n", pawl.Redrive{Over: 10 * time.Minute}, pawl.RedriveReport{Matched: 1, Moved: 1}, 2, false},
		{"0 jobs moved\n", pawl.Redrive{Over: 10 * time.Minute}, pawl.RedriveReport{}, 0, true},
		{"2 jobs moved, 1 refused, 2 died again: stopped, the rest (1,234) is dead still\n", pawl.Redrive{Over: 10 * time.Minute, StopAfter: 2},
			pawl.RedriveReport{Matched: 3, Moved: 2, DiedAgain: 2, Stopped: true, Refused: []pawl.RefusedRedrive{{}}}, 1237, false},
		{"2 jobs moved, 2 died again: stopped\n", pawl.Redrive{Over: 10 * time.Minute, StopAfter: 2},
			pawl.RedriveReport{Matched: 2, Moved: 2, DiedAgain: 2, Stopped: true}, 2, false},
		{"2 jobs would be moved\n", pawl.Redrive{Over: time.Minute, StopAfter: 2, DryRun: true}, pawl.RedriveReport{Matched: 2}, 0, true},
	} {
		var out strings.Builder
		a := &app{out: bufio.NewWriter(&out)}
		require.NoError(t, a.redriveText(test.how, test.report, test.total, test.complete))
		require.NoError(t, a.out.Flush())
		first, _, _ := strings.Cut(out.String(), "\n") // behind it come the refused
		require.Equal(t, test.want, first+"\n")
	}
}
