package main

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// everyCommand is a call of each command that needs Redis.
var everyCommand = []string{
	"stats", "stats emails", "queues", "workers", "jobs emails", "job emails " + someID,
	"dead list emails", "dead groups emails", "dead show emails " + someID, "dead redrive emails --all", "dead redrive emails " + someID,
	"dead redrive emails " + someID + " --payload-file - --raw",
	"dead delete emails --yes " + someID, "dead purge emails --all --yes", "pause emails", "resume emails",
	"cancel emails --yes " + someID, "run-now emails " + someID, "reschedule emails --in 1h " + someID,
	"schedules list emails", "schedules trigger emails x", "schedules pause emails x", "schedules resume emails x",
	"schedules remove emails x --yes", "check emails", "check --all", "purge emails --state ready --yes", "destroy emails --yes", "doctor",
	"enqueue emails --kind welcome --payload {}",
}

const someID = "01977420-dc7b-71c8-8001-23456789abcd"

// A Redis that is not there, one that does not answer and one that answers as something
// else: one line, one code, and no longer than the timeout.
func TestEveryCommandSaysThatRedisIsAway(t *testing.T) {
	t.Parallel()
	silent := redistest.Start(t)
	silent.Pause()
	t.Cleanup(silent.Resume)
	for name, c := range map[string]struct{ addr, timeout, says string }{
		"refused": {"127.0.0.1:1", "30s", "pawl: cannot reach Redis at 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused\n"},
		"silent":  {silent.Addr(), "100ms", "pawl: no answer from Redis at " + silent.Addr() + " within 100ms\n"},
		"closes":  {hangUp(t), "30s", "cannot reach Redis at "},
	} {
		for _, line := range everyCommand {
			t.Run(name+" "+line, func(t *testing.T) {
				t.Parallel()
				begun := time.Now()
				got := call(t.Context(), append(words(line), "--timeout", c.timeout), env("REDIS_URL", "redis://"+c.addr))
				require.Equal(t, exitAway, got.code, got.err)
				require.Empty(t, got.out)
				require.Contains(t, got.err, c.says)
				require.Equal(t, 1, strings.Count(got.err, "\n"), got.err)
				require.Less(t, time.Since(begun), 5*time.Second)
			})
		}
	}
}

// hangUp accepts connections and closes them.
func hangUp(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// The connection works at first and is then silent: what only looks is away, and of what
// changes something nobody knows.
func TestRedisGoesAwayInTheMiddle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.enqueue("emails", "welcome", "{}", pawl.Delay(time.Hour)).String()
	for line, code := range map[string]int{
		"stats": exitAway, "jobs emails --state delayed": exitAway, "job emails " + id: exitAway, "dead groups emails": exitAway,
		"check emails": exitAway, "queues": exitAway, "workers": exitAway, "doctor": exitAway,
		"pause emails": exitUnconfirmed, "enqueue emails --kind welcome --payload {}": exitUnconfirmed, "run-now emails " + id: exitUnconfirmed,
		"schedules list emails": exitAway,
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, r.addr)
			for _, name := range []string{"evalsha", "eval", "smembers", "hscan", "scan", "xrevrange", "exists", "info"} {
				proxy.On(name, 0, redistest.RunDropReplyAndHold)
			}
			if code == exitUnconfirmed && strings.HasPrefix(line, "run-now") { // its reads are let through
				proxy = redistest.NewProxy(t, r.addr)
				proxy.On("evalsha", 2, redistest.RunDropReplyAndHold)
				proxy.On("evalsha", 3, redistest.RunDropReplyAndHold)
				proxy.On("evalsha", 4, redistest.RunDropReplyAndHold)
			}
			begun := time.Now()
			got := call(t.Context(), append(words(line), "--timeout", "300ms"), env("REDIS_URL", "redis://"+proxy.Addr()))
			require.Less(t, time.Since(begun), 3*time.Second, "the timeout is 300 ms")
			require.Equal(t, code, got.code, got.err)
			require.Equal(t, 1, strings.Count(got.err, "\n"), got.err)
			require.Contains(t, got.err, proxy.Addr())
		})
	}
}

// The timeout is not for the whole of a command: one whose Redis is slow, but answers,
// goes on for as long as it takes.
func TestASlowRedisIsNotAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, name := range strings.Split("abcdefgh", "") {
		r.enqueue(name, "welcome", "{}")
	}
	proxy := redistest.NewProxy(t, r.addr)
	proxy.On("evalsha", 0, redistest.Delay(100*time.Millisecond))
	begun := time.Now()
	got := call(t.Context(), words("workers --timeout 500ms"), env("REDIS_URL", "redis://"+proxy.Addr()))
	require.Equal(t, exitNotFound, got.code, got.err)
	require.Contains(t, got.err, "no worker")
	require.Greater(t, time.Since(begun), 500*time.Millisecond)
}

// A server that is loading its data, or has lost its master, is away too.
func TestAServerThatIsNotReadyIsAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	proxy := redistest.NewProxy(t, r.addr)
	proxy.On("time", 0, redistest.Refuse("LOADING Redis is loading the dataset in memory"))
	got := call(t.Context(), words("stats --timeout 300ms"), env("REDIS_URL", "redis://"+proxy.Addr()))
	require.Equal(t, exitAway, got.code)
	require.Contains(t, got.err, "LOADING")
}

// A replica answers, and refuses what would change something: what it says is said.
func TestAReplicaIsNamed(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	r := rigAt(t, master.Addr())
	r.enqueue("emails", "welcome", "{}")
	replica := redistest.StartReplica(t, master)
	at := env("REDIS_URL", "redis://"+replica.Addr())
	got := call(t.Context(), words("pause emails --timeout 300ms"), at)
	require.Equal(t, exitAway, got.code)
	require.Contains(t, got.err, "cannot use Redis at "+replica.Addr()+": for 300ms it answered: READONLY")
	require.Equal(t, 1, strings.Count(got.err, "\n"), got.err)
	got = call(t.Context(), words("stats emails"), at)
	require.Zero(t, got.code, "what only looks is answered: %s", got.err)
}

func TestACancelledContextIsSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	got := call(ctx, []string{"stats"}, env("REDIS_URL", "redis://"+r.addr))
	require.Equal(t, exitInterrupted, got.code)
	require.Equal(t, "pawl: interrupted\n", got.err)
}
