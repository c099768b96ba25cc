// Signup is a service that answers a burst of 10,000 sign-ups in milliseconds
// each, while their welcome mails wait for a mail server that is slower.
//
//	go run ./examples/signup
//	go run ./examples/signup -users 2000
//
// It needs nothing but Go, and takes some seconds. With REDIS_URL set it uses that
// Redis instead of one of its own, in a namespace that it removes at the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/exampleredis"
)

const (
	connections = 32 // over which the sign-ups come in
	senders     = 32 // mails on their way at once: the mail server allows no more
	mailTime    = 8 * time.Millisecond
)

func main() {
	users := flag.Int("users", 10_000, "how many sign up")
	flag.Parse()
	slog.SetLogLoggerLevel(slog.LevelWarn) // what goes well is in the story
	if err := run(*users); err != nil {
		fmt.Fprintln(os.Stderr, "pawl signup:", err)
		os.Exit(1)
	}
	fmt.Println("pawl signup: ok")
}

func run(users int) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	rdb, namespace, cleanup, err := exampleredis.Open(ctx)
	if err != nil {
		return err
	}
	defer cleanup()
	client, err := pawl.New(rdb, pawl.Config{Namespace: namespace, Logger: slog.Default()})
	if err != nil {
		return err
	}
	d := &demo{
		queue:   client.Queue("emails"),
		mails:   &mailServer{sent: map[string]string{}},
		latency: &latency{},
		burst:   &burst{users: users, answers: map[int]int{}},
		start:   time.Now(),
	}
	err = d.withServiceAndWorker(ctx, client, d.absorb)
	switch {
	case ctx.Err() != nil:
		d.printLeft()
		return fmt.Errorf("stopped before the end: %w", context.Cause(ctx))
	case err != nil:
		return err
	}
	return d.report(ctx)
}

// demo is the whole of it: in production the service, the worker, the mail server
// and those who sign up are on different machines.
type demo struct {
	queue   *pawl.Queue
	mails   *mailServer
	latency *latency
	burst   *burst
	start   time.Time
	top     int64 // the most jobs that were seen to wait
}

// withServiceAndWorker runs both beside do. After it, or once ctx ends, requests
// that came in are answered and mails that were begun are sent.
func (d *demo) withServiceAndWorker(ctx context.Context, client *pawl.Client, do func(ctx context.Context, url string) error) error {
	w, err := pawl.NewWorker(client, pawl.WorkerConfig{Queues: pawl.Queues(d.queue.Name()), Concurrency: senders})
	if err != nil {
		return err
	}
	pawl.Handle(w, d.mails.welcome)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &service{users: newUsers(), emails: d.queue, patience: 2 * time.Second, log: slog.Default()}
	server := &http.Server{Handler: d.latency.measure(s.routes()), ReadHeaderTimeout: 5 * time.Second}

	working, stopWorker := context.WithCancel(ctx)
	ended := make(chan error, 2)
	go func() { ended <- w.Run(working) }()
	go func() {
		err := server.Serve(listener)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		ended <- err
	}()
	err = do(ctx, "http://"+listener.Addr().String()+"/signup")

	// ctx may be over, and the requests that are under way are to be answered.
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err = errors.Join(err, server.Shutdown(grace))
	stopWorker()
	return errors.Join(err, <-ended, <-ended)
}
