package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// place is what a child process is told at its start.
type place struct {
	Namespace, Database, Redis string

	First, Last int    // a shop's orders
	DieAt       string // where a shop waits to be killed with its last order
	DieAfter    int    // jobs, after which a relay does; 0: never
}

// child is a process of the shop or of a relay. It stops when the parent closes its
// standard input, and thus also when the parent is no more.
func child(role, text string) error {
	var p place
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
		if p.DieAt != "" || p.DieAfter > 0 {
			os.Exit(1) // it waits, to be killed by a parent that is gone
		}
	}()
	run := runShop
	if role == "relay" {
		run = runRelay
	}
	err := run(ctx, p)
	if ctx.Err() != nil {
		return nil // it was stopped, perhaps as it began, in whatever words a driver says so
	}
	return err
}

// tell writes a line to the parent.
func tell(what string) { fmt.Println(what) }

// process is a child, as its parent sees it.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	said  chan string
}

// launch starts this program again, as a child.
func launch(ctx context.Context, role string, p place) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, role, string(text))
	cmd.Stderr = os.Stderr
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	child := &process{cmd: cmd, stdin: stdin, said: make(chan string, 16)}
	go func() {
		defer close(child.said)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			child.said <- lines.Text()
		}
	}()
	return child, nil
}

// await returns once the process has said it.
func (p *process) await(ctx context.Context, what string) error {
	for {
		select {
		case said, ok := <-p.said:
			if !ok {
				return fmt.Errorf("a process ended before it said %q", what)
			}
			if said == what {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("waiting for a process to say %q: %w", what, context.Cause(ctx))
		}
	}
}

// kill ends it as a crash does: it can do nothing about it, nor after it.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // its error says that it was killed
}

// stop ends it as a deploy does, and waits until it has.
func (p *process) stop() error {
	_ = p.stdin.Close()
	return p.cmd.Wait()
}
