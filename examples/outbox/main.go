// Outbox is a shop that stores an order and enqueues its job in one transaction of its
// database, while its processes are killed at the worst moments, and Redis goes away:
// every order is shipped once, and none that was not committed.
//
//	go run ./examples/outbox
//
// It needs nothing but Go, and takes about 5 s. With REDIS_URL set, to redis://…, it
// uses that Redis instead of one of its own, in a namespace that it removes at the end.
//
// To read first: shop.go writes the row, relay.go moves it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/exampleredis"
)

func main() {
	logging.Disable() // go-redis has a line for each connection that is refused
	run := parent
	if len(os.Args) == 3 {
		run = func() error { return child(os.Args[1], os.Args[2]) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pawl outbox:", err)
		os.Exit(1)
	}
}

func parent() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	rdb, namespace, cleanup, err := exampleredis.Open(ctx)
	if err != nil {
		return err
	}
	defer cleanup()
	tmp, err := os.MkdirTemp("", "pawl-outbox-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	wire, err := newCable(ctx, exampleredis.URL(rdb))
	if err != nil {
		return err
	}
	defer wire.cut()

	s := &story{start: time.Now(), wire: wire, processes: map[string]*process{},
		place: place{Namespace: namespace, Database: filepath.Join(tmp, "shop.db"), Redis: wire.url()}}
	defer s.end()
	if err := s.open(ctx, rdb); err != nil {
		return err
	}
	defer func() { _ = s.db.Close() }()
	if err := s.tell(ctx); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("stopped before the end: %w", errors.Join(context.Cause(ctx), err))
		}
		return err
	}
	fmt.Println("\npawl outbox: ok")
	return nil
}

// open makes the database, and what the story looks at it and the queue with. It sees
// Redis without the cable.
func (s *story) open(ctx context.Context, rdb *redis.Client) error {
	db, err := openDatabase(ctx, s.place.Database)
	if err != nil {
		return err
	}
	s.db = db
	o, err := newOutbox()
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE orders (no INTEGER PRIMARY KEY);\n"+o.Schema()); err != nil {
		return err
	}
	client, err := pawl.New(rdb, pawl.Config{Namespace: s.place.Namespace})
	if err != nil {
		return err
	}
	s.queue = client.Queue(queue)
	s.rows, err = newRelay(db, client)
	return err
}
