// Export is an HTTP service whose answers take a while: a client asks for an export, is
// answered with the id of a job, watches it, and fetches its result. One export fails for
// good, one client gives up and comes back later, and one export is cancelled.
//
//	go run ./examples/export
//
// It needs nothing but Go, and takes about 6 s. With REDIS_URL set it uses that Redis
// instead of one of its own, in a namespace that it removes at the end.
//
// To read first: service.go is the service, export.go what it has done by a worker.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/exampleredis"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pawl export:", err)
		os.Exit(1)
	}
	fmt.Println("\npawl export: ok")
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	rdb, namespace, cleanup, err := exampleredis.Open(ctx)
	if err != nil {
		return err
	}
	defer cleanup()
	journal := newJournal()
	client, err := pawl.New(rdb, pawl.Config{Namespace: namespace, Hooks: []pawl.Hook{journal}})
	if err != nil {
		return err
	}
	s := &service{queue: client.Queue("exports"), journal: journal}
	err = withWorker(ctx, client, func() error {
		return withServer(s.routes(), func(url string) error {
			return (&story{client: &browser{url: url, journal: journal}, queue: s.queue}).tell(ctx)
		})
	})
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("stopped before the end: %w", errors.Join(context.Cause(ctx), err))
	}
	return err
}

// withWorker runs a worker beside do. In production it is another process than the server.
func withWorker(ctx context.Context, client *pawl.Client, do func() error) error {
	w, err := pawl.NewWorker(client, pawl.WorkerConfig{
		Queues: pawl.Queues("exports"),
		// A handler hears within a third of it that its job was cancelled. The default of
		// 30 s would do in production too, but this is to end soon.
		VisibilityTimeout: time.Second,
		DrainTimeout:      time.Second,
	})
	if err != nil {
		return err
	}
	pawl.HandleResult(w, export)

	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	err = do()
	stop()
	return errors.Join(err, <-ended)
}

// withServer serves on a free port beside do.
func withServer(h http.Handler, do func(url string) error) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // its error says that it was shut down
	err = do("http://" + listener.Addr().String())
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(ctx))
}
