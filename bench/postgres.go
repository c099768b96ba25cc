package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pawlq/pawl/internal/redistest"
)

// postgresSettings favour speed: like a Redis with AOF everysec it may lose the
// last moments to a crash, and no more.
const postgresSettings = "shared_buffers=1GB max_wal_size=8GB synchronous_commit=off max_connections=300"

// postgres is a cluster of our own.
type postgres struct {
	port    int
	version string
	stop    func()
	count   atomic.Int32 // of databases
}

// startPostgres makes a cluster in a folder of dir and starts it. It must not be
// root who does that: then it is the user postgres.
func startPostgres(ctx context.Context, dir string) (*postgres, error) {
	bin := postgresBin()
	if bin == "" {
		return nil, errors.New("no initdb of PostgreSQL")
	}
	who, err := postgresUser()
	if err != nil {
		return nil, err
	}
	home := filepath.Join(dir, "postgres")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	if who != nil {
		if err := os.Chown(home, int(who.Uid), int(who.Gid)); err != nil {
			return nil, err
		}
		// It has to pass through.
		if err := os.Chmod(dir, 0o711); err != nil {
			return nil, err
		}
	}
	data := filepath.Join(home, "data")
	init := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	init.SysProcAttr, init.Dir = &syscall.SysProcAttr{Credential: who}, home
	if out, err := init.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	p := &postgres{port: freePort()}
	args := []string{"-D", data, "-p", strconv.Itoa(p.port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="}
	for setting := range strings.FieldsSeq(postgresSettings) {
		args = append(args, "-c", setting)
	}
	server := exec.Command(filepath.Join(bin, "postgres"), args...)
	server.SysProcAttr, server.Dir = &syscall.SysProcAttr{Credential: who}, home
	exited, err := redistest.StartTied(server)
	if err != nil {
		return nil, err
	}
	p.stop = func() {
		_ = server.Process.Signal(syscall.SIGINT) // "fast": it ends sessions
		select {
		case <-exited:
		case <-time.After(startTimeout):
			_ = server.Process.Kill()
			<-exited
		}
	}
	err = until(ctx, startTimeout, exited, func(ctx context.Context) bool {
		return p.ask(ctx, func(conn *pgx.Conn) error {
			return conn.QueryRow(ctx, "SHOW server_version").Scan(&p.version)
		}) == nil
	})
	if err != nil {
		p.stop()
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return p, nil
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

// postgresUser is who runs the server where this process is root; nil: this user.
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

func (p *postgres) url(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", p.port, database)
}

func (p *postgres) ask(ctx context.Context, question func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, p.url("postgres"))
	if err != nil {
		return err
	}
	return errors.Join(question(conn), conn.Close(ctx))
}

// database makes a database of one run.
func (p *postgres) database(ctx context.Context) (url string, drop func(), err error) {
	name := fmt.Sprintf("bench%d", p.count.Add(1))
	exec := func(ctx context.Context, sql string) error {
		return p.ask(ctx, func(conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, sql)
			return err
		})
	}
	drop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		// One that stays takes up some space until the end.
		_ = exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
	}
	return p.url(name), drop, exec(ctx, "CREATE DATABASE "+name)
}
