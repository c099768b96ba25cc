package pawlsql_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
	"github.com/pawlq/pawl/pawlsql"
)

// childEnv has this test binary be a relay that kills itself.
const childEnv = "PAWLSQL_CHILD"

// suicide is a relay process that is gone, as by kill -9, when it has reached a step
// for the n-th time.
type suicide struct {
	Dialect     pawlsql.Dialect
	Driver, DSN string
	Redis       string
	Step        string
	Nth         int
	Batch       int
}

// child is what this test binary does as a child of itself.
func child() bool {
	text := os.Getenv(childEnv)
	if text == "" {
		return false
	}
	var s suicide
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	if err := s.relay(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return true
}

func (s suicide) relay() error {
	db, err := sql.Open(s.Driver, s.DSN)
	if err != nil {
		return err
	}
	c, err := pawl.New(redis.NewClient(&redis.Options{Addr: s.Redis}), pawl.Config{})
	if err != nil {
		return err
	}
	o, err := pawlsql.NewOutbox(pawlsql.OutboxConfig{Dialect: s.Dialect})
	if err != nil {
		return err
	}
	r, err := o.NewRelay(db, c, pawlsql.RelayConfig{Batch: s.Batch, Idle: 20 * time.Millisecond})
	if err != nil {
		return err
	}
	reached := 0
	r.OnStep(func(name string) {
		if name == s.Step {
			if reached++; reached == s.Nth {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
	})
	return r.Run(context.Background())
}

// start runs the relay; ended is closed when it is gone.
func (s suicide) start(t testing.TB) (ended <-chan struct{}) {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	ended, err = redistest.StartTied(cmd)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // an error means that it has ended
		<-ended
	})
	return ended
}
