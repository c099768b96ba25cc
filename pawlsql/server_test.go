package pawlsql_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl/internal/redistest"
	"github.com/pawlq/pawl/pawlsql"
)

// server is a PostgreSQL or MariaDB process of ours, in a folder of its own, behind
// a socket in that folder: it takes no port, and meets no other.
type server struct {
	dialect pawlsql.Dialect
	dir     string
	admin   string // the database that is always there
	who     *syscall.Credential
	command func() *exec.Cmd

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited <-chan struct{}
	log    bytes.Buffer
}

// The servers that tests share; those that a test breaks are its own.
var shared = map[pawlsql.Dialect]func() (*server, error){
	pawlsql.Postgres: sync.OnceValues(func() (*server, error) { return startServer(pawlsql.Postgres) }),
	pawlsql.MySQL:    sync.OnceValues(func() (*server, error) { return startServer(pawlsql.MySQL) }),
}

var (
	startedMu sync.Mutex
	started   []*server
)

func sharedServer(t testing.TB, dialect pawlsql.Dialect) *server {
	t.Helper()
	available(t, dialect)
	s, err := shared[dialect]()
	require.NoError(t, err)
	return s
}

func ownServer(t testing.TB, dialect pawlsql.Dialect) *server {
	t.Helper()
	available(t, dialect)
	s, err := startServer(dialect)
	require.NoError(t, err)
	t.Cleanup(s.remove)
	return s
}

func available(t testing.TB, dialect pawlsql.Dialect) {
	t.Helper()
	if dialect == pawlsql.Postgres && postgresBin() == "" {
		demand(t, "no initdb of PostgreSQL")
	}
	if dialect == pawlsql.MySQL && mariadbd() == "" {
		demand(t, "no mariadbd")
	}
}

func stopServers() {
	startedMu.Lock()
	defer startedMu.Unlock()
	for _, s := range started {
		s.remove()
	}
}

func startServer(dialect pawlsql.Dialect) (s *server, err error) {
	s = &server{dialect: dialect}
	if s.dir, err = os.MkdirTemp("", "pawlsql-"); err != nil {
		return nil, err
	}
	startedMu.Lock()
	started = append(started, s)
	startedMu.Unlock()
	if dialect == pawlsql.Postgres {
		err = s.initPostgres()
	} else {
		err = s.initMariaDB()
	}
	if err == nil {
		err = s.start()
	}
	return s, err
}

func (s *server) initPostgres() (err error) {
	s.admin = "postgres"
	if s.who, err = postgresUser(); err != nil {
		return err
	}
	if s.who != nil {
		if err := os.Chown(s.dir, int(s.who.Uid), int(s.who.Gid)); err != nil {
			return err
		}
	}
	data := filepath.Join(s.dir, "data")
	init := exec.Command(filepath.Join(postgresBin(), "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	init.SysProcAttr, init.Dir = &syscall.SysProcAttr{Credential: s.who}, s.dir
	if out, err := init.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	s.command = func() *exec.Cmd {
		// Nothing is lost when its processes are killed, and no test pulls the plug.
		return exec.Command(filepath.Join(postgresBin(), "postgres"), "-D", data, "-c", "listen_addresses=", "-c", "fsync=off",
			"-c", "unix_socket_directories="+s.dir, "-c", "max_connections=400", "-c", "shared_buffers=64MB")
	}
	return nil
}

func (s *server) initMariaDB() error {
	data := filepath.Join(s.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	s.command = func() *exec.Cmd {
		args := []string{"--no-defaults", "--datadir=" + data, "--socket=" + filepath.Join(s.dir, "my.sock"), "--skip-networking",
			"--skip-grant-tables", "--max-connections=400", "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M"}
		if os.Getuid() == 0 {
			args = append(args, "--user=root")
		}
		return exec.Command(mariadbd(), args...)
	}
	return nil
}

func (s *server) driver() string {
	if s.dialect == pawlsql.Postgres {
		return "pgx"
	}
	return "mysql"
}

func (s *server) dsn(database string) string {
	if s.dialect == pawlsql.Postgres {
		return "postgres:///" + database + "?user=postgres&host=" + escape(s.dir)
	}
	return "root@unix(" + filepath.Join(s.dir, "my.sock") + ")/" + database
}

// start returns once the server answers.
func (s *server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd = s.command()
	s.cmd.SysProcAttr, s.cmd.Dir = &syscall.SysProcAttr{Credential: s.who}, s.dir
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.WaitDelay = time.Second
	var err error
	if s.exited, err = redistest.StartTied(s.cmd); err != nil {
		return err
	}
	db, err := sql.Open(s.driver(), s.dsn(s.admin))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	deadline, tick := time.After(30*time.Second), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for db.Ping() != nil {
		select {
		case <-s.exited:
			return fmt.Errorf("%s ended at its start: %s", s.cmd.Path, s.log.Bytes())
		case <-deadline:
			return errors.New(s.cmd.Path + " is not up in 30 s")
		case <-tick.C:
		}
	}
	return nil
}

// kill ends the server at once, as kill -9 does. PostgreSQL's sessions end with
// their parent; SIGQUIT is its word for that, and needs no time for shared memory to
// be found free again.
func (s *server) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	sig := syscall.SIGKILL
	if s.dialect == pawlsql.Postgres {
		sig = syscall.SIGQUIT
	}
	_ = s.cmd.Process.Signal(sig) // an error means that it has ended
	<-s.exited
}

func (s *server) remove() {
	s.kill()
	_ = os.RemoveAll(s.dir)
}

// postgresBin is the folder of the newest PostgreSQL that is installed, or "".
func postgresBin() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	newest, version := "", 0
	for _, path := range found {
		if v, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))); v > version {
			newest, version = path, v
		}
	}
	if newest == "" {
		if path, err := exec.LookPath("initdb"); err == nil {
			newest, _ = filepath.EvalSymlinks(path)
		}
	}
	if newest == "" {
		return ""
	}
	return filepath.Dir(newest)
}

func mariadbd() string {
	for _, name := range []string{"mariadbd", "/usr/sbin/mariadbd"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// postgresUser is who runs the server where this process is root, as which
// PostgreSQL does not run; nil: this user.
func postgresUser() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root: %w", err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
}
