// Command pawl looks after the queues of pawl from a shell. Its manual is its help:
//
//	go install github.com/pawlq/pawl/cmd/pawl@latest
//	pawl help
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := interruptible()
	code := run(ctx, os.Args[1:], system())
	stop()
	os.Exit(code)
}

// interruptible is a context that the first Ctrl-C or SIGTERM ends, so that a command can
// say what it has done. A second one ends the process, whatever it does.
func interruptible() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
			signal.Stop(signals)
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}
