// Ops is a worker as it stands in production: with metrics for Prometheus, /healthz and
// /readyz, a canary, and an end that loses nothing. It serves until it is interrupted.
//
//	go run ./examples/ops            # until Ctrl-C
//	go run ./examples/ops -for 5s    # and then as if told to stop
//
// It needs nothing but Go. With REDIS_URL set it uses that Redis instead of one of its own,
// in a namespace that it removes at the end.
//
// To read first: serve.go is what a service of yours would take from here.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/exampleredis"
	"github.com/pawlq/pawl/pawlprom"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "where to serve metrics and health; port 0: a free one")
	length := flag.Duration("for", 0, "how long to serve; 0: until it is interrupted")
	flag.Parse()
	if err := run(*addr, *length); err != nil {
		fmt.Fprintln(os.Stderr, "pawl ops:", err)
		os.Exit(1)
	}
	fmt.Println("\npawl ops: ok")
}

func run(addr string, length time.Duration) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, length)
		defer cancel()
	}
	rdb, namespace, cleanup, err := exampleredis.Open(ctx)
	if err != nil {
		return err
	}
	defer cleanup()

	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	// region ops-client
	registry := prometheus.NewRegistry()
	metrics, err := pawlprom.NewMetrics(registry) // of this process: its runs
	if err != nil {
		return err
	}
	client, err := pawl.New(rdb, pawl.Config{
		Namespace: namespace,
		Logger:    log,
		Hooks:     []pawl.Hook{metrics},
	})
	if err != nil {
		return err
	}
	// Of all processes: the queues. One process of a namespace is enough.
	if err := registry.Register(pawlprom.NewCollector(client)); err != nil {
		return err
	}
	// endregion

	worker, err := newWorker(client)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	tell(listener.Addr().String(), rdb.Options().Addr, namespace)
	if err := client.Queue(queue).Canary(ctx, time.Minute); err != nil {
		return errors.Join(err, listener.Close())
	}
	var producing sync.WaitGroup
	producing.Go(func() { produce(ctx, client.Queue(queue), log) })
	defer producing.Wait()
	return serve(ctx, worker, routes(worker, registry), listener)
}

// tell says where to look.
func tell(addr, redis, namespace string) {
	from := "the same REDIS_URL"
	if os.Getenv(exampleredis.Env) == "" {
		from = "REDIS_URL=redis://" + redis
	}
	fmt.Printf(`A worker serves the queue %q. Look at it from another shell:

  curl http://%[2]s/metrics    what Prometheus would scrape
  curl http://%[2]s/readyz     does it reach Redis? 503 when there was no answer for 10 s
  curl http://%[2]s/healthz    does the process answer?

and with %[3]s:

  go run ./cmd/pawl stats --watch --namespace %[4]s

Each tenth job fails for good, so that there is something to see:

  go run ./cmd/pawl dead groups %[1]s --namespace %[4]s

Alerts, what each means and what to do: docs/monitoring.md. Ctrl-C ends it.
`, queue, addr, from, namespace)
}
