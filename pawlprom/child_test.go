package pawlprom_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/redistest"
)

// childEnv has the address of a Redis: this process is a worker, to be killed.
const childEnv = "PAWLPROM_CHILD"

// child serves the queue mail for as long as it lives, if this process is to.
func child() bool {
	addr := os.Getenv(childEnv)
	if addr == "" {
		return false
	}
	client, err := pawl.New(redis.NewClient(&redis.Options{Addr: addr}), pawl.Config{})
	if err != nil {
		panic(err)
	}
	w, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues("mail"), VisibilityTimeout: time.Second})
	if err != nil {
		panic(err)
	}
	pawl.Handle(w, do)
	if err := w.Run(context.Background()); err != nil {
		panic(err)
	}
	return true
}

// startChild is a worker process.
func startChild(t testing.TB, addr string) (kill func()) {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+addr)
	cmd.Stderr = os.Stderr
	exited, err := redistest.StartTied(cmd)
	require.NoError(t, err)
	kill = func() {
		_ = cmd.Process.Kill()
		<-exited
	}
	t.Cleanup(kill)
	return kill
}
