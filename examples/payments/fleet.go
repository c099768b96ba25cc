package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/pawlq/pawl"
	"github.com/pawlq/pawl/internal/exampleredis"
)

// fleet is the worker processes of this program: itself, started again.
type fleet struct {
	redis string
	job   assignment

	mu      sync.Mutex // of what follows
	workers []*process
	kills   int
	charged int // jobs that a kill hit between charge and entry
	booked  int // between entry and the end of the job
	skipped int // entries, by the inbox
}

type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	at    map[pawl.ID]string // how far its jobs are, once it has ended
	ended chan struct{}      // its output has
}

// killAfter is how long one waits for the next kill.
func killAfter() time.Duration { return 100*time.Millisecond + rand.N(300*time.Millisecond) }

// launch starts a worker process, and listens to it.
func (f *fleet) launch(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	job, err := json.Marshal(f.job)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "worker", string(job))
	cmd.Env = append(os.Environ(), exampleredis.Env+"="+f.redis)
	cmd.Stderr = os.Stderr
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &process{cmd: cmd, stdin: stdin, at: map[pawl.ID]string{}, ended: make(chan struct{})}
	go f.listen(p, stdout)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.workers = append(f.workers, p)
	return nil
}

// listen reads what the process reports, to its end.
func (f *fleet) listen(p *process, stdout io.Reader) {
	defer close(p.ended)
	for lines := json.NewDecoder(stdout); ; {
		var r report
		switch err := lines.Decode(&r); {
		case err != nil:
			return
		case r.What == "ended":
			delete(p.at, r.Job)
		case r.What == "entry skipped":
			f.mu.Lock()
			f.skipped++
			f.mu.Unlock()
		default:
			p.at[r.Job] = r.What
		}
	}
}

// harry starts the processes, kills one after another, and starts a new one for each.
func (f *fleet) harry(ctx context.Context, length time.Duration) error {
	end := time.Now().Add(length)
	for range processes {
		if err := f.launch(ctx); err != nil {
			return err
		}
	}
	for pause(ctx, killAfter()); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, killAfter()) {
		f.killOne()
		if err := f.launch(ctx); err != nil {
			return err
		}
	}
	return nil
}

// killOne ends a process as a crash does: it can do nothing about it, nor after it.
func (f *fleet) killOne() {
	f.mu.Lock()
	i := rand.IntN(len(f.workers))
	p := f.workers[i]
	f.workers = append(f.workers[:i], f.workers[i+1:]...)
	f.mu.Unlock()
	_ = p.cmd.Process.Kill()
	<-p.ended
	_ = p.cmd.Wait() // its error says that it was killed

	f.mu.Lock()
	defer f.mu.Unlock()
	f.kills++
	for _, at := range p.at {
		if at == "charged" {
			f.charged++
		} else {
			f.booked++
		}
	}
}

// stop ends all as a deploy does, and waits until they have.
func (f *fleet) stop() error {
	var errs []error
	for _, p := range f.workers {
		_ = p.stdin.Close()
		<-p.ended
		errs = append(errs, p.cmd.Wait())
	}
	f.workers = nil
	return errors.Join(errs...)
}

func (f *fleet) killed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kills
}
