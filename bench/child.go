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

// childWord as the first argument, with a system as the second, has this program
// be one worker process of that system.
const childWord = "child"

func spawnSelf(name string) func(context.Context, address) (session, error) {
	return func(ctx context.Context, at address) (session, error) {
		exe, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return startRemote(ctx, exec.Command(exe, childWord, name), at)
	}
}

// child serves requests until "close", or until nobody is there to ask.
func child(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	sys := systemNamed(name)
	if sys == nil {
		return fmt.Errorf("no system %q", name)
	}
	lines, answers := bufio.NewReader(in), json.NewEncoder(out)
	var s served
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		var q request
		if err == nil {
			err = json.Unmarshal(line, &q)
		}
		if err != nil {
			return err
		}
		a, err := s.answer(ctx, sys, q)
		if err != nil {
			a.Error = err.Error()
		}
		if err := answers.Encode(a); err != nil || q.Op == "close" {
			return err
		}
	}
}

// served is the one session of a child.
type served struct {
	session session
	worker  worker
}

func (s *served) answer(ctx context.Context, sys *system, q request) (a reply, err error) {
	if s.session == nil && q.Op != "open" || s.worker == nil && (q.Op == "wait" || q.Op == "stop") {
		return a, errors.New("out of order")
	}
	switch q.Op {
	case "open":
		s.session, err = sys.open(ctx, q.At)
	case "enqueue":
		err = s.session.enqueue(ctx, q.Load)
	case "work":
		s.worker, err = s.session.work(ctx, q.Work)
	case "wait":
		err = s.worker.wait(ctx, q.N)
	case "stop":
		a.Outcome, err = s.worker.stop(ctx)
	case "state":
		a.State, err = s.session.state(ctx)
	case "close":
		err = s.session.close(ctx)
	default:
		err = fmt.Errorf("no operation %q", q.Op)
	}
	return a, err
}
