package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/pawlq/pawl/internal/exampleredis"
)

// fleet is the worker processes of this program: itself, started again.
type fleet struct {
	start   time.Time
	workers map[string]*process
	reports chan report
}

type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

// launch starts a worker process and listens to it.
func (f *fleet) launch(ctx context.Context, name, url, namespace string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "worker", namespace)
	cmd.Env = append(os.Environ(), exampleredis.Env+"="+url)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if f.workers == nil {
		f.workers = map[string]*process{}
	}
	f.workers[name] = &process{cmd, stdin}
	f.line("worker "+name, "starts, pid %d", cmd.Process.Pid)
	go func() {
		for lines := json.NewDecoder(stdout); ; {
			r := report{}
			if err := lines.Decode(&r); err != nil {
				return // the process has ended
			}
			r.Worker = name
			select {
			case f.reports <- r:
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

// next is what a worker reports next.
func (f *fleet) next(ctx context.Context) (report, error) {
	select {
	case r := <-f.reports:
		return r, nil
	case <-ctx.Done():
		return report{}, fmt.Errorf("waiting for a worker: %w", context.Cause(ctx))
	}
}

func (f *fleet) line(who, format string, args ...any) {
	fmt.Printf("%6d ms  %-8s  %s\n", time.Since(f.start).Milliseconds(), who, fmt.Sprintf(format, args...))
}

// kill ends a worker as a crash does: it can do nothing about it, nor after it.
func (f *fleet) kill(name string) error {
	p := f.workers[name]
	if p == nil {
		return nil // it was killed, and had told before
	}
	delete(f.workers, name)
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = p.cmd.Wait() // its error says that it was killed
	return nil
}

func (f *fleet) killAll() {
	for name := range f.workers {
		_ = f.kill(name)
	}
}
