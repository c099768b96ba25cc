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

// await prints what the workers report until one of them reports what, which is
// stored in got unless that is nil.
func (f *fleet) await(ctx context.Context, what string, got *report) error {
	for {
		select {
		case r := <-f.reports:
			f.print(r)
			if r.What != what {
				continue
			}
			if got != nil {
				*got = r
			}
			return nil
		case <-ctx.Done():
			return fmt.Errorf("waiting for a worker to report %q: %w", what, context.Cause(ctx))
		}
	}
}

func (f *fleet) print(r report) {
	switch r.What {
	case "ready":
		f.line("worker "+r.Worker, "is ready, pid %d", f.workers[r.Worker].cmd.Process.Pid)
	case "starts":
		f.line("worker "+r.Worker, "starts the job: attempt %d, crashes %d", r.Attempt, r.Crashes)
	case "done":
		f.line("worker "+r.Worker, "has done the job")
	default:
		f.line("worker "+r.Worker, "%s of %d", r.What, steps)
	}
}

func (f *fleet) line(who, format string, args ...any) {
	fmt.Printf("%5d ms  %-8s  %s\n", time.Since(f.start).Milliseconds(), who, fmt.Sprintf(format, args...))
}

// kill ends a worker as a crash does: it can do nothing about it, nor after it.
func (f *fleet) kill(name string) error {
	p := f.workers[name]
	delete(f.workers, name)
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = p.cmd.Wait() // its error says that it was killed
	return nil
}

// stop ends a worker as a deploy does, and waits until it has.
func (f *fleet) stop(name string) error {
	p := f.workers[name]
	if p == nil {
		return fmt.Errorf("worker %s does not run", name)
	}
	delete(f.workers, name)
	_ = p.stdin.Close()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("worker %s: %w", name, err)
	}
	f.line("worker "+name, "was told to stop, and has")
	return nil
}

func (f *fleet) killAll() {
	for name := range f.workers {
		_ = f.kill(name)
	}
}
