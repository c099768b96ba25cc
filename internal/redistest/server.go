package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// RequireEnv names the variable that turns a missing redis-server from a skip
// into a failure; CI sets it.
const RequireEnv = "PAWL_REQUIRE_REDIS"

const (
	skipped      = "SKIPPED: no redis-server on PATH; the real-Redis suite did not run"
	binary       = "redis-server"
	startTimeout = 20 * time.Second
	portTries    = 20
)

// Available reports whether a redis-server can be started here.
func Available() bool {
	_, err := exec.LookPath(binary)
	return err == nil
}

// Server is a redis-server process of one test, in a folder of its own.
type Server struct {
	t    testing.TB
	dir  string
	args []string
	port int
	wire *wire // to its master, of a replica
	// env and clock are of a StartWithClock.
	env   []string
	clock string
	// admin is a client for the rig's own questions.
	admin func() *redis.Client

	mu    sync.Mutex // guards proc and users; held over a start, so that Kill waits for it
	proc  *process
	users map[string][]string // by name, the option of each
}

// Start starts a redis-server on a free loopback port and returns when it is
// ready. It keeps nothing on disk unless args say so; args are given last, so
// they win ("--appendonly", "yes"). Do not change --port, --dir, --logfile or
// --loglevel: readiness is read from the log on standard output.
//
// Where there is no redis-server the test is skipped, or fails if
// PAWL_REQUIRE_REDIS is set. The process ends with the test, and with the test
// process (on Linux), however that ends.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	demand(t)
	return startIn(t, &Server{t: t}, args)
}

// startIn starts s in a folder of its own.
func startIn(t testing.TB, s *Server, args []string) *Server {
	t.Helper()
	s.dir, s.args = t.TempDir(), args
	s.admin = sync.OnceValue(func() *redis.Client { return s.Client(t) })
	var errs []string
	for range portTries {
		s.port = freePort()
		err := s.start(ready)
		if err == nil {
			t.Cleanup(s.Kill)
			return s
		}
		// Most likely another process took the port in between.
		errs = append(errs, err.Error())
		if !strings.Contains(err.Error(), "in use") {
			break
		}
	}
	t.Fatalf("redistest: %s", strings.Join(errs, "\n"))
	return nil
}

// demand skips or fails a test where no server can be started.
func demand(t testing.TB) {
	t.Helper()
	if Available() {
		return
	}
	if os.Getenv(RequireEnv) != "" {
		t.Fatalf("no %s on PATH, and %s is set", binary, RequireEnv)
	}
	shout()
	t.Skip(skipped)
}

// Addr is the server's host:port. It stays the same over a Restart.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// Dir is the server's folder, with its AOF and RDB files if it writes any.
func (s *Server) Dir() string { return s.dir }

// Pid is the id of the running process, or of the last one.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc.cmd.Process.Pid
}

// running reports whether the process has not ended.
func (s *Server) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.proc.exited:
		return false
	default:
		return true
	}
}

// Client returns a client of this server that is closed when t ends. Its pool
// is wide enough for some dozens of blocking workers.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	return clientOf(t, s.Addr())
}

// SetUser gives the server a user with these rules, or other rules to one that it
// has. It outlives a Restart.
func (s *Server) SetUser(t testing.TB, name string, rules ...string) {
	t.Helper()
	words := []any{"acl", "setuser", name}
	line := []string{"--user", name}
	for _, rule := range rules {
		words, line = append(words, rule), append(line, rule)
	}
	if err := s.admin().Do(t.Context(), words...).Err(); err != nil {
		t.Fatalf("redistest: user %s of %s: %v", name, s.Addr(), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == nil {
		s.users = map[string][]string{}
	}
	s.users[name] = line
}

// Kill ends the process with SIGKILL, frozen or not, and waits for its end. It
// does nothing if the process has ended.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proc.kill()
}

// Restart starts the server again on the same port and folder, after a Kill if
// it still runs, and returns when it has loaded its data. It fails the test of
// Start if the server does not come up.
func (s *Server) Restart() { s.restart(ready) }

// RestartLoading is Restart, but returns as soon as the server accepts
// connections, while it may still answer LOADING.
func (s *Server) RestartLoading() { s.restart(listening) }

// Pause freezes the process with SIGSTOP: connections stay open, nothing is
// answered.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.proc.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("redistest: %v to %s: %v", sig, s.Addr(), err)
	}
}

func (s *Server) restart(want phase) {
	s.mu.Lock()
	s.proc.kill()
	s.mu.Unlock()
	if err := s.start(want); err != nil {
		s.t.Fatalf("redistest: restart: %v", err)
	}
}

func (s *Server) start(want phase) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	args := append([]string{
		"--save", "", "--appendonly", "no", "--bind", "127.0.0.1",
		"--port", fmt.Sprint(s.port), "--dir", s.dir,
	}, s.args...)
	for _, user := range s.users {
		args = append(args, user...)
	}
	p, err := startProcess(binary, args, s.env...)
	if err != nil {
		return err
	}
	if err := p.await(want, startTimeout); err != nil {
		p.kill()
		return err
	}
	if err := s.ping(); err != nil {
		p.kill()
		return err
	}
	s.proc = p
	return nil
}

// ping makes sure that the process answers; an error reply (NOAUTH, LOADING)
// is an answer too.
func (s *Server) ping() error {
	conn, err := net.DialTimeout("tcp", s.Addr(), startTimeout)
	if err != nil {
		return fmt.Errorf("dial %s: %w", s.Addr(), err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(startTimeout)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// shout tells once, on the terminal if there is one: go test keeps to itself
// what a passing package prints, and with it the reason of a skip.
var shout = sync.OnceFunc(func() {
	tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, skipped)
		return
	}
	_, _ = fmt.Fprintln(tty, skipped)
	_ = tty.Close()
})

func clientOf(t testing.TB, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 64})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Eventually calls cond until it is true, and fails the test after a while. It
// is for states that give no signal, such as a counter in INFO.
func Eventually(t testing.TB, what string, cond func(context.Context) bool) {
	t.Helper()
	EventuallyWithin(t, startTimeout, what, cond)
}

// EventuallyWithin is Eventually for what takes long.
func EventuallyWithin(t testing.TB, limit time.Duration, what string, cond func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("redistest: never happened: %s", what)
		case <-tick.C:
		}
	}
}
