package examplefleet

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl/internal/exampleredis"
)

// role is the first argument of a worker.
const role = "worker"

// Worker is whether this process is a worker, and what Start was given for it. To be
// asked before anything else.
func Worker() (args []string, ok bool) {
	if len(os.Args) < 2 || os.Args[1] != role {
		return nil, false
	}
	return os.Args[2:], true
}

// Open gives a worker the Redis of its parent, until stop. The context ends when the
// parent stops this process, and also when the parent is no more.
func Open() (ctx context.Context, rdb *redis.Client, stop func(), err error) {
	opts, err := redis.ParseURL(os.Getenv(exampleredis.Env))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", exampleredis.Env, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // until the process ends: a read of standard input cannot be given up
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	rdb = redis.NewClient(opts)
	return ctx, rdb, func() { cancel(); _ = rdb.Close() }, nil
}

// Tell writes a line to the parent. Once it returns, the line is heard even if this
// process is killed. It is safe for concurrent use.
func Tell(line any) { _ = json.NewEncoder(os.Stdout).Encode(line) }
