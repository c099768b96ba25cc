package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// running is a call under way.
type running struct {
	out, err *lockedBuffer
	stop     context.CancelCauseFunc
	done     chan int
}

// begin starts a command, which stop interrupts.
func (r *rig) begin(args []string, with ...func(*world)) *running {
	ctx, cancel := context.WithCancelCause(r.t.Context())
	c := &running{out: &lockedBuffer{}, err: &lockedBuffer{}, stop: cancel, done: make(chan int, 1)}
	with = append([]func(*world){env("REDIS_URL", "redis://"+r.addr)}, with...)
	go func() {
		c.done <- call(ctx, args, append(with, func(w *world) { w.out, w.err = c.out, c.err })...).code
	}()
	return c
}

// A redrive that takes long says how far it is, and after Ctrl-C what was done; the same
// command does the rest.
func TestARedriveShowsItsProgressAndIsInterrupted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const n = 40
	errs := make([]string, n)
	for i := range errs {
		errs[i] = "declined"
	}
	r.bury("emails", "charge", errs...)
	c := r.begin(words("dead redrive emails --all --over 1h --json"), terminal)
	r.eventually("the progress", func() bool { return strings.Count(c.err.String(), "1 of 40 moved") > 2 }) // its answer has come by then
	c.stop(errInterrupted)
	require.Equal(t, exitInterrupted, <-c.done)
	require.Regexp(t, `redriving dead jobs of emails: 1 of 40 moved, \d+s of 1h`, c.err.String())
	require.Regexp(t, `pawl: interrupted: .*the others are dead still; the same command goes on\n`, c.err.String())
	require.True(t, strings.Contains(c.err.String(), "\r\x1b[K"), "the line of the progress is wiped")
	var report redriveLine
	require.NoError(t, json.Unmarshal([]byte(c.out.String()), &report))
	if report.Moved != 1 { // the counter was seen before the answer
		require.Zero(t, report.Moved)
		require.Contains(t, c.err.String(), "may have been moved too")
	}
	require.False(t, report.Complete)

	got := r.pawl(words("dead redrive emails --all --text"))
	require.Zero(t, got.code, got.err)
	require.Equal(t, "39 jobs moved\n", got.out)
}

// Into a file progress is lines, now and then, without a control character.
func TestProgressIntoAFileIsLines(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bury("emails", "charge", "declined", "declined")
	c := r.begin(words("dead redrive emails --all --over 1h"), func(w *world) { w.lines = time.Millisecond })
	r.eventually("the progress", func() bool { return strings.Count(c.err.String(), "1 of 2 moved") > 2 })
	c.stop(errInterrupted)
	require.Equal(t, exitInterrupted, <-c.done)
	requireHarmless(t, c.err.String(), "progress")
	require.Regexp(t, regexp.MustCompile(`(?m)^pawl: redriving dead jobs of emails: 1 of 2 moved, \d+s of 1h$`), c.err.String())
}

// A redrive whose jobs die again is stopped: no error, and a code of its own.
func TestARedriveIsStoppedWhenJobsDieAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.bury("emails", "charge", "declined", "declined", "declined", "declined", "declined")
	w, err := pawl.NewWorker(r.client, pawl.WorkerConfig{Queues: pawl.Queues("emails")})
	require.NoError(t, err)
	pawl.Handle(w, func(context.Context, *pawl.Job[charge]) error { return pawl.Permanent(fmt.Errorf("declined again")) })
	r.work(w)
	got := r.pawl(words("dead redrive emails --all --stop-after 2 --json"))
	require.Equal(t, exitFound, got.code, got.err)
	var report redriveLine
	require.NoError(t, json.Unmarshal([]byte(got.out), &report))
	require.True(t, report.Stopped)
	require.False(t, report.Complete)
	require.Equal(t, 2, report.DiedAgain)
	require.Less(t, report.Moved, 5)
	got = r.pawl(words("dead redrive emails --all --stop-after 2 --text"))
	require.Equal(t, exitFound, got.code, got.err)
	require.Regexp(t, `2 died again: stopped, the rest \([23]\) is dead still\n`, got.out)
}

// A purge is interrupted between two of its steps: what it has removed is said.
func TestAPurgeIsInterrupted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	items := make([]pawl.Item, 2000)
	for i := range items {
		items[i] = pawl.Item{Args: charge{i}}
	}
	_, err := r.client.Queue("emails").EnqueueMany(t.Context(), items)
	require.NoError(t, err)
	proxy := redistest.NewProxy(t, r.addr)
	r.addr = proxy.Addr()
	later := proxy.Seen("evalsha", 9)
	proxy.On("evalsha", 0, redistest.Delay(20*time.Millisecond))
	c := r.begin(words("purge emails --state ready --yes --json"))
	<-later
	c.stop(errInterrupted)
	require.Equal(t, exitInterrupted, <-c.done)
	var said removedLine
	require.NoError(t, json.Unmarshal([]byte(c.out.String()), &said))
	require.False(t, said.Complete)
	st, err := r.client.Queue("emails").Stats(t.Context())
	require.NoError(t, err)
	require.Positive(t, said.Removed)
	require.LessOrEqual(t, said.Removed, 2000-st.Ready)
	require.Contains(t, c.err.String(), "interrupted")

	got := r.pawl(words("purge emails --state ready --yes --text"))
	require.Zero(t, got.code)
	st, err = r.client.Queue("emails").Stats(t.Context())
	require.NoError(t, err)
	require.Zero(t, st.Ready)
}

func TestStatsAreWatched(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.enqueue("emails", "welcome", "{}")
	text := r.begin(words("stats --watch --every 100ms"), terminal)
	lines := r.begin(words("stats emails --watch --every 100ms"))
	r.eventually("three pictures", func() bool {
		return strings.Count(text.out.String(), "\x1b[H\x1b[2JQUEUE") >= 3 && strings.Count(lines.out.String(), "\n") >= 3
	})
	r.enqueue("emails", "welcome", "{}")
	r.eventually("the change", func() bool {
		return strings.Contains(text.out.String(), "emails      2") && strings.Contains(lines.out.String(), `"ready":2`)
	})
	text.stop(errInterrupted)
	lines.stop(errInterrupted)
	require.Equal(t, exitOK, <-text.done, "to end it is what Ctrl-C is for")
	require.Equal(t, exitOK, <-lines.done)
	require.Empty(t, text.err.String()+lines.err.String())
	requireHarmless(t, lines.out.String(), "JSON")
}

// A time that is too short is an error: a mistyped unit would keep the server at work.
func TestStatsAreNotWatchedWithoutAPause(t *testing.T) {
	t.Parallel()
	for _, every := range []string{"1ns", "99ms", "99.999999ms"} {
		got := call(t.Context(), words("stats --watch --every "+every), env("REDIS_URL", "redis://127.0.0.1:1"))
		require.Equal(t, exitUsage, got.code)
		require.Contains(t, got.err, "pawl: --every is "+every+": give 100ms or more\n")
	}
	got := call(t.Context(), words("stats --every 5s"), env("REDIS_URL", "redis://127.0.0.1:1"))
	require.Equal(t, exitUsage, got.code)
	require.Contains(t, got.err, "--watch")
	got = call(t.Context(), words("stats --watch --every 100ms"), env("REDIS_URL", "redis://127.0.0.1:1"))
	require.Equal(t, exitAway, got.code)
}
