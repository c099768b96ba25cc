package redistest_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
)

// add counts its calls in the server, so that a test sees what has run.
var add = redis.NewScript(`return redis.call('INCRBY', KEYS[1], ARGV[1])`)

// errBroken stands for any error of a connection: go-redis tells EOF for a
// reset that comes while it looks for push frames.
var errBroken = errors.New("broken")

type rig struct {
	*redistest.Proxy
	server *redistest.Server
	direct *redis.Client // past the proxy
}

func newRig(t *testing.T) rig {
	t.Helper()
	s := redistest.Start(t)
	r := rig{redistest.NewProxy(t, s.Addr()), s, s.Client(t)}
	require.NoError(t, add.Load(t.Context(), r.direct).Err())
	r.Script("add", add.Hash())
	return r
}

// client never resends, so that every call is one call at the proxy.
func (r rig) client(t *testing.T) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: r.Addr(), MaxRetries: -1, ReadTimeout: 10 * time.Second})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func (r rig) call(ctx context.Context, rdb redis.Cmdable) *redis.Cmd {
	return add.EvalSha(ctx, rdb, []string{"n"}, 1)
}

func (r rig) count(t *testing.T) int {
	t.Helper()
	n, err := r.direct.Get(t.Context(), "n").Int()
	if err != redis.Nil {
		require.NoError(t, err)
	}
	return n
}

func TestEachFaultHitsItsCallAtItsPoint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault redistest.Fault
		ran   int
		err   error
	}{
		"drop never runs it":                   {redistest.Drop, 0, errBroken},
		"run and drop the reply":               {redistest.RunDropReply, 1, errBroken},
		"run and reset":                        {redistest.RunReset, 1, errBroken},
		"half a reply":                         {redistest.HalfReply, 1, errBroken},
		"stall is late but answered":           {redistest.Stall(30 * time.Millisecond), 1, nil},
		"delay is late but answered":           {redistest.Delay(30 * time.Millisecond), 1, nil},
		"trickle is slow but answered":         {redistest.Trickle(time.Millisecond), 1, nil},
		"a late call has not run by that time": {redistest.Late, 0, errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			rdb := r.client(t)
			fired := r.On("add", 2, c.fault)
			require.NoError(t, r.call(t.Context(), rdb).Err())
			before := time.Now()
			err := r.call(t.Context(), rdb).Err()
			<-fired
			require.Equal(t, c.err != nil, err != nil, "%v", err)
			if strings.HasPrefix(name, "stall") || strings.HasPrefix(name, "delay") {
				require.GreaterOrEqual(t, time.Since(before), 30*time.Millisecond)
			}
			require.Equal(t, 1+c.ran, r.count(t))
			require.NoError(t, r.call(t.Context(), rdb).Err(), "the third call has no fault")
			require.Equal(t, 3, r.Calls("add"))
			require.Equal(t, 2+c.ran, r.count(t))
		})
	}
}

func TestARefusalTakesTheCallsPlaceAmongTheReplies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.On("add", 2, redistest.Refuse("LOADING for a while"))
	rdb := r.client(t)
	pipe := rdb.Pipeline()
	var cmds []*redis.Cmd
	for range 3 {
		cmds = append(cmds, r.call(t.Context(), pipe))
	}
	_, _ = pipe.Exec(t.Context())
	require.EqualValues(t, 1, cmds[0].Val())
	require.EqualError(t, cmds[1].Err(), "LOADING for a while")
	require.EqualValues(t, 2, cmds[2].Val(), "it did not run")
}

func TestAHeldReplyLeavesTheConnectionOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fired := r.On("add", 1, redistest.RunDropReplyAndHold)
	conn, replies := r.dial(t)
	write(t, conn, "INCR n\r\nEVALSHA "+add.Hash()+" 1 n 1\r\nINCR n\r\n")
	<-fired
	require.Equal(t, ":1\r\n", line(t, replies))
	redistest.Eventually(t, "the command behind it runs", func(context.Context) bool { return r.count(t) == 3 })
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := replies.ReadByte()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestALateCallArrivesWhenReleased(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rdb := r.client(t)
	r.On("add", 1, redistest.Late)
	require.Error(t, r.call(t.Context(), rdb).Err())
	require.NoError(t, r.call(t.Context(), rdb).Err())
	r.CutAll() // does not reach it
	require.Equal(t, 1, r.count(t))
	require.Equal(t, []string{":2\r\n"}, r.Release())
	require.Equal(t, 2, r.count(t))
	require.Empty(t, r.Release())
}

func TestALateCallIsLostWithItsServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.On("add", 1, redistest.Late)
	require.Error(t, r.call(t.Context(), r.client(t)).Err())
	r.server.Kill()
	require.Equal(t, []string{""}, r.Release())
}

func TestAFaultLetsTheRepliesBeforeItThrough(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault redistest.Fault
		ran   int
		then  string
	}{
		"drop":           {redistest.Drop, 2, ""},
		"run, no reply":  {redistest.RunDropReply, 3, ""},
		"half the reply": {redistest.HalfReply, 3, ":3"},
		"late":           {redistest.Late, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for k := 3; k <= 60; k += 3 { // only three of each five arrive
				require.NoError(t, r.direct.Del(t.Context(), "n").Err())
				fired := r.On("add", k, c.fault)
				conn, replies := r.dial(t)
				write(t, conn, strings.Repeat("EVALSHA "+add.Hash()+" 1 n 1\r\n", 5))
				got, err := io.ReadAll(replies)
				<-fired
				require.Equal(t, ":1\r\n:2\r\n"+c.then, string(got), "%v", err)
				require.Equal(t, c.ran, r.count(t))
			}
		})
	}
}

func TestAResetIsNoPlainEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for k, fault := range []redistest.Fault{redistest.RunReset, redistest.RunDropReply} {
		r.On("incr", 1+k, fault)
		conn, replies := r.dial(t)
		write(t, conn, "INCR n\r\n")
		_, err := replies.ReadByte()
		require.ErrorIs(t, err, []error{syscall.ECONNRESET, io.EOF}[k])
	}
	require.Equal(t, 2, r.count(t))
}

func TestCallsAreKnownByScriptAndByCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rdb := r.client(t)
	seen := r.Seen("add", 2)
	require.NoError(t, r.call(t.Context(), rdb).Err())
	select {
	case <-seen:
		t.Fatal("seen before the second call")
	default:
	}
	require.NoError(t, add.Eval(t.Context(), rdb, []string{"n"}, 1).Err())
	<-seen
	<-r.Seen("add", 1)
	require.NoError(t, rdb.Eval(t.Context(), `return 1`, nil).Err())
	require.NoError(t, rdb.Incr(t.Context(), "n").Err())
	require.Equal(t, 2, r.Calls("add"))
	require.Equal(t, 1, r.Calls("eval"))
	require.Equal(t, 1, r.Calls("incr"))
	require.Greater(t, r.Calls(redistest.Any), 4, "the handshake counts too")

	fired := r.On("incr", 2, redistest.Drop)
	require.Error(t, rdb.Incr(t.Context(), "n").Err())
	<-fired
	r.On(redistest.Any, 0, redistest.Drop)
	require.Error(t, rdb.Ping(t.Context()).Err())
	r.Clear()
	require.NoError(t, rdb.Ping(t.Context()).Err())
}

func TestCutAllResetsWhatIsOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rdb := r.client(t)
	failed := make(chan error)
	seen := r.Seen("blpop", 1)
	go func() { failed <- rdb.BLPop(t.Context(), 0, "empty").Err() }()
	<-seen
	r.CutAll()
	require.Error(t, <-failed)
	require.NoError(t, rdb.Ping(t.Context()).Err())
}

func TestABlackHoleAnswersNothingAndRunsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rdb := r.client(t)
	blocked := make(chan error)
	seen := r.Seen("blpop", 1)
	go func() { blocked <- rdb.BLPop(t.Context(), 0, "wake").Err() }()
	<-seen
	r.Blackhole(true)
	require.NoError(t, r.direct.RPush(t.Context(), "wake", "token").Err())
	redistest.Eventually(t, "the blocked call takes the token", func(ctx context.Context) bool {
		return r.direct.LLen(ctx, "wake").Val() == 0
	})
	conn, replies := r.dial(t)
	arrived := r.Seen("incr", 1)
	write(t, conn, "INCR n\r\n")
	<-arrived
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err := replies.ReadByte()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	r.Blackhole(false)
	require.Error(t, <-blocked, "its reply went into the hole")
	require.NoError(t, conn.SetReadDeadline(time.Time{}))
	_, err = replies.ReadByte()
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.Zero(t, r.count(t))
	require.NoError(t, r.call(t.Context(), rdb).Err())
}

func TestTheProxyOutlivesItsServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rdb := r.client(t)
	require.NoError(t, rdb.Ping(t.Context()).Err())
	r.server.Kill()
	require.Error(t, rdb.Ping(t.Context()).Err())
	require.Error(t, rdb.Ping(t.Context()).Err())
	r.server.Restart()
	require.NoError(t, rdb.Ping(t.Context()).Err())
}

func (r rig) dial(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", r.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn, bufio.NewReader(conn)
}

func write(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(conn, text)
	require.NoError(t, err)
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	s, err := r.ReadString('\n')
	require.NoError(t, err)
	return s
}
