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
	"sync"
	"time"

	"github.com/pawlq/pawl/internal/redistest"
)

// A session in another process is told what to do by lines of JSON on its standard
// input, and answers each by one on its standard output. child.go answers for the
// systems in Go, bullmq/bench.js for BullMQ.
type request struct {
	Op   string  `json:"op"` // open, enqueue, work, wait, stop, state or close
	At   address `json:"at"`
	Load load    `json:"load"`
	Work work    `json:"work"`
	N    int     `json:"n"`
}

type reply struct {
	Error   string  `json:"error"`
	Outcome outcome `json:"outcome"`
	State   state   `json:"state"`
}

// closeTimeout is what a process has to end by itself.
const closeTimeout = 10 * time.Second

// remote is a session, and its worker, in another process.
type remote struct {
	cmd    *exec.Cmd
	exited <-chan struct{}
	in     io.WriteCloser

	mu  sync.Mutex // one request at a time
	out *bufio.Reader
}

// startRemote starts the process, which ends with this one.
func startRemote(ctx context.Context, cmd *exec.Cmd, at address) (session, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, answers := io.Pipe()
	cmd.Stdout, cmd.Stderr = answers, os.Stderr
	exited, err := redistest.StartTied(cmd)
	if err != nil {
		return nil, err
	}
	go func() {
		<-exited
		_ = answers.CloseWithError(errors.New("the process has ended"))
	}()
	r := &remote{cmd: cmd, exited: exited, in: in, out: bufio.NewReader(out)}
	if _, err := r.call(ctx, request{Op: "open", At: at}); err != nil {
		r.kill()
		return nil, err
	}
	return r, nil
}

// call ends the process where ctx ends first: what it does then is of no use.
func (r *remote) call(ctx context.Context, q request) (reply, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return reply{}, err
	}
	defer context.AfterFunc(ctx, r.kill)()
	text, err := json.Marshal(q)
	if err != nil {
		return reply{}, err
	}
	var a reply
	if _, err = r.in.Write(append(text, '\n')); err == nil {
		var line []byte
		if line, err = r.out.ReadBytes('\n'); err == nil {
			err = json.Unmarshal(line, &a)
		}
	}
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case err == nil && a.Error != "":
		err = errors.New(a.Error)
	}
	if err != nil {
		return reply{}, fmt.Errorf("%s: %w", q.Op, err)
	}
	return a, nil
}

func (r *remote) enqueue(ctx context.Context, l load) error {
	_, err := r.call(ctx, request{Op: "enqueue", Load: l})
	return err
}

func (r *remote) work(ctx context.Context, w work) (worker, error) {
	_, err := r.call(ctx, request{Op: "work", Work: w})
	return r, err
}

func (r *remote) wait(ctx context.Context, n int) error {
	_, err := r.call(ctx, request{Op: "wait", N: n})
	return err
}

func (r *remote) stop(ctx context.Context) (outcome, error) {
	a, err := r.call(ctx, request{Op: "stop"})
	return a.Outcome, err
}

func (r *remote) state(ctx context.Context) (state, error) {
	a, err := r.call(ctx, request{Op: "state"})
	return a.State, err
}

func (r *remote) close(ctx context.Context) error {
	_, err := r.call(ctx, request{Op: "close"})
	_ = r.in.Close()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-r.exited:
	case <-timer.C:
		r.kill()
	}
	return err
}

func (r *remote) kill() {
	_ = r.cmd.Process.Kill()
	<-r.exited
}
