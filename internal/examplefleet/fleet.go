// Package examplefleet gives an example worker processes, which can be killed as
// nothing within one process can: its own program, started again. In them Worker
// says what to do, Open connects to the parent's Redis, and Tell writes to the parent.
package examplefleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/pawlq/pawl/internal/exampleredis"
)

// Fleet is the worker processes of a program, each under a name. R is the type of the
// lines that they tell. Its methods are safe for concurrent use, but not in hear.
type Fleet[R any] struct {
	url  string
	hear func(worker string, line R)

	hearing sync.Mutex // held while hear runs
	mu      sync.Mutex // of what follows
	workers []*process // in the order of their starts
}

type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	heard chan struct{} // closed once all that it wrote has been heard
	err   error         // what was wrong with that; read after heard
}

// New makes a fleet without workers. rdb is what exampleredis.Open gave, and workers use
// the same Redis. Each line of each worker is given to hear, one at a time: the worker
// waits in Tell when many of its lines have not been heard.
func New[R any](rdb *redis.Client, hear func(worker string, line R)) *Fleet[R] {
	return &Fleet[R]{url: exampleredis.URL(rdb), hear: hear}
}

// Start starts a worker, to which Worker will give args. It is killed when ctx ends.
func (f *Fleet[R]) Start(ctx context.Context, name string, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{role}, args...)...)
	cmd.Env = append(os.Environ(), exampleredis.Env+"="+f.url)
	cmd.Stderr = os.Stderr
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &process{name: name, cmd: cmd, stdin: stdin, heard: make(chan struct{})}
	go func() {
		defer close(p.heard)
		p.err = f.listen(name, stdout)
	}()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.workers = append(f.workers, p)
	return nil
}

// listen hears what a worker tells, to its end.
func (f *Fleet[R]) listen(name string, stdout io.Reader) error {
	for lines := json.NewDecoder(stdout); ; {
		var line R
		switch err := lines.Decode(&line); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // the latter if it was killed as it wrote
			return nil
		case err != nil:
			_, _ = io.Copy(io.Discard, stdout) // or it would wait for somebody who reads
			return fmt.Errorf("it wrote what is no line of this fleet: %w", err)
		}
		f.hearing.Lock()
		f.hear(name, line)
		f.hearing.Unlock()
	}
}

// Running is the names of the workers, in the order of their starts, those included
// that have ended by themselves.
func (f *Fleet[R]) Running() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.workers {
		names = append(names, p.name)
	}
	return names
}

// Kill ends workers as a crash does (SIGKILL): they can do nothing about it, nor after
// it. All that they told until then has been heard when it returns.
func (f *Fleet[R]) Kill(names ...string) error {
	return f.end(names, func(p *process) { _ = p.cmd.Process.Kill() }, func(p *process) error {
		_ = p.cmd.Wait() // its error says that it was killed
		return nil
	})
}

// Stop ends workers as a deploy does: the contexts that Open gave them end. It returns
// when they have ended, with their errors.
func (f *Fleet[R]) Stop(names ...string) error {
	return f.end(names, func(p *process) { _ = p.stdin.Close() }, func(p *process) error { return p.cmd.Wait() })
}

// Close kills those that are left. To be deferred.
func (f *Fleet[R]) Close() { _ = f.Kill(f.Running()...) }

// end takes workers from the fleet: all are told before the first is waited for.
func (f *Fleet[R]) end(names []string, tell func(*process), wait func(*process) error) error {
	var errs []error
	var ending []*process
	f.mu.Lock()
	for _, name := range names {
		i := slices.IndexFunc(f.workers, func(p *process) bool { return p.name == name })
		if i < 0 {
			errs = append(errs, fmt.Errorf("worker %s does not run", name))
			continue
		}
		ending = append(ending, f.workers[i])
		f.workers = slices.Delete(f.workers, i, i+1)
	}
	f.mu.Unlock()
	for _, p := range ending {
		tell(p)
	}
	for _, p := range ending {
		<-p.heard // Wait closes the pipe
		if err := errors.Join(p.err, wait(p)); err != nil {
			errs = append(errs, fmt.Errorf("worker %s: %w", p.name, err))
		}
	}
	return errors.Join(errs...)
}
